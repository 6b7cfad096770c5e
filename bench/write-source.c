/* SPDX-License-Identifier: Apache-2.0
 *
 * The source process of a run.
 *
 * It has one lane per connection: one to the group, or one per receiver.  A
 * lane keeps up to 'depth' blocks outstanding.  Blocks are posted from one
 * buffer laid out like the region; before a block is first posted its slot is
 * stamped, which must not happen while a lane still sends the slot's earlier
 * block.  Hence the slowest lane bounds all: no lane posts block i before all
 * have completed block i - n_slots.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/endpoint.h"
#include "bench/registry.h"
#include "bench/write-run.h"

struct lane {
    struct ibv_qp *qp;
    uint64_t va;
    uint32_t rkey;
    uint64_t posted;
    uint64_t done;
};

static struct endpoint ep;
static unsigned char *buf;
static struct lane lanes[MAX_RECEIVERS];
static unsigned n_lanes;

static bool
source_open(const struct write_run *run, char *error, size_t size)
{
    const struct write_options *o = run->options;
    struct write_shared *shared = run->shared;
    const struct content *content = &shared->content;

    n_lanes = o->scheme == SCHEME_UNICAST ? o->n_receivers : 1;
    buf = write_buffer(content->region_len);
    if (!buf) {
        return write_fail(error, size, "out of memory");
    }
    memcpy(buf, shared->expected, content->region_len);
    if (endpoint_open(&ep, &shared->source, buf, content->region_len, false, n_lanes * o->depth)) {
        return write_fail(error, size, ep.error);
    }
    for (unsigned i = 0; i < n_lanes; i++) {
        lanes[i].qp = endpoint_qp_create(&ep, o->depth);
        if (!lanes[i].qp) {
            return write_fail(error, size, ep.error);
        }
        shared->source_qpn[i] = lanes[i].qp->qp_num;
    }
    return true;
}

static bool
source_arm_group(const struct write_run *run, char *error, size_t size)
{
    const struct write_options *o = run->options;
    struct group_info group;

    /* `source set` may start an epoch, so the attributes are read after it. */
    if (registry_source_set(o->group, o->source, lanes[0].qp->qp_num, error, size)
        || registry_group_show(o->group, &group, error, size)) {
        return false;
    }
    struct endpoint_peer peer = endpoint_group(&group);
    if (endpoint_qp_connect(&ep, lanes[0].qp, &peer)) {
        return write_fail(error, size, ep.error);
    }
    run->shared->epoch = group.epoch;
    run->shared->mtu = group.mtu;
    return true;
}

static bool
source_arm_unicast(const struct write_run *run, char *error, size_t size)
{
    struct write_shared *shared = run->shared;

    shared->mtu = run->options->mtu ? run->options->mtu : UNICAST_MTU;
    for (unsigned i = 0; i < n_lanes; i++) {
        struct endpoint_peer peer = {
            .address = shared->receivers[i],
            .qpn = shared->remotes[i].qpn,
            .rq_psn = shared->unicast_psn,
            .sq_psn = shared->unicast_psn,
            .mtu = shared->mtu,
            .timeout = run->options->qp_timeout,
        };
        if (endpoint_qp_connect(&ep, lanes[i].qp, &peer)) {
            return write_fail(error, size, ep.error);
        }
        lanes[i].va = shared->remotes[i].va;
        lanes[i].rkey = shared->remotes[i].rkey;
    }
    return true;
}

/* The region's length is the least of its members', so it is known only now. */
static bool
source_wait_group(const struct write_run *run, char *error, size_t size)
{
    const struct write_options *o = run->options;
    struct group_info group;

    if (registry_group_wait(o->group, o->n_receivers, run->shared->epoch, o->timeout, error, size)
        || registry_group_show(o->group, &group, error, size)) {
        return false;
    }
    if (group.region_len < run->shared->content.region_len) {
        snprintf(error, size, "the group's region has %" PRIu64 " bytes, the run needs %zu",
                 group.region_len, run->shared->content.region_len);
        return false;
    }
    lanes[0].va = 0;
    lanes[0].rkey = group.designated_rkey;
    return true;
}

static bool
lane_post(struct lane *lane, const struct content *content, unsigned index, char *error,
          size_t size)
{
    uint64_t block = lane->posted;
    size_t ofs = content_block_ofs(content, block);
    struct ibv_sge sge = {
        .addr = (uintptr_t) buf + ofs,
        .length = content_block_len(content, block),
        .lkey = ep.mr->lkey,
    };
    struct ibv_send_wr *bad, wr = {
                                 .wr_id = index,
                                 .sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.rdma = {.remote_addr = lane->va + ofs, .rkey = lane->rkey},
                             };

    int posted = ibv_post_send(lane->qp, &wr, &bad);
    if (posted) {
        snprintf(error, size, "post block %" PRIu64 ": %s", block, strerror(posted));
        return false;
    }
    lane->posted++;
    return true;
}

/* Posts what depth and slots allow.  '*stamped' counts blocks stamped. */
static bool
lanes_fill(const struct write_run *run, uint64_t *stamped, char *error, size_t size)
{
    const struct content *content = &run->shared->content;
    uint64_t all_done = UINT64_MAX;

    for (unsigned i = 0; i < n_lanes; i++) {
        all_done = lanes[i].done < all_done ? lanes[i].done : all_done;
    }
    for (unsigned i = 0; i < n_lanes; i++) {
        struct lane *lane = &lanes[i];

        while (lane->posted < content->count && lane->posted < all_done + content->n_slots
               && lane->posted - lane->done < run->options->depth) {
            if (lane->posted == *stamped) {
                content_stamp(content, buf, (*stamped)++);
            }
            if (!lane_post(lane, content, i, error, size)) {
                return false;
            }
        }
    }
    return true;
}

static double
now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}

static bool
source_transfer(const struct write_run *run, char *error, size_t size)
{
    const struct write_options *o = run->options;
    const struct content *content = &run->shared->content;
    uint64_t total = content->count * n_lanes, stamped = 0;
    double start = now();

    for (uint64_t done = 0; done < total; done++) {
        struct ibv_wc wc;

        if (!lanes_fill(run, &stamped, error, size)) {
            return false;
        }
        int status = endpoint_completion(&ep, &wc, (int) o->timeout * 1000);
        if (status == EAGAIN) {
            snprintf(error, size, "no completion for %u s, after %" PRIu64 " of %" PRIu64,
                     o->timeout, done, total);
            return false;
        }
        if (status) {
            return write_fail(error, size, ep.error);
        }
        if (wc.status != IBV_WC_SUCCESS) {
            snprintf(error, size, "block %" PRIu64 "%s%s: %s", lanes[wc.wr_id].done,
                     o->scheme == SCHEME_UNICAST ? " to " : "",
                     o->scheme == SCHEME_UNICAST ? o->receivers[wc.wr_id] : "",
                     ibv_wc_status_str(wc.status));
            return false;
        }
        lanes[wc.wr_id].done++;
        atomic_fetch_add(&run->shared->completed, 1);
    }
    run->shared->seconds = now() - start;
    return true;
}

bool
write_source_step(void *aux, unsigned step, char *error, size_t size)
{
    const struct write_run *run = aux;
    bool replicate = run->options->scheme == SCHEME_REPLICATE;

    switch ((enum write_step) step) {
    case STEP_OPEN: return source_open(run, error, size);
    case STEP_ARM:
        return replicate ? source_arm_group(run, error, size)
                         : source_arm_unicast(run, error, size);
    case STEP_WORK:
        return (!replicate || source_wait_group(run, error, size))
               && source_transfer(run, error, size);
    case N_WRITE_STEPS: break;
    }
    return false;
}
