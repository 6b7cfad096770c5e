/* SPDX-License-Identifier: Apache-2.0
 *
 * The source process of a run: opening and arming.  Its transfers are in
 * transfer.c.
 */
#include "bench/castbench/source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "bench/castbench/endpoint-cm.h"
#include "bench/castbench/registry.h"

static struct source source;

/* Opens connections from relays, over which these say what their children have. */
static bool
acks_open(struct source *s, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    struct shared *shared = s->run->shared;

    for (unsigned member = 1; member < shared->plan.n_members; member++) {
        if (!is_relay(s->run, member)) {
            continue;
        }
        s->acks[member] = endpoint_qp_create(&s->ep, 1, o->depth * o->qps);
        if (!s->acks[member]) {
            return refuse(error, size, "%s", s->ep.error);
        }
        shared->members[member].source_qpn = s->acks[member]->qp_num;
        for (unsigned i = 0; i < o->depth * o->qps; i++) {
            if (!source_expect_ack(s, member, error, size)) {
                return false;
            }
        }
    }
    return true;
}

bool
source_expect_ack(struct source *s, unsigned member, char *error, size_t size)
{
    struct ibv_recv_wr *bad, wr = {.wr_id = wr_id(WR_ACK, member, 0)};
    int status = ibv_post_recv(s->acks[member], &wr, &bad);

    return !status || refuse(error, size, "post a receive: %s", strerror(status));
}

static unsigned
count_relays(const struct run_ctx *run)
{
    unsigned n = 0;

    for (unsigned member = 1; member < run->shared->plan.n_members; member++) {
        n += is_relay(run, member);
    }
    return n;
}

static bool
source_open(struct source *s, const struct run_ctx *run, char *error, size_t size)
{
    const struct run_options *o = run->options;
    struct shared *shared = run->shared;
    const struct content *content = &shared->content;
    struct endpoint_where where = {.device = o->ib_dev, .gid_index = o->gid_index};
    unsigned n_lanes = is_mcast(run) ? 1 : shared->plan.members[0].n_children;

    s->run = run;
    /* Latency counts from when a block was due.  It would include the kernel's 50 us of leisure. */
    if (o->rate > 0) {
        prctl(PR_SET_TIMERSLACK, 1);
    }
    s->buf = aligned_alloc(4096, (content->region_len + 4095) & ~(size_t) 4095);
    if (!s->buf) {
        return refuse(error, size, "out of memory");
    }
    memcpy(s->buf, shared->expected, content->region_len);
    if (endpoint_open(&s->ep, &shared->addresses[0], &where, s->buf, content->region_len, false,
                      (n_lanes + count_relays(run)) * o->depth * o->qps)) {
        return refuse(error, size, "%s", s->ep.error);
    }
    s->ep.poll = o->poll;
    for (unsigned q = 0; q < o->qps; q++) {
        s->stripes[q].blocks = calloc(o->depth, sizeof *s->stripes[q].blocks);
        if (!s->stripes[q].blocks) {
            return refuse(error, size, "out of memory");
        }
    }
    return fanout_open(&s->fanout, run, 0, &s->ep, s->buf, error, size)
           && acks_open(s, error, size);
}

static bool
check_region(const struct source *s, unsigned q, uint64_t len, char *error, size_t size)
{
    size_t needed = s->run->shared->content.region_len;

    return len >= needed
           || refuse(error, size, "the region of group %s has %" PRIu64 " bytes, the run needs %zu",
                     s->run->options->groups[q], len, needed);
}

static bool
source_arm_group(struct source *s, unsigned q, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    struct lane *lane = &s->fanout.lanes[0][q];
    struct rocecast_epoch *group = &s->run->shared->groups[q];

    if (registry_source_set(o->groups[q], o->source, lane->qp->qp_num, group, error, size)) {
        return false;
    }
    struct endpoint_peer peer = group_peer(s->run, group);
    if (endpoint_qp_connect(&s->ep, lane->qp, &peer)) {
        return refuse(error, size, "%s", s->ep.error);
    }
    s->run->shared->mtu = group->mtu;
    return true;
}

/* The same by RDMA-CM.  What the group is like is in its answer. */
static bool
source_connect_group(struct source *s, unsigned q, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    struct shared *shared = s->run->shared;
    struct lane *lane = &s->fanout.lanes[0][q];
    struct rocecast_epoch *group = &shared->groups[q];
    struct endpoint_cm_group cm;

    if (registry_group_show(o->groups[q], group, error, size)) {
        return false;
    }
    struct endpoint_cm_peer peer = {.own = shared->addresses[0],
                                    .address = group->proxy,
                                    .port = (uint16_t) group->connect_port};
    if (!endpoint_cm_connect(&s->ep, lane->qp, &peer, o->ecn, o->timeout, &cm)) {
        return refuse(error, size, "group %s: %s", o->groups[q], s->ep.error);
    }
    if (!check_region(s, q, cm.answer.len, error, size)) {
        return false;
    }
    lane->va = cm.answer.va;
    lane->rkey = cm.answer.rkey;
    group->epoch = cm.answer.epoch;
    shared->mtu = cm.mtu;
    if (cm.connect_ns > shared->members[0].connect_ns) {
        shared->members[0].connect_ns = cm.connect_ns;
    }
    return true;
}

static bool
source_arm(struct source *s, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    struct shared *shared = s->run->shared;
    bool ok = true;

    if (is_mcast(s->run)) {
        for (unsigned q = 0; ok && q < o->qps; q++) {
            ok = (o->rdma_cm ? source_connect_group : source_arm_group)(s, q, error, size);
        }
        return ok;
    }
    for (unsigned member = 1; member < shared->plan.n_members; member++) {
        struct endpoint_peer peer = run_peer(s->run, member, shared->members[member].ack_qpn);

        if (s->acks[member] && endpoint_qp_connect(&s->ep, s->acks[member], &peer)) {
            return refuse(error, size, "%s", s->ep.error);
        }
    }
    return fanout_connect(&s->fanout, error, size);
}

/* Receivers that take part from the begin. */
static unsigned
n_initial(const struct shared *shared)
{
    unsigned n = 0;

    while (n < shared->n_lives && shared->lives[n].begin < 0) {
        n++;
    }
    return n;
}

/* A group's region is as long as the shortest of its members', so the length is known only now. */
static bool
source_wait_groups(struct source *s, char *error, size_t size)
{
    const struct run_options *o = s->run->options;
    const struct shared *shared = s->run->shared;
    struct rocecast_epoch group;

    for (unsigned q = 0; is_mcast(s->run) && q < o->qps; q++) {
        if (registry_group_wait(o->groups[q], n_initial(shared), shared->groups[q].epoch,
                                o->timeout, &group, error, size)) {
            return false;
        }
        if (!check_region(s, q, group.region_len, error, size)) {
            return false;
        }
        if (!o->rdma_cm) {
            s->fanout.lanes[0][q].rkey = group.designated_rkey;
        }
    }
    return true;
}

bool
source_step(void *aux, unsigned step, char *error, size_t size)
{
    const struct run_ctx *run = aux;
    const char *device = source.ep.ctx ? ibv_get_device_name(source.ep.ctx->device) : NULL;
    struct host_count *count = &run->shared->members[0].count;

    switch ((enum run_step) step) {
    case STEP_OPEN: return source_open(&source, run, error, size);
    case STEP_ARM: return source_arm(&source, error, size);
    case STEP_WARMUP:
        return source_wait_groups(&source, error, size)
               && source_transfer(&source, PHASE_WARMUP, error, size);
    case STEP_COUNT: host_count_read(device, &source.before); return true;
    case STEP_WORK: return source_transfer(&source, PHASE_WORK, error, size);
    case STEP_COMPARE:
        host_count_read(device, count);
        host_count_since(count, &source.before);
        return true;
    case N_RUN_STEPS: break;
    }
    return false;
}
