/* SPDX-License-Identifier: Apache-2.0
 *
 * A receiver process of a run.  It offers a region.  A relay passes on what
 * arrives.  A receiver that is told of blocks notes when they arrive.  At the end
 * it compares every byte.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/castbench/endpoint-cm.h"
#include "bench/castbench/fanout.h"

/* A relay is not woken for each of its messages to the source, but for one in so many.  That one
 * gives back the places in the queue of all before it. */
#define ACKS_PER_COMPLETION 16
#define REGISTER_AGAIN_US   50000

/* What has arrived on one QP of the run. */
struct inflow {
    struct ibv_qp *qp;
    uint64_t first;    /* of the QP's blocks, the one that the first receive is for. */
    uint64_t expected; /* receives that were posted. */
    uint64_t noticed;  /* completions that came. */
};

struct receiver {
    const struct run_ctx *run;
    unsigned index, member;
    struct endpoint ep;
    unsigned char *region;
    unsigned notices; /* completions per block. */
    unsigned window;  /* receives that are posted at a time. */
    struct inflow inflows[MAX_QPS];
    struct fanout fanout; /* of a relay: to its children. */
    struct ibv_qp *ack;   /* of a relay: to the source. */
    unsigned n_acks;      /* messages that the source was sent. */
    struct host_count before;
};

static struct receiver receiver;

/* Maps a file, which is written to through memory whatever it held. */
static unsigned char *
store_map(const char *path, size_t len, char *error, size_t size)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int status = fd < 0 || ftruncate(fd, (off_t) len) ? errno : 0;
    void *region = MAP_FAILED;

    /* A write to a page that is not there would kill the process. */
    status = status ? status : posix_fallocate(fd, 0, (off_t) len);
    if (!status) {
        region = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        status = region == MAP_FAILED ? errno : 0;
    }
    if (status) {
        snprintf(error, size, "--store %s: %s", path, strerror(status));
    }
    if (fd >= 0) {
        close(fd);
    }
    return region == MAP_FAILED ? NULL : region;
}

static bool
region_open(struct receiver *r, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct shared *shared = r->run->shared;
    size_t len = shared->content.region_len;
    char path[4096];

    if (r->run->regions[r->index]) {
        r->region = r->run->regions[r->index];
    } else if (o->store) {
        if ((size_t) snprintf(path, sizeof path, "%s.%s", o->store, o->receivers[r->index])
            >= sizeof path) {
            return refuse(error, size, "--store: the file's name is too long");
        }
        r->region = store_map(path, len, error, size);
        if (!r->region) {
            return false;
        }
    } else {
        r->region = aligned_alloc(4096, (len + 4095) & ~(size_t) 4095);
        if (!r->region) {
            return refuse(error, size, "out of memory");
        }
    }
    content_poison(&shared->content, r->region, shared->expected);
    return true;
}

/* Did an event begin it? */
static bool
is_late(const struct receiver *r)
{
    return r->run->shared->lives[r->index].begin >= 0;
}

/* Posts the next receive, in the order in which the pieces of a QP's blocks come. */
static bool
expect_notice(struct receiver *r, unsigned q, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct inflow *in = &r->inflows[q];
    uint64_t block = (in->first + in->expected / r->notices) * o->qps + q;
    struct piece p = piece_get(r->run, block, (unsigned) (in->expected % r->notices));
    struct ibv_sge sge = {
        .addr = (uintptr_t) r->region + p.ofs, .length = p.len, .lkey = r->ep.mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id(WR_NOTICE, 0, q)};

    if (o->op == OP_SEND && p.len) {
        wr.sg_list = &sge;
        wr.num_sge = 1;
    }
    int status = ibv_post_recv(in->qp, &wr, &bad);
    if (status) {
        return refuse(error, size, "post a receive: %s", strerror(status));
    }
    in->expected++;
    return true;
}

static bool
inflow_open(struct receiver *r, unsigned q, char *error, size_t size)
{
    struct inflow *in = &r->inflows[q];

    in->qp = endpoint_qp_create(&r->ep, 1, r->window ? r->window : 1);
    if (!in->qp) {
        return refuse(error, size, "%s", r->ep.error);
    }
    r->run->shared->members[r->member].qpn[q] = in->qp->qp_num;
    for (unsigned i = 0; i < r->window; i++) {
        if (!expect_notice(r, q, error, size)) {
            return false;
        }
    }
    return true;
}

/* A receiver that is only told of blocks posts more receives than can be under way, twice as many
 * and some.  To the source a block counts as written before the receiver has taken note of it.  The
 * receiver may sleep for long before it is its turn, even at depth 1.  One that has no receive left
 * stops the whole group. */
static unsigned
notice_window(const struct receiver *r)
{
    const struct run_options *o = r->run->options;
    unsigned under_way = o->depth * r->notices;
    unsigned window = is_relay(r->run, r->member) || !r->notices ? under_way : 2 * under_way + 256;

    return window < MAX_WR ? window : MAX_WR;
}

static bool
receiver_open(struct receiver *r, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct shared *shared = r->run->shared;
    struct endpoint_where where = {.device = o->ib_dev, .gid_index = o->gid_index};
    bool relay = is_relay(r->run, r->member);
    unsigned n_children = relay ? shared->plan.members[r->member].n_children : 0;
    unsigned n_acks = relay ? 2 * o->depth * o->qps + 4 * ACKS_PER_COMPLETION : 0;

    r->notices = notices_per_block(r->run, r->member);
    r->window = notice_window(r);
    if (!region_open(r, error, size)) {
        return false;
    }
    if (endpoint_open(&r->ep, &shared->addresses[r->member], &where, r->region,
                      shared->content.region_len, true,
                      (r->window + n_children * o->depth) * o->qps + n_acks + 1)) {
        return refuse(error, size, "%s%s", r->ep.error,
                      o->store && !r->ep.mr
                          ? " (--store: some file systems' pages cannot be pinned for "
                            "RDMA; tmpfs's and hugetlbfs's can)"
                          : "");
    }
    for (unsigned q = 0; q < o->qps; q++) {
        if (!inflow_open(r, q, error, size)) {
            return false;
        }
    }
    shared->members[r->member].rkey = r->ep.mr->rkey;
    shared->members[r->member].va = (uintptr_t) r->region;
    if (!relay) {
        return true;
    }
    r->ack = endpoint_qp_create(&r->ep, n_acks, 1);
    if (!r->ack) {
        return refuse(error, size, "%s", r->ep.error);
    }
    shared->members[r->member].ack_qpn = r->ack->qp_num;
    return fanout_open(&r->fanout, r->run, r->member, &r->ep, r->region, error, size);
}

/* The source has begun the epoch of this run, and no one else may begin another
 * meanwhile.  So a refused `member add` is an error, not a reason to try again.  But
 * the registration of a process that was killed counts until its loss is noticed. */
static int
register_member(const struct run_options *o, const char *group,
                const struct rocecast_member *member, char *error, size_t size)
{
    uint64_t end = now_ns() + o->timeout * (uint64_t) NS_PER_SEC;
    int status = registry_member_add(group, member, error, size);

    while ((status == EEXIST || status == EBUSY) && o->n_events && now_ns() < end) {
        usleep(REGISTER_AGAIN_US);
        error[0] = '\0';
        status = registry_member_add(group, member, error, size);
    }
    return status;
}

static bool
receiver_arm_group(struct receiver *r, unsigned q, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct shared *shared = r->run->shared;
    const struct rocecast_epoch *group = &shared->groups[q];
    struct endpoint_peer peer = group_peer(r->run, group);

    if (endpoint_qp_connect(&r->ep, r->inflows[q].qp, &peer)) {
        return refuse(error, size, "%s", r->ep.error);
    }
    struct rocecast_member member = {
        .size = sizeof member,
        .host = o->receivers[shared->lives[r->index].receiver],
        .qpn = r->inflows[q].qp->qp_num,
        .epoch = group->epoch,
        .address = (uintptr_t) r->region,
        .length = shared->content.region_len,
        .rkey = r->ep.mr->rkey,
    };
    return !register_member(o, o->groups[q], &member, error, size);
}

/* The same by RDMA-CM.  The parent ends what the group has been told here: this process may not live
 * to do so. */
static bool
receiver_accept_group(struct receiver *r, unsigned q, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct shared *shared = r->run->shared;
    struct shared_member *me = &shared->members[r->member];
    const char *host = o->receivers[shared->lives[r->index].receiver];
    uint16_t port = (uint16_t) (o->port + q);
    struct endpoint_cm_listener listener;
    uint64_t connect_ns;

    if (!endpoint_cm_listen(&r->ep, &shared->addresses[r->member], port, &listener)) {
        return refuse(error, size, "%s", r->ep.error);
    }
    if (registry_member_listen(o->groups[q], host, port, error, size)) {
        return false;
    }
    me->listens[q] = true;
    if (!endpoint_cm_accept(&r->ep, &listener, r->inflows[q].qp, o->ecn, o->timeout, &connect_ns)) {
        return refuse(error, size, "group %s: %s", o->groups[q], r->ep.error);
    }
    if (connect_ns > me->connect_ns) {
        me->connect_ns = connect_ns;
    }
    return true;
}

static bool
receiver_arm(struct receiver *r, char *error, size_t size)
{
    const struct shared *shared = r->run->shared;
    const struct shared_member *me = &shared->members[r->member];
    bool ok = true;

    for (unsigned q = 0; ok && q < r->run->options->qps; q++) {
        if (is_mcast(r->run)) {
            ok = (r->run->options->rdma_cm ? receiver_accept_group
                                           : receiver_arm_group)(r, q, error, size);
        } else {
            struct endpoint_peer peer =
                run_peer(r->run, shared->plan.members[r->member].parent, me->child_qpn[q]);

            ok = !endpoint_qp_connect(&r->ep, r->inflows[q].qp, &peer)
                 || refuse(error, size, "%s", r->ep.error);
        }
    }
    if (!ok || !r->ack) {
        return ok;
    }
    struct endpoint_peer source = run_peer(r->run, 0, me->source_qpn);
    if (endpoint_qp_connect(&r->ep, r->ack, &source)) {
        return refuse(error, size, "%s", r->ep.error);
    }
    return fanout_connect(&r->fanout, error, size);
}

/* Notes an arrival.  The skew is known when the last receiver has the block. */
static void
note_skew(struct shared *shared, uint64_t block, unsigned n_receivers, uint64_t now)
{
    struct arrival *a = &shared->arrivals[block % RING_SIZE];

    while (atomic_flag_test_and_set(&shared->lock)) {
        sched_yield();
    }
    if (a->block != block + 1) {
        *a = (struct arrival){.block = block + 1, .first = now};
    }
    if (++a->n == n_receivers) {
        histogram_add(&shared->arrival_skew, now - a->first);
    }
    atomic_flag_clear(&shared->lock);
}

static void
note_arrival(struct receiver *r, uint64_t block, uint64_t now)
{
    struct shared *shared = r->run->shared;
    struct shared_replica *replica = &shared->replicas[r->index];
    uint64_t began = shared->began[block % RING_SIZE];

    replica->first_told = replica->n_told++ ? replica->first_told : block;
    if (block >= r->run->options->warmup) {
        histogram_add(&replica->arrived, now - began);
        note_skew(shared, block, r->run->options->n_receivers, now);
    }
}

static bool
notice(struct receiver *r, const struct ibv_wc *wc, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    unsigned q = wr_qp(wc);
    struct inflow *in = &r->inflows[q];
    uint64_t block = (in->first + in->noticed / r->notices) * o->qps + q;
    unsigned piece = (unsigned) (in->noticed % r->notices);
    uint64_t now = now_ns();

    if (wc->status != IBV_WC_SUCCESS) {
        return refuse(error, size, "receive of block %" PRIu64 ": %s", block,
                      ibv_wc_status_str(wc->status));
    }
    if (is_late(r) && !in->noticed) {
        block = in->first = ntohl(wc->imm_data); /* of one QP. */
    }
    if (ntohl(wc->imm_data) != (uint32_t) block) {
        return refuse(error, size, "block %" PRIu64 " was due, told of block %" PRIu32, block,
                      ntohl(wc->imm_data));
    }
    in->noticed++;
    /* Others wait for this, so it comes first: it must not pay for the statistics or their lock. */
    if (r->ack && !fanout_piece(&r->fanout, block, piece, error, size)) {
        return false;
    }
    if (!expect_notice(r, q, error, size)) {
        return false;
    }
    if (piece == r->notices - 1) {
        note_arrival(r, block, now);
    }
    return true;
}

/* Tells the source that all children have a block. */
static bool
send_ack(struct receiver *r, uint64_t block, char *error, size_t size)
{
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = wr_id(WR_ACK_SENT, 0, 0),
                                 .opcode = IBV_WR_SEND_WITH_IMM,
                                 .imm_data = htonl((uint32_t) block),
                             };
    wr.send_flags = ++r->n_acks % ACKS_PER_COMPLETION ? 0 : IBV_SEND_SIGNALED;
    int status = ibv_post_send(r->ack, &wr, &bad);

    return !status || refuse(error, size, "confirm block %" PRIu64 ": %s", block, strerror(status));
}

static bool
completion(struct receiver *r, const struct ibv_wc *wc, char *error, size_t size)
{
    unsigned lane;
    uint64_t block;
    bool all;

    switch (wr_kind(wc)) {
    case WR_NOTICE: return notice(r, wc, error, size);
    case WR_LANE:
        return fanout_completion(&r->fanout, wc, &lane, &block, &all, error, size)
               && (!all || send_ack(r, block, error, size));
    case WR_ACK_SENT:
        return wc->status == IBV_WC_SUCCESS
               || refuse(error, size, "confirm a block: %s", ibv_wc_status_str(wc->status));
    case WR_ACK: break;
    }
    return refuse(error, size, "a completion of nothing that was posted");
}

/* Serves until the source has said that all replicas have all blocks of the phase. */
static bool
receiver_serve(struct receiver *r, enum phase phase, char *error, size_t size)
{
    struct shared *shared = r->run->shared;
    struct ibv_wc wc;
    int status;

    if (!r->notices) {
        return true;
    }
    while (!(status = endpoint_completion(&r->ep, &wc, UINT64_MAX, shared->over[phase][0]))) {
        atomic_fetch_add(&shared->events, 1);
        if (!completion(r, &wc, error, size)) {
            return false;
        }
    }
    return status == ECANCELED || refuse(error, size, "%s", r->ep.error);
}

static bool
receiver_compare(struct receiver *r, char *error, size_t size)
{
    const struct run_options *o = r->run->options;
    struct shared *shared = r->run->shared;
    struct shared_replica *me = &shared->replicas[r->index];
    size_t len = shared->content.region_len;

    if (r->run->regions[r->index]) {
        return true; /* the parent does it. */
    }
    me->bytes_ok = content_compare(&shared->content, r->region, shared->expected,
                                   (struct block_range){0, shared->end}, &me->first_bad, me->why,
                                   sizeof me->why);
    int status = o->store ? (msync(r->region, len, MS_SYNC) ? errno : 0) : 0;
    if (status) {
        return refuse(error, size, "--store %s.%s: %s", o->store, o->receivers[r->index],
                      strerror(status));
    }
    status = o->out ? content_file_write(o->out, o->receivers[r->index], r->region, len) : 0;
    if (status) {
        return refuse(error, size, "cannot write the region to %s: %s", o->out, strerror(status));
    }
    return true;
}

bool
receiver_step(void *aux, unsigned step, char *error, size_t size)
{
    const struct receiver_ctx *ctx = aux;
    struct receiver *r = &receiver;
    const char *device = r->ep.ctx ? ibv_get_device_name(r->ep.ctx->device) : NULL;
    struct host_count *count = &ctx->run->shared->members[ctx->index + 1].count;

    r->run = ctx->run;
    r->index = ctx->index;
    r->member = ctx->index + 1;
    switch ((enum run_step)(step + (is_late(r) && step >= STEP_WARMUP))) {
    case STEP_OPEN: return receiver_open(r, error, size);
    case STEP_ARM: return receiver_arm(r, error, size);
    case STEP_WARMUP: return receiver_serve(r, PHASE_WARMUP, error, size);
    case STEP_COUNT: host_count_read(device, &r->before); return true;
    case STEP_WORK: return receiver_serve(r, PHASE_WORK, error, size);
    case STEP_COMPARE:
        host_count_read(device, count);
        host_count_since(count, &r->before);
        return receiver_compare(r, error, size);
    case N_RUN_STEPS: break;
    }
    return false;
}
