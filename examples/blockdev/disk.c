/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is kept by replicas: the ring of writes, and the thread that takes
 * what comes back.
 *
 * disk_write() puts a write into the next slot and posts it to the group.  Three
 * numbers follow it: 'sent', when the group has acknowledged it, so that it is in
 * the memory of all members; 'completed', when all that count have said that it is
 * durable, and then disk_write() returns; and what replicas_hold() says, behind
 * which its slot may be used again.  That can be later: of a replica that joins it
 * is not known where it begins, so it may still have to read the slot.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "disk-private.h"

#define PATIENCE_MSEC 30000
/* Of the thread; who joins when nobody writes waits for as long. */
#define TICK_MSEC     20
#define MAX_IDLE      2u
#define WR_IDLE       UINT64_MAX

struct disk disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static pthread_t thread;

long long
now_msec(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000LL + ts.tv_nsec / 1000000;
}

void
tell(const char *format, ...)
{
    char line[640];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    fprintf(stderr, "blockdev: %s\n", line);
}

void
disk_fail(const char *format, ...)
{
    va_list args;

    if (!disk.failed) {
        va_start(args, format);
        vsnprintf(disk.error, sizeof disk.error, format, args);
        va_end(args);
        disk.failed = true;
        tell("failed: %s", disk.error);
    }
    pthread_cond_broadcast(&disk.changed);
}

const char *
disk_error(void)
{
    return disk.error;
}

/*
 * Writes.
 */

static void
post(uint32_t slot, uint32_t length, uint32_t imm, uint64_t wr_id)
{
    struct ibv_sge sge = {(uintptr_t) disk.ring + slot * SLOT_SIZE, length, disk.mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

    wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.imm_data = htonl(imm);
    wr.wr.rdma.remote_addr = slot * SLOT_SIZE;
    wr.wr.rdma.rkey = disk.epoch.designated_rkey;
    if (ibv_post_send(disk.qp, &wr, &bad)) {
        disk_fail("the group's queue pair takes no writes: %s", strerror(errno));
    }
    disk.posted_at = now_msec();
}

static void
post_write(const void *data, uint32_t length, uint64_t offset)
{
    uint32_t slot = disk.next % N_SLOTS;
    char *at = disk.ring + slot * SLOT_SIZE;
    struct slot_header h = {
        .sequence = htobe64(disk.next), .offset = htobe64(offset), .length = htobe32(length)};

    memcpy(at, &h, sizeof h);
    memcpy(at + sizeof h, data, length);
    disk.slots[slot] = (struct slot){offset, length};
    post(slot, sizeof h + length, (uint32_t) disk.next & IMM_SEQUENCE, disk.next);
    disk.next++;
}

/* Who joins begins with a message: if nobody writes, or can since the ring is full, this is one. */
static void
post_idle(void)
{
    if (replicas_join() && disk.n_idle < MAX_IDLE && now_msec() - disk.posted_at >= TICK_MSEC) {
        disk.n_idle++;
        post(IDLE_SLOT, sizeof(struct slot_header),
             IMM_IDLE | ((uint32_t) disk.next & IMM_SEQUENCE), WR_IDLE);
    }
}

int
disk_write(const void *data, uint32_t length, uint64_t offset)
{
    uint64_t last = 0;

    pthread_mutex_lock(&disk.lock);
    for (uint32_t done = 0, n; done < length; done += n) {
        while (!disk.failed && disk.next >= replicas_hold() + N_SLOTS) {
            pthread_cond_wait(&disk.changed, &disk.lock);
        }
        n = length - done < SLOT_DATA ? length - done : SLOT_DATA;
        if (disk.failed) {
            break;
        }
        last = disk.next;
        post_write((const char *) data + done, n, offset + done);
    }
    while (!disk.failed && length && disk.completed <= last) {
        pthread_cond_wait(&disk.changed, &disk.lock);
    }
    int error = disk.failed ? EIO : 0;
    pthread_mutex_unlock(&disk.lock);
    return error;
}

void
disk_advance(void)
{
    while (disk.completed < disk.sent && replicas_have(disk.completed)) {
        const struct slot *slot = &disk.slots[disk.completed % N_SLOTS];

        FOR_EACH_REPLICA (r) {
            if (!has_writes(r) || disk.completed < r->first) {
                dirty_set(r, slot->offset, slot->length);
            }
        }
        disk.completed++;
    }
    /* Also a slot may have become free. */
    pthread_cond_broadcast(&disk.changed);
}

static void
take_sent(void)
{
    struct pollfd fd = {.fd = disk.channel->fd, .events = POLLIN};
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;

    if (poll(&fd, 1, 0) == 1 && !ibv_get_cq_event(disk.channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        ibv_req_notify_cq(disk.cq, 0);
    }
    while (ibv_poll_cq(disk.cq, 1, &wc) == 1) {
        if (wc.status != IBV_WC_SUCCESS) {
            disk_fail("the group's queue pair: %s", ibv_wc_status_str(wc.status));
        } else if (wc.wr_id == WR_IDLE) {
            disk.n_idle--;
        } else {
            disk.sent = wc.wr_id + 1;
        }
    }
}

/*
 * Reads.
 */

static int
read_part(void *data, uint32_t length, uint64_t offset)
{
    struct read read = {.failed = true};

    while (!disk.failed && !read.done) {
        if (read.failed) {
            read = (struct read){.data = data, .length = length};
            read.failed = !replicas_read(&read, offset);
        }
        if (!read.done) {
            pthread_cond_wait(&disk.changed, &disk.lock);
        }
    }
    if (!read.done && !read.failed) {
        replicas_forget(&read);
    }
    return read.done ? 0 : EIO;
}

int
disk_read(void *data, uint32_t length, uint64_t offset)
{
    int error = 0;

    pthread_mutex_lock(&disk.lock);
    for (uint32_t done = 0, n; done < length && !error; done += n) {
        n = length - done < SLOT_DATA ? length - done : SLOT_DATA;
        error = read_part((char *) data + done, n, offset + done);
    }
    pthread_mutex_unlock(&disk.lock);
    return error;
}

/*
 * The thread.
 */

static void
wait_for_something(void)
{
    struct pollfd fds[3 + 2 * MAX_REPLICAS];
    nfds_t n = 0;

    fds[n++] = (struct pollfd){.fd = disk.events->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = disk.channel->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = rocecast_fd(disk.group), .events = POLLIN};
    FOR_EACH_REPLICA (r) {
        if (r->link) {
            fds[n++] = (struct pollfd){.fd = link_fd(r->link), .events = POLLIN};
        }
        if (r->leaving) {
            fds[n++] = (struct pollfd){.fd = rocecast_request_fd(r->leaving), .events = POLLIN};
        }
    }
    pthread_mutex_unlock(&disk.lock);
    poll(fds, n, TICK_MSEC);
    pthread_mutex_lock(&disk.lock);
}

static void *
run(void *aux)
{
    (void) aux;
    pthread_mutex_lock(&disk.lock);
    while (!disk.stopping) {
        take_sent();
        replicas_run();
        disk_advance();
        post_idle();
        wait_for_something();
    }
    pthread_mutex_unlock(&disk.lock);
    return NULL;
}

/*
 * Opening and closing.
 */

static bool
add_replicas(const char *names)
{
    for (const char *p = names; *p; p += *p == ',') {
        size_t n = strcspn(p, ",");
        struct replica *r = &disk.replicas[disk.n_replicas];

        if (disk.n_replicas == MAX_REPLICAS || !n || n >= HOST_NAME_SIZE) {
            disk_fail("replicas=%s: must be 1 to %u names of hosts, with commas", names,
                      MAX_REPLICAS);
            return false;
        }
        memcpy(r->host, p, n);
        if (!resync_init(r)) {
            disk_fail("out of memory");
            return false;
        }
        disk.n_replicas++;
        p += n;
    }
    return disk.n_replicas > 0;
}

/* Listens for replicas at the host's address; its RDMA device is the one for the group, too. */
static bool
listen_at(const char *host)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons(BLOCKDEV_PORT)};

    if (rocecast_host_address(disk.registry, host, PATIENCE_MSEC, &address.sin6_addr)) {
        disk_fail("%s", rocecast_error());
        return false;
    }
    disk.events = rdma_create_event_channel();
    if (!disk.events || rdma_create_id(disk.events, &disk.listener, NULL, RDMA_PS_TCP)
        || rdma_bind_addr(disk.listener, (struct sockaddr *) &address)
        || rdma_listen(disk.listener, MAX_REPLICAS)) {
        disk_fail("%s, port %u: %s", host, BLOCKDEV_PORT, strerror(errno));
        return false;
    }
    return true;
}

static bool
make_queue_pair(void)
{
    struct ibv_context *ctx = disk.listener->verbs;

    disk.pd = ibv_alloc_pd(ctx);
    disk.channel = ibv_create_comp_channel(ctx);
    disk.cq = disk.channel ? ibv_create_cq(ctx, N_SLOTS + MAX_IDLE, NULL, disk.channel, 0) : NULL;
    disk.ring = aligned_alloc(BLOCK_SIZE, RING_SIZE);
    if (!disk.pd || !disk.cq || !disk.ring || ibv_req_notify_cq(disk.cq, 0)) {
        disk_fail("completion queue: %s", strerror(errno));
        return false;
    }
    memset(disk.ring, 0, RING_SIZE);
    disk.mr = ibv_reg_mr(disk.pd, disk.ring, RING_SIZE, 0);
    struct ibv_qp_init_attr attr = {
        .send_cq = disk.cq,
        .recv_cq = disk.cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = N_SLOTS + MAX_IDLE, .max_recv_wr = 1, .max_send_sge = 1}};
    disk.qp = disk.mr ? ibv_create_qp(disk.pd, &attr) : NULL;
    if (!disk.qp) {
        disk_fail("queue pair: %s", strerror(errno));
    }
    return disk.qp != NULL;
}

/* Waits until 'condition' holds. */
static bool
wait_until(bool (*condition)(void), const char *what, int timeout_ms)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec += timeout_ms / 1000;
    while (!disk.failed && !condition()) {
        if (pthread_cond_timedwait(&disk.changed, &disk.lock, &ts) == ETIMEDOUT) {
            disk_fail("not in time: %s", what);
        }
    }
    return !disk.failed;
}

static bool
all_there(void)
{
    FOR_EACH_REPLICA (r) {
        if (!r->said_hello) {
            return false;
        }
    }
    return true;
}

/* Has each replica begin with what its image is worth.  Those of the last generation have all that
 * was ever done; if the disk was not closed in order, they may differ in what was not. */
static void
begin_all(void)
{
    const struct replica *best = disk.replicas;
    bool clean = true;

    FOR_EACH_REPLICA (r) {
        best = r->hello.value > best->hello.value ? r : best;
    }
    FOR_EACH_REPLICA (r) {
        clean = clean && (r->hello.value != best->hello.value || r->hello.flags & MSG_CLEAN);
    }
    disk.generation = best->hello.value;
    FOR_EACH_REPLICA (r) {
        if (r == best || (clean && r->hello.value == best->hello.value)) {
            replica_begin(r, CURRENT);
        } else {
            dirty_set(r, 0, disk.size);
            replica_begin(r, FILLING);
        }
    }
}

static bool
join_group(const struct disk_options *o)
{
    disk.epoch.size = sizeof disk.epoch;
    if (rocecast_qp_init(disk.qp, ROCECAST_SOURCE)
        || rocecast_source_join(disk.group, o->host, disk.qp, PATIENCE_MSEC, &disk.epoch)) {
        disk_fail("%s", rocecast_error());
    }
    return !disk.failed;
}

static bool
start_thread(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&thread, NULL, run, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        disk_fail("thread: %s", strerror(error));
    }
    return !error;
}

/* Waits for all replicas, and for the group to have them as members. */
static bool
gather(const struct disk_options *o)
{
    bool ok = wait_until(all_there, "all replicas are there", o->wait_msec);

    if (!ok) {
        return false;
    }
    begin_all();
    pthread_mutex_unlock(&disk.lock);
    int status = rocecast_wait_ready(disk.group, disk.epoch.epoch, disk.n_replicas, o->wait_msec,
                                     &disk.epoch);
    pthread_mutex_lock(&disk.lock);
    if (status) {
        disk_fail("%s", rocecast_error());
    } else if (disk.epoch.region_len < RING_SIZE) {
        disk_fail("the group's region has %" PRIu64 " bytes, and the ring %u",
                  disk.epoch.region_len, RING_SIZE);
    }
    FOR_EACH_REPLICA (r) {
        if (!has_writes(r)) {
            disk_fail("%s was lost before all were there", r->host);
        }
    }
    if (disk.failed) {
        return false;
    }
    disk.serving = true;
    generation_begin(false);
    return wait_until(generation_is_saved, "all replicas have saved that the disk is open",
                      PATIENCE_MSEC);
}

bool
disk_open(const struct disk_options *o)
{
    disk.size = o->size;
    disk.answer_msec = o->answer_msec;
    if (!add_replicas(o->replicas)) {
        return false;
    }
    if (rocecast_open(NULL, PATIENCE_MSEC, &disk.registry)
        || rocecast_group_open(disk.registry, o->group, PATIENCE_MSEC, &disk.group)) {
        disk_fail("%s", rocecast_error());
        return false;
    }
    if (!listen_at(o->host) || !make_queue_pair() || !join_group(o) || !start_thread()) {
        return false;
    }
    pthread_mutex_lock(&disk.lock);
    bool ok = gather(o);
    pthread_mutex_unlock(&disk.lock);
    return ok;
}

void
disk_close(void)
{
    if (disk.serving) {
        pthread_mutex_lock(&disk.lock);
        if (!disk.failed) {
            generation_begin(true);
            wait_until(generation_is_saved, "all replicas have saved that the disk is closed",
                       PATIENCE_MSEC);
        }
        disk.stopping = true;
        pthread_mutex_unlock(&disk.lock);
        pthread_join(thread, NULL);
        rocecast_source_del(disk.group, PATIENCE_MSEC);
    }
    rocecast_close(disk.registry); /* the rest goes with the process. */
}
