/* SPDX-License-Identifier: Apache-2.0
 *
 * The replicas of a disk: their connections, and what becomes of each.
 *
 *     AWAY -> COPYING -> JOINING -> FILLING -> CURRENT
 *
 * and from everywhere back to AWAY.  When the disk is opened all are members of
 * the group before the first write, so they begin as FILLING or CURRENT.
 *
 * A replica is lost when its connection breaks (its kernel says so when the
 * program is killed), when the group has lost it, or when it owes an answer for
 * too long.  It is taken out of the group, and before any further write is done
 * the others save a new generation: so it is known of a replica's image that it
 * lacks something, also when the source's program has been started again and its
 * map of dirty blocks is gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "disk-private.h"

#define LEAVE_MSEC     60000
#define MAX_GENERATION (UINT64_MAX / 2) /* there will always be a next one. */

static void
say(struct replica *r, enum message_type type, uint64_t value, uint64_t offset, uint32_t flags)
{
    if (r->link && !link_say(r->link, type, value, offset, flags)) {
        replica_lose(r, "takes no messages");
    }
}

/*
 * Generations.
 */

void
generation_begin(bool clean)
{
    disk.generation++;
    FOR_EACH_REPLICA (r) {
        if (r->state == CURRENT) {
            r->asked_generation = disk.generation;
            say(r, MSG_SAVE, disk.generation, 0, clean ? MSG_CLEAN : 0);
        }
    }
}

bool
generation_is_saved(void)
{
    FOR_EACH_REPLICA (r) {
        if (r->state == CURRENT && r->generation != disk.generation) {
            return false;
        }
    }
    return true;
}

/* False: nobody has asked for it. */
static bool
take_saved(struct replica *r, uint64_t generation)
{
    if (r->generation == r->asked_generation || generation > disk.generation) {
        return false;
    }
    r->generation = generation;
    if (r->state == FILLING && generation == disk.generation && generation == r->asked_generation) {
        r->state = CURRENT;
        tell("%s: current: dirty %" PRIu64 " bytes, resynchronised %" PRIu64 " bytes", r->host,
             r->n_dirtied * BLOCK_SIZE, r->n_resent * BLOCK_SIZE);
        r->n_dirtied = r->n_resent = 0;
    }
    return true;
}

/*
 * What holds writes.
 */

bool
replicas_have(uint64_t sequence)
{
    FOR_EACH_REPLICA (r) {
        if (has_writes(r) && r->durable <= sequence && r->first <= sequence) {
            return false;
        }
    }
    return generation_is_saved();
}

uint64_t
replicas_hold(void)
{
    uint64_t hold = disk.completed;

    FOR_EACH_REPLICA (r) {
        uint64_t own = r->state == JOINING ? r->join_at : has_writes(r) ? r->durable : hold;

        hold = own < hold ? own : hold;
    }
    return hold;
}

bool
replicas_join(void)
{
    FOR_EACH_REPLICA (r) {
        if (r->state == JOINING) {
            return true;
        }
    }
    return false;
}

/*
 * Reads.
 */

bool
replicas_read(struct read *read, uint64_t offset)
{
    static uint64_t tag;
    struct replica *from = NULL;

    FOR_EACH_REPLICA (r) {
        if (r->state == CURRENT && r->n_reads < MAX_READS
            && (!from || r->n_reads < from->n_reads)) {
            from = r;
        }
    }
    struct message *m = from ? link_prepare(from->link) : NULL;
    if (!m) {
        return false;
    }
    m->type = MSG_READ;
    m->value = read->tag = ++tag;
    m->offset = offset;
    m->length = read->length;
    link_send(from->link, m, 0);
    from->n_reads++;
    read->from = from;
    read->next = disk.reads;
    disk.reads = read;
    return true;
}

void
replicas_forget(struct read *read)
{
    for (struct read **p = &disk.reads; *p; p = &(*p)->next) {
        if (*p == read) {
            *p = read->next;
            return;
        }
    }
}

/* False: this is no answer. */
static bool
take_data(struct replica *r, const struct message *m)
{
    struct read *read = disk.reads;

    while (read && (read->tag != m->value || read->from != r)) {
        read = read->next;
    }
    r->n_reads--;
    if (!read) {
        return true; /* forgotten. */
    }
    if (read->length != m->length) {
        return false;
    }
    replicas_forget(read);
    if (!read->piece) {
        memcpy(read->data, message_data(m), m->length);
        read->done = true;
    } else if (!piece_take(read->piece, message_data(m))) {
        struct replica *to = read->piece->to;

        piece_lose(read->piece);
        replica_lose(to, "takes no messages");
    }
    pthread_cond_broadcast(&disk.changed);
    return true;
}

static void
lose_reads(struct replica *r)
{
    for (struct read *read = disk.reads, *next; read; read = next) {
        next = read->next;
        if (read->from == r) {
            replicas_forget(read);
            read->failed = true;
            if (read->piece) {
                piece_lose(read->piece);
            }
        }
    }
    r->n_reads = 0;
}

/*
 * Replicas that come and go.
 */

void
replica_lose(struct replica *r, const char *why)
{
    bool was_current = r->state == CURRENT, was_member = has_writes(r) || r->state == JOINING;
    bool any = false;

    if (!r->link) {
        return;
    }
    tell("%s: lost: %s", r->host, why);
    /* Its slots have not been used again.  What is not yet done gets dirty when it is. */
    for (uint64_t s = r->durable; has_writes(r) && s < disk.completed; s++) {
        dirty_set(r, disk.slots[s % N_SLOTS].offset, disk.slots[s % N_SLOTS].length);
    }
    r->state = AWAY;
    r->said_hello = false;
    pieces_lose(r);
    lose_reads(r);
    r->broken = r->link;
    r->link = NULL;
    r->id = NULL;
    if (was_member && rocecast_member_leave_start(disk.group, r->host, LEAVE_MSEC, &r->leaving)) {
        tell("%s: %s", r->host, rocecast_error()); /* the group will find out. */
    }
    FOR_EACH_REPLICA (other) {
        any |= other->state == CURRENT;
    }
    if (disk.serving && !any) {
        disk_fail("no replica is left");
    } else if (disk.serving && was_current) {
        generation_begin(false);
    }
    disk_advance();
    pthread_cond_broadcast(&disk.changed);
}

static void
destroy_broken(struct replica *r)
{
    link_destroy(r->broken);
    r->broken = NULL;
}

void
replica_begin(struct replica *r, enum replica_state state)
{
    bool is_known = r->hello.offset
                    && (r->hello.value == r->generation || r->hello.value == r->asked_generation);

    /* Is its image what it was when it was lost? */
    if (state == COPYING && !is_known) {
        dirty_set(r, 0, disk.size);
    }
    tell("%s: is there, %" PRIu64 " bytes are dirty", r->host, r->n_dirty * BLOCK_SIZE);
    r->generation = r->asked_generation = r->hello.value;
    r->said_hello = false;
    r->cursor = 0;
    r->state = state;
    r->first = r->durable = 0;
    say(r, MSG_WELCOME, 0, disk.size, 0);
    if (state != COPYING) {
        say(r, MSG_JOIN, 0, 0, 0);
    }
}

/* The group brings everything from 'first' on. */
static void
take_first(struct replica *r, uint64_t first)
{
    if (r->state != JOINING) {
        return;
    }
    r->state = FILLING;
    r->first = r->durable = first;
    for (uint64_t s = first; s < disk.completed; s++) {
        dirty_clear(r, disk.slots[s % N_SLOTS].offset, disk.slots[s % N_SLOTS].length);
    }
    tell("%s: is in the group from write %" PRIu64 " on, %" PRIu64 " bytes are dirty", r->host,
         first, r->n_dirty * BLOCK_SIZE);
}

static bool
take_message(void *r_, const struct message *m)
{
    struct replica *r = r_;

    if (!r->link) {
        return false; /* it was lost by what came before. */
    }
    r->patient_since = now_msec();
    switch (m->type) {
    case MSG_HELLO:
        if (r->state != AWAY || r->said_hello || m->value > MAX_GENERATION) {
            return false;
        }
        if (m->offset && m->offset != disk.size) {
            tell("%s: its image has %" PRIu64 " bytes, and the disk %" PRIu64, r->host, m->offset,
                 disk.size);
            return false;
        }
        r->said_hello = true;
        r->hello = *m;
        pthread_cond_broadcast(&disk.changed);
        return true;
    case MSG_FIRST:
        if (m->value < r->join_at || m->value > disk.next) {
            return false;
        }
        take_first(r, m->value);
        return true;
    case MSG_DURABLE:
        if (!has_writes(r) || m->value < r->durable || m->value > disk.next) {
            return false;
        }
        r->durable = m->value;
        return true;
    case MSG_DATA: return r->n_reads && take_data(r, m);
    case MSG_WRITTEN: return piece_done(r, m->offset);
    case MSG_SAVED: return take_saved(r, m->value);
    default: return false;
    }
}

static bool
owes(const struct replica *r)
{
    return r->n_reads || pieces_busy(r) || r->generation != r->asked_generation
           || (has_writes(r) && r->durable < disk.next);
}

static void
run(struct replica *r)
{
    destroy_broken(r);
    if (r->leaving && rocecast_request_poll(r->leaving, NULL) != EINPROGRESS) {
        rocecast_request_close(r->leaving);
        r->leaving = NULL;
    }
    if (!r->link) {
        return;
    }
    if (!link_run(r->link, take_message, r)) {
        replica_lose(r, "its connection has broken");
        return;
    }
    if (!owes(r)) {
        r->patient_since = now_msec();
    } else if (now_msec() - r->patient_since > disk.answer_msec) {
        replica_lose(r, "does not answer");
        return;
    }
    if (disk.serving && r->said_hello && !r->leaving) {
        replica_begin(r, COPYING);
    }
    resync_run(r);
}

/*
 * Connections.
 */

/* A replica's request to connect. */
static void
accept_replica(const struct rdma_cm_event *e)
{
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    const char *host = e->param.conn.private_data;

    FOR_EACH_REPLICA (r) {
        if (e->param.conn.private_data_len < HOST_NAME_SIZE || !memchr(host, 0, HOST_NAME_SIZE)
            || strcmp(host, r->host)) {
            continue;
        }
        replica_lose(r, "has connected again");
        destroy_broken(r);
        r->link = link_create(e->id, disk.pd);
        if (!r->link || rdma_accept(e->id, &param)) {
            tell("%s: %s", r->host, strerror(errno));
            if (!r->link) {
                break;
            }
            link_destroy(r->link);
            r->link = NULL;
            return;
        }
        r->id = e->id;
        r->patient_since = now_msec();
        return;
    }
    rdma_reject(e->id, NULL, 0);
    rdma_destroy_id(e->id);
}

static void
take_connections(void)
{
    struct pollfd fd = {.fd = disk.events->fd, .events = POLLIN};
    struct rdma_cm_event *e;

    while (poll(&fd, 1, 0) == 1 && !rdma_get_cm_event(disk.events, &e)) {
        struct rdma_cm_event copy = *e;
        char private_data[256];

        /* Acknowledged first: an id cannot be destroyed while it has an event. */
        if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST && e->param.conn.private_data) {
            memcpy(private_data, e->param.conn.private_data, e->param.conn.private_data_len);
            copy.param.conn.private_data = private_data;
        }
        rdma_ack_cm_event(e);
        if (copy.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
            accept_replica(&copy);
            continue;
        }
        FOR_EACH_REPLICA (r) {
            if (copy.id == r->id && copy.event != RDMA_CM_EVENT_ESTABLISHED) {
                replica_lose(r, "its connection has ended");
            }
        }
    }
}

static void
take_event(const struct rocecast_event *e)
{
    switch (e->type) {
    case ROCECAST_EVENT_EPOCH:
    case ROCECAST_EVENT_GONE: disk_fail("the group has another source, or is gone"); return;
    case ROCECAST_EVENT_MEMBER_LOST:
    case ROCECAST_EVENT_MEMBER_FAILED:
    case ROCECAST_EVENT_RESTART_NEEDED:
        FOR_EACH_REPLICA (r) {
            if (!strcmp(r->host, e->host) && r->state != AWAY && r->state != COPYING) {
                replica_lose(r, e->text);
            }
        }
        return;
    case ROCECAST_EVENT_MEMBER_JOINED:
        tell("%s: joined at PSN %" PRIu32, e->host, e->place.psn);
        return;
    default: return;
    }
}

void
replicas_run(void)
{
    struct rocecast_event e = {.size = sizeof e};

    take_connections();
    while (!rocecast_next_event(disk.group, &e) && e.type != ROCECAST_EVENT_NONE) {
        take_event(&e);
    }
    FOR_EACH_REPLICA (r) {
        run(r);
    }
}
