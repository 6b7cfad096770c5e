/* SPDX-License-Identifier: Apache-2.0
 *
 * A receiver process of a run: it offers a region and, when the source is done,
 * compares every byte.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/endpoint.h"
#include "bench/registry.h"
#include "bench/write-run.h"

static struct endpoint ep;
static struct ibv_qp *qp;
static unsigned char *region;

static bool
receiver_open(const struct write_receiver *r, char *error, size_t size)
{
    struct write_shared *shared = r->run->shared;
    size_t len = shared->content.region_len;

    region = write_buffer(len);
    if (!region) {
        return write_fail(error, size, "out of memory");
    }
    /* A byte that never arrives must not be right by chance. */
    for (size_t i = 0; i < len; i++) {
        region[i] = (unsigned char) ~shared->expected[i];
    }
    if (endpoint_open(&ep, &shared->receivers[r->index], region, len, true, 1)) {
        return write_fail(error, size, ep.error);
    }
    qp = endpoint_qp_create(&ep, 1);
    if (!qp) {
        return write_fail(error, size, ep.error);
    }
    shared->remotes[r->index] = (struct write_remote){
        .qpn = qp->qp_num,
        .rkey = ep.mr->rkey,
        .va = (uintptr_t) region,
    };
    return true;
}

/* The source has begun the epoch of this run and no one else may begin another
 * meanwhile, so a refused `member add` is an error, not a reason to try again. */
static bool
receiver_arm_group(const struct write_receiver *r, char *error, size_t size)
{
    const struct write_options *o = r->run->options;
    struct write_shared *shared = r->run->shared;
    struct group_info group;

    if (registry_group_show(o->group, &group, error, size)) {
        return false;
    }
    if (group.epoch != shared->epoch) {
        snprintf(error, size, "someone else started epoch %" PRIu32 " of group %s during the run",
                 group.epoch, o->group);
        return false;
    }
    struct endpoint_peer peer = endpoint_group(&group);
    if (endpoint_qp_connect(&ep, qp, &peer)) {
        return write_fail(error, size, ep.error);
    }
    struct member_info member = {
        .host = o->receivers[r->index],
        .qpn = qp->qp_num,
        .rkey = ep.mr->rkey,
        .va = (uintptr_t) region,
        .len = shared->content.region_len,
    };
    return !registry_member_add(o->group, &member, group.epoch, error, size);
}

static bool
receiver_arm_unicast(const struct write_receiver *r, char *error, size_t size)
{
    struct write_shared *shared = r->run->shared;
    struct endpoint_peer peer = {
        .address = shared->source,
        .qpn = shared->source_qpn[r->index],
        .rq_psn = shared->unicast_psn,
        .sq_psn = shared->unicast_psn,
        .mtu = shared->mtu,
        .timeout = r->run->options->qp_timeout,
    };

    return !endpoint_qp_connect(&ep, qp, &peer) || write_fail(error, size, ep.error);
}

static bool
receiver_compare(const struct write_receiver *r, char *error, size_t size)
{
    const struct write_options *o = r->run->options;
    struct write_shared *shared = r->run->shared;
    struct write_remote *me = &shared->remotes[r->index];
    size_t len = shared->content.region_len;

    me->bytes_ok = content_compare(region, shared->expected, len, &me->first_bad);
    int written = o->out ? content_file_write(o->out, o->receivers[r->index], region, len) : 0;
    if (written) {
        snprintf(error, size, "cannot write the region to %s: %s", o->out, strerror(written));
        return false;
    }
    return true;
}

bool
write_receiver_step(void *aux, unsigned step, char *error, size_t size)
{
    const struct write_receiver *r = aux;

    switch ((enum write_step) step) {
    case STEP_OPEN: return receiver_open(r, error, size);
    case STEP_ARM:
        return r->run->options->scheme == SCHEME_REPLICATE ? receiver_arm_group(r, error, size)
                                                           : receiver_arm_unicast(r, error, size);
    case STEP_WORK: return receiver_compare(r, error, size);
    case N_WRITE_STEPS: break;
    }
    return false;
}
