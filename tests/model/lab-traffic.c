/* SPDX-License-Identifier: Apache-2.0
 *
 * The endpoints of a lab and what they send each other.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/icrc.h"
#include "lib/roce.h"
#include "tests/model/lab.h"

#define DESIGNATED_QPN  0x101
#define SOURCE_QPN      0x4711
#define DESIGNATED_RKEY 0xdeadbeefu
#define REPLICATION_ID  7

uint32_t
lab_designated_qpn(unsigned epoch)
{
    return DESIGNATED_QPN + epoch;
}

uint32_t
lab_source_qpn(unsigned epoch)
{
    return SOURCE_QPN + epoch;
}

uint32_t
lab_receiver_qpn(unsigned epoch, unsigned i)
{
    return 0x1001 + i + 0x1000 * epoch;
}

static uint32_t
receiver_rkey(unsigned i)
{
    return 0x200 + 0x31 * i;
}

static uint64_t
receiver_va(unsigned i)
{
    return 0x7f0000001000u + 0x123000u * i;
}

psn_t
lab_epoch_start(const struct lab *lab, unsigned epoch)
{
    return psn_add(lab->start_psn, lab->epoch_step * (int32_t) epoch);
}

struct plan_group
lab_plan_group(const struct lab *lab, unsigned epoch, const struct lab_set *removed)
{
    struct plan_group g = {
        .name = "g",
        .epoch = epoch + 1,
        .proxy = lab_proxy,
        .replication_id = REPLICATION_ID,
        .designated_qpn = lab_designated_qpn(epoch),
        .start_psn = lab_epoch_start(lab, epoch),
        .mtu = lab->mtu,
        .designated_rkey = DESIGNATED_RKEY,
        .source_host = "s",
        .source_qpn = lab_source_qpn(epoch),
        .mode = lab->mode,
        .provisioned = lab->provisioned,
        .members = calloc(lab->n, sizeof *g.members),
        .agent = true,
        .open = true,
    };
    if (!g.members) {
        abort();
    }
    snprintf(g.via, sizeof g.via, "%s", lab->via);
    g.n_planes = lab->n_planes;
    for (unsigned i = 0; i < lab->n_planes; i++) {
        snprintf(g.planes[i], sizeof g.planes[i], "%s", lab->planes[i].name);
    }
    if (lab->preferred_plane) {
        snprintf(g.preferred_plane, sizeof g.preferred_plane, "%s",
                 lab->planes[lab->preferred_plane - 1].name);
    }
    for (unsigned i = 0; i < lab->n; i++) {
        const struct lab_receiver *r = &lab->receivers[i];
        bool is_member = !lab_set_has(removed, i) && !r->absent;
        struct plan_member *m = &g.members[g.n_members++];

        bool asked = r->asked && epoch == lab->epoch;
        unsigned made_in = r->made_in[epoch];

        *m = (struct plan_member){
            .va = receiver_va(i),
            .len = lab->region_len,
            .rkey = receiver_rkey(i),
            .branch = i + 1,
            .qpn = lab_receiver_qpn(made_in, i),
            .designated_qpn = made_in != epoch ? lab_designated_qpn(made_in) : 0,
            .provision = is_member,
            .ask = asked,
            .psn = r->is_late ? r->psn : psn_add(g.start_psn, r->shift[epoch]),
            .copy = is_member && !asked && (!r->is_late || r->named),
        };
        snprintf(m->host, sizeof m->host, "r%u", i + 1);
    }
    return g;
}

psn_t
lab_expected_by(const struct lab *lab, unsigned epoch, unsigned receiver)
{
    const struct lab_receiver *r = &lab->receivers[receiver];
    bool same = r->made_in[epoch] == r->made_in[lab->epoch];
    return epoch < lab->epoch && !same ? r->confirmed[epoch] : rc_expected(r->endpoint);
}

psn_t
lab_confirmed_by(const struct lab *lab, unsigned epoch, unsigned receiver)
{
    return psn_add(lab_expected_by(lab, epoch, receiver),
                   -lab_shift(&lab->receivers[receiver], epoch));
}

/* Receive buffers. */

/* Posts the buffer for the next message that needs one.  False: none does. */
static bool
post_buffer(struct lab *lab, struct lab_receiver *r)
{
    while (r->n_buffers < lab->n_messages) {
        const struct lab_message *m = &lab->messages[r->n_buffers++];
        if (m->op != RC_OP_WRITE) {
            bool is_send = m->op == RC_OP_SEND || m->op == RC_OP_SEND_IMM;
            rc_post_recv(r->endpoint, r->memory + m->ofs, is_send ? m->len : 0);
            return true;
        }
    }
    return false;
}

/* A receiver that is slow with its buffers. */
static void
post_later(void *lab_, unsigned receiver, unsigned epoch)
{
    struct lab *lab = lab_;

    if (epoch == lab->epoch && post_buffer(lab, &lab->receivers[receiver])) {
        fabric_schedule(&lab->fabric, lab->fabric.now + lab_random(lab, 3000), post_later, receiver,
                        epoch);
    }
}

/* The source. */

static void
post_message(struct lab *lab)
{
    const struct lab_message *m = &lab->messages[lab->n_posted];

    rc_post(lab->source,
            &(struct rc_wr){
                .id = lab->n_posted++,
                .op = m->op,
                .data = lab->data + m->ofs,
                .len = m->len,
                .va = m->ofs,
                .rkey = DESIGNATED_RKEY,
            },
            lab->fabric.now);
}

static void
go_on(void *lab_, unsigned unused, unsigned unused2)
{
    struct lab *lab = lab_;

    (void) unused, (void) unused2;
    lab->pauses = false;
    post_message(lab);
    lab_post_work(lab);
}

/* Does the source rest before the next message? */
static bool
pauses(struct lab *lab)
{
    uint32_t limit = lab->awaits_node ? 2 * REVERSE_LIFETIME_USEC : lab->max_pause;

    if (!lab->pauses && limit && lab_random(lab, 2)) {
        lab->pauses = true;
        fabric_schedule(&lab->fabric, lab->fabric.now + lab_random(lab, limit), go_on, 0, 0);
    }
    return lab->pauses;
}

void
lab_post_work(struct lab *lab)
{
    unsigned depth = lab->warm_up && !lab->n_done ? 1 : lab->depth;

    while (lab->n_posted < lab->n_messages && lab->n_posted < lab->n_done + depth) {
        bool now = lab->rests && lab->n_posted == lab->rests_before;

        if (now && lab->n_done == lab->n_posted) {
            lab_rest(lab);
        }
        if (now || (lab->rests && lab->rests_before == UINT_MAX)) {
            return;
        }
        if (pauses(lab)) {
            return;
        }
        post_message(lab);
    }
}

static void
source_completed(void *lab_, uint64_t id, enum rc_status status)
{
    struct lab *lab = lab_;

    if (lab->trace) {
        fprintf(stderr, "%10" PRIu64 " message %u: status %d\n", lab->fabric.now, (unsigned) id,
                status);
    }
    if (status) {
        lab->failure = lab->failure ? lab->failure : status;
        return;
    }
    LAB_REQUIRE(lab, id == lab->n_done, "message %u completed", (unsigned) id);
    lab_check_completed(lab, (unsigned) id);
    lab->n_done++;
    lab_post_work(lab);
}

static void
source_tx(void *lab, const uint8_t *ip, size_t len)
{
    lab_host_send(lab, lab_source_station(lab), ip, len);
}

/* Receivers. */

/* Says what the receiver said about a PSN that nobody sends in this epoch. */
static void
forge(struct lab *lab, unsigned station, const uint8_t *ip, size_t len)
{
    uint8_t copy[RC_MAX_PACKET];
    size_t icrc_ofs = len - ROCE_ICRC_LEN;
    psn_t last = lab->messages[lab->n_messages - 1].last_psn;

    memcpy(copy, ip, len);
    bth_set_psn((struct bth *) (copy + IP6_HDR_LEN + sizeof(struct udp_hdr)),
                psn_add(last, 1 + (int32_t) lab_random(lab, 1u << lab_random(lab, 22))));
    icrc_store(copy + icrc_ofs, icrc_compute(copy, icrc_ofs));
    lab_host_send(lab, station, copy, len);
}

static void
say_again(void *lab_, unsigned receiver, unsigned unused)
{
    struct lab *lab = lab_;
    const struct lab_receiver *r = &lab->receivers[receiver];

    (void) unused;
    lab_host_send(lab, lab_source_station(lab) + 1 + receiver, r->repeat, r->repeat_len);
}

static void
receiver_tx(void *r_, const uint8_t *ip, size_t len)
{
    struct lab_receiver *r = r_;
    struct lab *lab = r->lab;
    unsigned station = lab_source_station(lab) + 1 + (unsigned) (r - lab->receivers);

    lab_host_send(lab, station, ip, len);
    if (r->is_late && !r->repeat_len) {
        memcpy(r->repeat, ip, len);
        r->repeat_len = len;
        fabric_schedule(&lab->fabric, lab->fabric.now + lab_random(lab, 30000), say_again,
                        (unsigned) (r - lab->receivers), 0);
    }
    if (lab->forged && lab_random(lab, 8) == 0) {
        forge(lab, station, ip, len);
    }
}

static void
receiver_start(struct lab *lab, unsigned i, const struct rc_config *source)
{
    struct lab_receiver *r = &lab->receivers[i];
    struct rc_config c = *source;

    memset(r->memory, 0, lab->region_len);
    c.own = lab_receiver_address(i);
    c.qpn = lab_receiver_qpn(lab->epoch, i);
    c.gap_usec = 0;
    c.ecn = false;
    c.obey_usec = 0;
    c.cnp_usec = lab_set_has(&lab->congestion.nic_cnps, i) ? lab->congestion.interval_usec : 0;
    c.region = r->memory;
    c.va = receiver_va(i);
    c.region_len = lab->region_len;
    c.rkey = receiver_rkey(i);
    c.start_psn = r->is_late ? r->psn : c.start_psn;
    r->lab = lab;
    r->made_in[lab->epoch] = lab->epoch;
    r->shift[lab->epoch] = 0;
    r->endpoint = rc_create(&c, &(struct rc_ops){.tx = receiver_tx, .aux = r});
    r->n_buffers = 0;
    if (lab->buffers == LAB_BUFFERS_LATE
        || (lab->buffers == LAB_BUFFERS_MIXED && lab_random(lab, 4) == 0)) {
        uint64_t stall = lab->max_stall ? lab_random(lab, lab->max_stall) : 0;
        fabric_schedule(&lab->fabric, lab->fabric.now + stall, post_later, i, lab->epoch);
    } else {
        while (post_buffer(lab, r)) {
        }
    }
}

static struct rc_config
source_config(const struct lab *lab)
{
    return (struct rc_config){
        .own = lab_source_address,
        .peer = lab_proxy,
        .qpn = lab_source_qpn(lab->epoch),
        .dest_qpn = lab_designated_qpn(lab->epoch),
        .start_psn = lab_epoch_start(lab, lab->epoch),
        .mtu = lab->mtu,
        .timeout_usec = lab->timeout_usec,
        .retry_cnt = RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .min_rnr_timer = lab->min_rnr_timer,
        .gap_usec = lab->gap,
        .ecn = lab->congestion.ecn,
        .obey_usec =
            lab->congestion.rate_control == RATE_BY_NIC ? lab->congestion.interval_usec : 0,
    };
}

void
lab_receiver_restart(struct lab *lab, unsigned i)
{
    struct lab_receiver *r = &lab->receivers[i];
    struct rc_config c = source_config(lab);

    for (unsigned epoch = 0; epoch < lab->epoch; epoch++) {
        r->confirmed[epoch] = lab_expected_by(lab, epoch, i);
    }
    rc_destroy(r->endpoint);
    receiver_start(lab, i, &c);
}

/* New queue pairs, memory and messages for the current epoch.  Some receivers keep theirs. */
void
lab_endpoints_start(struct lab *lab)
{
    struct rc_config c = source_config(lab);
    uint32_t n_packets = 0;

    lab->n_posted = lab->n_done = 0;
    for (uint32_t i = 0; i < lab->region_len; i++) {
        lab->data[i] = (uint8_t) lab_random(lab, 256);
    }
    for (unsigned i = 0; i < lab->n_messages; i++) {
        n_packets += (lab->messages[i].len + lab->mtu - 1) / lab->mtu;
        lab->messages[i].last_psn = psn_add(c.start_psn, (int32_t) n_packets - 1);
    }
    lab->source =
        rc_create(&c, &(struct rc_ops){.tx = source_tx, .complete = source_completed, .aux = lab});
    for (unsigned i = 0; i < lab->n; i++) {
        struct lab_receiver *r = &lab->receivers[i];

        if (lab->epoch && r->keeps) {
            r->made_in[lab->epoch] = r->made_in[lab->epoch - 1];
            r->asked = true;
        } else {
            receiver_start(lab, i, &c);
        }
    }
}

void
lab_endpoints_stop(struct lab *lab, bool for_good)
{
    for (unsigned i = 0; i < lab->n; i++) {
        struct lab_receiver *r = &lab->receivers[i];
        r->confirmed[lab->epoch] = lab_expected_by(lab, lab->epoch, i);
        if (for_good || !r->keeps) {
            rc_destroy(r->endpoint);
        }
    }
    rc_destroy(lab->source);
}
