/* SPDX-License-Identifier: Apache-2.0
 *
 * The source of a replicated disk (examples/blockdev) with replicas that are a
 * model, so that many are lost and come back in a short time, at any moment.
 *
 *     blockdev-model SEED
 *
 * What the source links is here: links, the group, RDMA-CM and verbs as far as it
 * uses them.  Everything that happens to replicas happens in link_run(), in the
 * source's own thread: each takes some of the group's writes and of its messages,
 * in order, and sometimes none.  Threads write and read, and compare what they
 * read with what they wrote; at the end all images must be the same, and that.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "examples/blockdev/disk-private.h"

#define N_REPLICAS 3u
#define N_THREADS  4u
#define N_WRITES   200u
#define N_BLOCKS   256u
#define SIZE       (N_BLOCKS * BLOCK_SIZE)
#define QUEUE      256u

static char *images[N_REPLICAS];

/* Messages that have been sent and not been taken. */
struct queue {
    struct message *messages[QUEUE];
    unsigned head, tail;
};

struct link {
    unsigned replica;
    bool killed;
    bool lies; /* its next message is one that cannot be. */
    struct queue to_replica, to_source;
    struct message *prepared;
    /* The replica's session. */
    bool joining, member, said_first;
    unsigned asleep;      /* as long, it takes nothing from the group. */
    uint64_t next, taken; /* write that comes next; work requests of the group that it has taken. */
    unsigned char fresh[N_BLOCKS];
};

static struct link *links[N_REPLICAS]; /* as the replicas know them; NULL: not there. */
static uint64_t generations[N_REPLICAS];
static bool leaving[N_REPLICAS];
static bool wants[N_REPLICAS]; /* to connect. */

/* Of the group: the ring as it is at all members, and the work requests that were posted. */
struct posted {
    uint32_t imm;
    uint64_t wr_id;
    struct slot_header header;
    char *data;
};
static struct posted posted[1u << 16];
static uint64_t n_posted, n_acked;

static unsigned random_state;

static unsigned
chance(unsigned n)
{
    return (unsigned) rand_r(&random_state) % n;
}

static void __attribute__((noreturn)) wrong(const char *what)
{
    fprintf(stderr, "blockdev-model: %s\n", what);
    exit(1);
}

/*
 * Links.
 */

static void
push(struct queue *q, struct message *m)
{
    if (q->head - q->tail == QUEUE) {
        wrong("too many messages under way");
    }
    q->messages[q->head++ % QUEUE] = m;
}

static struct message *
pop(struct queue *q)
{
    return q->tail == q->head ? NULL : q->messages[q->tail++ % QUEUE];
}

static struct message *
new_message(enum message_type type, uint64_t value, uint64_t offset)
{
    struct message *m = calloc(1, sizeof *m + SLOT_DATA);

    if (!m) {
        wrong("out of memory");
    }
    m->type = type;
    m->value = value;
    m->offset = offset;
    return m;
}

struct link *
link_create(struct rdma_cm_id *id, struct ibv_pd *pd)
{
    struct link *l = calloc(1, sizeof *l);

    (void) pd;
    if (!l) {
        wrong("out of memory");
    }
    l->replica = (unsigned) (uintptr_t) id->context;
    links[l->replica] = l;
    free(id);
    push(&l->to_source, new_message(MSG_HELLO, generations[l->replica], SIZE));
    l->to_source.messages[0]->flags = MSG_CLEAN;
    return l;
}

void
link_destroy(struct link *l)
{
    if (!l) {
        return;
    }
    for (struct message *m; (m = pop(&l->to_replica)) || (m = pop(&l->to_source));) {
        free(m);
    }
    free(l->prepared);
    links[l->replica] = NULL;
    wants[l->replica] = true;
    free(l);
}

struct message *
link_prepare(struct link *l)
{
    if (!l->prepared) {
        l->prepared = new_message(0, 0, 0);
    }
    return l->prepared;
}

void
link_send(struct link *l, struct message *m, uint32_t data)
{
    if (data > SLOT_DATA || m != l->prepared) {
        wrong("a message that was not prepared");
    }
    l->prepared = NULL;
    push(&l->to_replica, m);
}

bool
link_say(struct link *l, enum message_type type, uint64_t value, uint64_t offset, uint32_t flags)
{
    struct message *m = new_message(type, value, offset);

    m->flags = flags;
    push(&l->to_replica, m);
    return true;
}

int
link_fd(const struct link *l)
{
    (void) l;
    return -1;
}

/*
 * The replicas.
 */

static void
take_message(struct link *l, struct message *m)
{
    char *image = images[l->replica];
    struct message *answer;

    switch (m->type) {
    case MSG_JOIN:
        l->joining = true;
        l->next = m->value;
        break;
    case MSG_READ:
        answer = new_message(MSG_DATA, m->value, m->offset);
        answer->length = m->length;
        memcpy(message_data(answer), image + m->offset, m->length);
        push(&l->to_source, answer);
        break;
    case MSG_RESYNC:
        for (uint32_t done = 0; done < m->length; done += BLOCK_SIZE) {
            if (!l->fresh[(m->offset + done) / BLOCK_SIZE]) {
                memcpy(image + m->offset + done, (char *) message_data(m) + done, BLOCK_SIZE);
            }
        }
        push(&l->to_source, new_message(MSG_WRITTEN, 0, m->offset));
        break;
    case MSG_SAVE:
        generations[l->replica] = m->value;
        push(&l->to_source, new_message(MSG_SAVED, m->value, 0));
        break;
    default: break;
    }
    free(m);
}

static void
take_write(struct link *l)
{
    const struct posted *p = &posted[l->taken++];
    uint64_t offset = be64toh(p->header.offset);
    uint32_t length = be32toh(p->header.length);

    if (!l->said_first) {
        l->next += (p->imm - l->next) & IMM_SEQUENCE;
        l->said_first = true;
        push(&l->to_source, new_message(MSG_FIRST, l->next, 0));
    }
    if (p->imm & IMM_IDLE) {
        return;
    }
    /* What is in the slot by now must still be this write. */
    const struct slot_header *now = (void *) (disk.ring + l->next % N_SLOTS * SLOT_SIZE);
    if (be64toh(now->sequence) != l->next || be64toh(p->header.sequence) != l->next) {
        wrong("a slot was used again before a replica had read it");
    }
    memcpy(images[l->replica] + offset, p->data, length);
    memset(l->fresh + offset / BLOCK_SIZE, 1, length / BLOCK_SIZE);
    l->next++;
    push(&l->to_source, new_message(MSG_DURABLE, l->next, 0));
}

/* A member's memory has everything that was posted; all that are members acknowledge at once. */
static void
run_replica(struct link *l)
{
    struct message *m;

    for (unsigned n = chance(6); n && (m = pop(&l->to_replica)); n--) {
        take_message(l, m);
    }
    if (l->joining && !l->member && (!disk.serving || !chance(10))) {
        l->member = true; /* from the next message on. */
        l->taken = n_posted;
        l->asleep = disk.serving ? chance(400) : 0;
    }
    if (l->asleep) {
        l->asleep--;
        return;
    }
    for (unsigned n = chance(6); n && l->member && l->taken < n_posted && !l->asleep; n--) {
        l->asleep = l->said_first ? 0 : chance(200);
        take_write(l);
    }
}

/* Messages that this replica has no reason to send; 'kind' is any number.  False: now it might have one. */
static bool
lie(const struct replica *r, unsigned kind, struct message *m)
{
    static const uint32_t others[] = {0,          MSG_WELCOME, MSG_JOIN,     MSG_READ,
                                      MSG_RESYNC, MSG_SAVE,    MSG_SAVE + 1, UINT32_MAX};

    switch (kind % 9) {
    case 0: *m = (struct message){.type = MSG_HELLO, .offset = SIZE}; return r->state != AWAY;
    case 1: *m = (struct message){.type = MSG_HELLO, .offset = SIZE - BLOCK_SIZE}; return true;
    case 2: *m = (struct message){.type = MSG_FIRST, .value = disk.next + 1}; return true;
    case 3: *m = (struct message){.type = MSG_DURABLE, .value = disk.next + 1}; return true;
    case 4:
        *m = (struct message){.type = MSG_DURABLE, .value = r->durable - 1};
        return !has_writes(r) || r->durable;
    case 5: *m = (struct message){.type = MSG_DATA, .value = 1}; return !r->n_reads;
    case 6: *m = (struct message){.type = MSG_WRITTEN, .offset = 1}; return true;
    case 7: *m = (struct message){.type = MSG_SAVED, .value = disk.generation + 1}; return true;
    default: *m = (struct message){.type = others[kind / 9 % 8]}; return true;
    }
}

bool
link_run(struct link *l, bool (*receive)(void *aux, const struct message *), void *aux)
{
    struct message *m;
    bool ok = true;

    if (l->killed) {
        return false;
    }
    if (l->lies) {
        struct message forged;

        for (unsigned kind = chance(72); !lie(&disk.replicas[l->replica], kind, &forged); kind++) {
            continue;
        }
        if (receive(aux, &forged)) {
            wrong("a message was taken that nobody had a reason to send");
        }
        return false;
    }
    run_replica(l);
    for (unsigned n = chance(6); ok && n && (m = pop(&l->to_source)); n--) {
        ok = receive(aux, m);
        free(m);
    }
    return ok;
}

/*
 * The group.
 */

const char *
rocecast_error(void)
{
    return "the model never fails";
}

int
rocecast_open(const char *db, int timeout_ms, struct rocecast **r)
{
    (void) db;
    (void) timeout_ms;
    *r = NULL;
    return 0;
}

void
rocecast_close(struct rocecast *r)
{
    (void) r;
}

int
rocecast_group_open(struct rocecast *r, const char *name, int timeout_ms, struct rocecast_group **g)
{
    (void) name;
    *g = NULL;
    return rocecast_open(NULL, timeout_ms, &r);
}

int
rocecast_host_address(struct rocecast *r, const char *host, int timeout_ms,
                      struct in6_addr *address)
{
    (void) host;
    *address = in6addr_loopback;
    return rocecast_open(NULL, timeout_ms, &r);
}

int
rocecast_qp_init(struct ibv_qp *qp, enum rocecast_role role)
{
    (void) qp;
    return role != ROCECAST_SOURCE;
}

int
rocecast_source_join(struct rocecast_group *g, const char *host, struct ibv_qp *qp, int timeout_ms,
                     struct rocecast_epoch *epoch)
{
    (void) g;
    (void) host;
    (void) qp;
    (void) timeout_ms;
    epoch->epoch = 1;
    return 0;
}

/* All replicas are members before the first message. */
int
rocecast_wait_ready(struct rocecast_group *g, uint32_t epoch, uint32_t n, int timeout_ms,
                    struct rocecast_epoch *attributes)
{
    (void) g;
    (void) epoch;
    (void) timeout_ms;
    for (uint32_t members = 0; members < n;) {
        usleep(1000);
        pthread_mutex_lock(&disk.lock);
        members = 0;
        FOR_EACH_REPLICA (r) {
            members += r->link && r->link->member;
        }
        pthread_mutex_unlock(&disk.lock);
    }
    attributes->region_len = RING_SIZE;
    return 0;
}

int
rocecast_source_del(struct rocecast_group *g, int timeout_ms)
{
    (void) g;
    return timeout_ms < 0;
}

int
rocecast_fd(const struct rocecast_group *g)
{
    (void) g;
    return -1;
}

int
rocecast_next_event(struct rocecast_group *g, struct rocecast_event *e)
{
    (void) g;
    e->type = ROCECAST_EVENT_NONE;
    return 0;
}

int
rocecast_member_leave_start(struct rocecast_group *g, const char *host, int timeout_ms,
                            struct rocecast_request **request)
{
    (void) g;
    (void) timeout_ms;
    unsigned n = (unsigned) (host[1] - '1');
    leaving[n] = true;
    *request = (struct rocecast_request *) (void *) &leaving[n];
    return 0;
}

int
rocecast_request_poll(struct rocecast_request *request, struct rocecast_epoch *epoch)
{
    (void) request;
    (void) epoch;
    return chance(20) ? EINPROGRESS : 0;
}

void
rocecast_request_close(struct rocecast_request *request)
{
    *(bool *) request = false;
}

int
rocecast_request_fd(const struct rocecast_request *request)
{
    (void) request;
    return -1;
}

/*
 * RDMA-CM and verbs.
 */

/* Who asks for one descriptor wants to know whether somebody wants to connect, or whether the queue
 * pair has an event: then ibv_get_cq_event() says no. */
int
poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    (void) fds;
    if (timeout_ms) {
        usleep(100); /* threads are to have their turn. */
        return 0;
    }
    return n == 1 && (wants[0] || wants[1] || wants[2]);
}

static int post_send(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);
static int poll_cq(struct ibv_cq *, int, struct ibv_wc *);
static int req_notify_cq(struct ibv_cq *, int);

static struct ibv_context context = {
    .ops = {.post_send = post_send, .poll_cq = poll_cq, .req_notify_cq = req_notify_cq}};
static struct rdma_event_channel events;
static struct rdma_cm_id listener = {.verbs = &context};
static struct ibv_pd pd;
static struct ibv_comp_channel channel;
static struct ibv_cq cq = {.context = &context};
static struct ibv_qp qp = {.context = &context};
static struct ibv_mr mr;

struct rdma_event_channel *
rdma_create_event_channel(void)
{
    events.fd = channel.fd = -1;
    return &events;
}

int
rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **id, void *aux,
               enum rdma_port_space ps)
{
    (void) c;
    (void) aux;
    (void) ps;
    *id = &listener;
    return 0;
}

int
rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
    (void) address;
    return id != &listener;
}

int
rdma_listen(struct rdma_cm_id *id, int backlog)
{
    (void) backlog;
    return id != &listener;
}

int
rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **event)
{
    static struct rdma_cm_event e;
    static char host[HOST_NAME_SIZE];

    (void) c;
    for (unsigned i = 0; i < N_REPLICAS; i++) {
        if (wants[i] && !chance(20)) {
            wants[i] = false;
            snprintf(host, sizeof host, "r%u", i + 1);
            e.event = RDMA_CM_EVENT_CONNECT_REQUEST;
            e.id = calloc(1, sizeof *e.id);
            e.id->context = (void *) (uintptr_t) i;
            e.param.conn.private_data = host;
            e.param.conn.private_data_len = sizeof host;
            *event = &e;
            return 0;
        }
    }
    errno = EAGAIN;
    return -1;
}

int
rdma_ack_cm_event(struct rdma_cm_event *event)
{
    (void) event;
    return 0;
}

int
rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
    (void) id;
    (void) param;
    return 0;
}

int
rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
    (void) id;
    (void) data;
    return len;
}

int
rdma_destroy_id(struct rdma_cm_id *id)
{
    (void) id;
    wrong("a replica was rejected");
}

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
    (void) ctx;
    return &pd;
}

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
    (void) ctx;
    return &channel;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int n, void *aux, struct ibv_comp_channel *c, int vector)
{
    (void) ctx;
    (void) n;
    (void) aux;
    (void) c;
    (void) vector;
    return &cq;
}

#undef ibv_reg_mr
struct ibv_mr *
ibv_reg_mr(struct ibv_pd *p, void *address, size_t length, int access)
{
    (void) p;
    (void) address;
    (void) length;
    (void) access;
    return &mr;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *p, void *address, size_t length, uint64_t iova, unsigned access)
{
    (void) iova;
    return ibv_reg_mr(p, address, length, (int) access);
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *p, struct ibv_qp_init_attr *attr)
{
    (void) p;
    (void) attr;
    return &qp;
}

int
ibv_get_cq_event(struct ibv_comp_channel *c, struct ibv_cq **which, void **aux)
{
    (void) c;
    (void) which;
    (void) aux;
    return -1;
}

void
ibv_ack_cq_events(struct ibv_cq *which, unsigned n)
{
    (void) which;
    (void) n;
}

const char *
ibv_wc_status_str(enum ibv_wc_status status)
{
    (void) status;
    return "";
}

static int
req_notify_cq(struct ibv_cq *which, int solicited)
{
    (void) which;
    return solicited;
}

static int
post_send(struct ibv_qp *q, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    (void) q;
    (void) bad;
    if (n_posted == sizeof posted / sizeof *posted) {
        wrong("too many writes for the model");
    }
    struct posted *p = &posted[n_posted++];
    const char *from = (const char *) (uintptr_t) wr->sg_list->addr;

    p->imm = ntohl(wr->imm_data);
    p->wr_id = wr->wr_id;
    memcpy(&p->header, from, sizeof p->header);
    if (!(p->imm & IMM_IDLE)) {
        p->data = malloc(wr->sg_list->length - sizeof p->header);
        memcpy(p->data, from + sizeof p->header, wr->sg_list->length - sizeof p->header);
    }
    return 0;
}

static int
poll_cq(struct ibv_cq *which, int n, struct ibv_wc *wc)
{
    (void) which;
    (void) n;
    if (n_acked == n_posted || !chance(4)) {
        return 0;
    }
    wc->status = IBV_WC_SUCCESS;
    wc->wr_id = posted[n_acked++].wr_id;
    return 1;
}

/*
 * Who uses the disk, and what happens to it.
 */

/* Of each block the last write that is done; a thread has blocks of its own. */
static uint32_t written[N_BLOCKS];

static void *
use(void *number)
{
    unsigned t = (unsigned) (uintptr_t) number, state = random_state + t;
    static char buffers[N_THREADS][N_BLOCKS / N_THREADS * BLOCK_SIZE];
    char *data = buffers[t];

    for (uint32_t i = 1; i <= N_WRITES; i++) {
        unsigned share = N_BLOCKS / N_THREADS;
        unsigned at = (unsigned) rand_r(&state) % share;
        unsigned n = 1 + (unsigned) rand_r(&state) % (share - at < 20 ? share - at : 20);
        unsigned first = t * share + at;
        bool reads = !(rand_r(&state) % 3);

        for (unsigned b = 0; b < n && !reads; b++) {
            for (unsigned k = 0; k < BLOCK_SIZE; k += 4) {
                memcpy(data + b * BLOCK_SIZE + k, &i, 4);
            }
            written[first + b] = i;
        }
        if (reads ? disk_read(data, n * BLOCK_SIZE, first * (uint64_t) BLOCK_SIZE)
                  : disk_write(data, n * BLOCK_SIZE, first * (uint64_t) BLOCK_SIZE)) {
            wrong("an error of I/O");
        }
        for (unsigned k = 0; k < n * BLOCK_SIZE && reads; k += 4) {
            if (memcmp(data + k, &written[first + k / BLOCK_SIZE], 4)) {
                wrong("what was read is not what was written");
            }
        }
    }
    return NULL;
}

static bool
is_whole(void)
{
    bool whole = true;

    FOR_EACH_REPLICA (r) {
        whole = whole && r->state == CURRENT;
    }
    return whole;
}

/* Kills a replica, in whatever state, or has it send nonsense, unless it is the last that is current. */
static void
lose_one(void)
{
    struct replica *r = &disk.replicas[chance(N_REPLICAS)];
    unsigned n_current = 0;

    FOR_EACH_REPLICA (other) {
        n_current +=
            other->state == CURRENT && !(other->link && (other->link->killed || other->link->lies));
    }
    if (r->link && (r->state != CURRENT || n_current > 1)) {
        if (chance(2)) {
            r->link->killed = true;
        } else {
            r->link->lies = true;
        }
    }
}

int
main(int argc, char *argv[])
{
    struct disk_options options = {.group = "g",
                                   .host = "h0",
                                   .replicas = "r1,r2,r3",
                                   .size = SIZE,
                                   .wait_msec = 60000,
                                   .answer_msec = 600000};
    pthread_t threads[N_THREADS];

    if (argc != 2) {
        fprintf(stderr, "usage: blockdev-model SEED\n");
        return 1;
    }
    random_state = (unsigned) atoi(argv[1]);
    for (unsigned i = 0; i < N_REPLICAS; i++) {
        images[i] = calloc(1, SIZE);
        wants[i] = true;
    }
    if (!disk_open(&options)) {
        wrong(disk_error());
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_create(&threads[i], NULL, use, (void *) (uintptr_t) i);
    }
    for (uint64_t at = 0; at < N_THREADS * N_WRITES / 2;) {
        usleep(100);
        pthread_mutex_lock(&disk.lock);
        if (disk.completed >= at || !chance(300)) {
            lose_one();
            at = disk.completed + 1 + chance(100);
        }
        pthread_mutex_unlock(&disk.lock);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (bool whole = false; !whole;) {
        usleep(1000);
        pthread_mutex_lock(&disk.lock);
        whole = is_whole();
        pthread_mutex_unlock(&disk.lock);
    }
    disk_close();
    for (unsigned i = 0; i < N_REPLICAS; i++) {
        for (unsigned k = 0; k < SIZE; k += 4) {
            if (memcmp(images[i] + k, &written[k / BLOCK_SIZE], 4)) {
                wrong("an image has not what was written last");
            }
        }
    }
    printf("seed %s: %llu writes\n", argv[1], (unsigned long long) disk.next);
    return 0;
}
