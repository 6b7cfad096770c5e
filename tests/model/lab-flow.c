/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs from host to host in a lab, which compete with the group's for links.
 *
 * A flow writes one message after the other into the same memory of its receiver.  It is done when
 * all are completed; each must be in memory by then.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/model/lab.h"

#define FLOW_RKEY   0x5eed
#define FLOW_WINDOW 4 /* unless a test says otherwise. */

struct lab_flow *
lab_flow_add(struct lab *lab, const char *from, const char *to)
{
    LAB_REQUIRE(lab, lab->net.n_flows < LAB_MAX_FLOWS, "too many flows");
    struct lab_flow *f = &lab->net.flows[lab->net.n_flows++];

    *f = (struct lab_flow){
        .lab = lab,
        .from = lab_station_of(lab, from),
        .to = lab_station_of(lab, to),
        .gap = 1,
        .message_len = lab->mtu,
        .window = FLOW_WINDOW,
    };
    return f;
}

void
lab_flow_post(struct lab_flow *f)
{
    while (f->n_posted < f->n_messages && f->n_posted < f->n_done + f->window) {
        rc_post(f->sender,
                &(struct rc_wr){
                    .id = f->n_posted++,
                    .op = RC_OP_WRITE,
                    .data = f->data,
                    .len = f->message_len,
                    .rkey = FLOW_RKEY,
                },
                f->lab->fabric.now);
    }
}

static void
completed(void *f_, uint64_t id, enum rc_status status)
{
    struct lab_flow *f = f_;

    LAB_REQUIRE(f->lab, !status && id == f->n_done, "a flow's message %u: status %d", (unsigned) id,
                status);
    LAB_REQUIRE(f->lab, !memcmp(f->memory, f->data, f->message_len),
                "a flow's message %u completed, and is not there", (unsigned) id);
    f->n_done++;
    lab_flow_post(f);
}

static void
sender_tx(void *f_, const uint8_t *ip, size_t len)
{
    struct lab_flow *f = f_;

    lab_host_send(f->lab, f->from, ip, len);
}

static void
receiver_tx(void *f_, const uint8_t *ip, size_t len)
{
    struct lab_flow *f = f_;

    lab_host_send(f->lab, f->to, ip, len);
}

static void
begin(void *lab_, unsigned i, unsigned unused)
{
    struct lab *lab = lab_;

    (void) unused;
    lab_flow_post(&lab->net.flows[i]);
}

static void
start(struct lab *lab, struct lab_flow *f)
{
    uint32_t qpn = LAB_FLOW_QPN + 2 * (uint32_t) (f - lab->net.flows);
    struct rc_config sender = {
        .own = lab_station_address(lab, f->from),
        .peer = lab_station_address(lab, f->to),
        .qpn = qpn,
        .dest_qpn = qpn + 1,
        .start_psn = lab->start_psn,
        .mtu = lab->mtu,
        .timeout_usec = lab->timeout_usec,
        .retry_cnt = RC_RETRY_FOREVER,
        .rnr_retry = RC_RETRY_FOREVER,
        .min_rnr_timer = lab->min_rnr_timer,
        .gap_usec = f->gap,
        .ecn = f->ecn,
        .obey_usec = f->obeys ? lab->congestion.interval_usec : 0,
    };
    f->data = malloc(f->message_len);
    f->memory = calloc(1, f->message_len);
    if (!f->data || !f->memory) {
        abort();
    }
    for (uint32_t i = 0; i < f->message_len; i++) {
        f->data[i] = (uint8_t) lab_random(lab, 256);
    }
    struct rc_config receiver = {
        .own = sender.peer,
        .peer = sender.own,
        .qpn = sender.dest_qpn,
        .dest_qpn = qpn,
        .start_psn = lab->start_psn,
        .mtu = lab->mtu,
        .min_rnr_timer = lab->min_rnr_timer,
        .region = f->memory,
        .region_len = f->message_len,
        .rkey = FLOW_RKEY,
        .cnp_usec = f->obeys ? lab->congestion.interval_usec : 0,
    };
    f->sender =
        rc_create(&sender, &(struct rc_ops){.tx = sender_tx, .complete = completed, .aux = f});
    f->receiver = rc_create(&receiver, &(struct rc_ops){.tx = receiver_tx, .aux = f});
    fabric_schedule(&lab->fabric, lab->fabric.now + f->begins, begin,
                    (unsigned) (f - lab->net.flows), 0);
}

void
lab_flows_start(struct lab *lab)
{
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        start(lab, &lab->net.flows[i]);
    }
}

void
lab_flows_destroy(struct lab *lab)
{
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        struct lab_flow *f = &lab->net.flows[i];

        rc_destroy(f->sender);
        rc_destroy(f->receiver);
        free(f->data);
        free(f->memory);
    }
}

bool
lab_flows_done(const struct lab *lab)
{
    for (unsigned i = 0; i < lab->net.n_flows; i++) {
        const struct lab_flow *f = &lab->net.flows[i];
        struct rc_info info;

        rc_get_info(f->sender, &info);
        if (f->n_done < f->n_messages && !info.stuck) {
            return false;
        }
    }
    return true;
}

static void
check_order(const struct lab_flow *f)
{
    struct rc_info info;

    rc_get_info(f->receiver, &info);
    LAB_REQUIRE(f->lab, !f->in_order || !info.n_ahead, "packets of a flow overtook others");
}

bool
lab_flow_input(struct lab *lab, unsigned station, const uint8_t *frame, size_t len,
               const struct parsed *h)
{
    if (!h->bth_ofs || !lab->net.n_flows) {
        return false;
    }
    uint32_t qpn = be24_get(((const struct bth *) (frame + h->bth_ofs))->dest_qp);
    uint32_t i = (qpn - LAB_FLOW_QPN) / 2;
    if (qpn < LAB_FLOW_QPN || i >= lab->net.n_flows) {
        return false;
    }
    struct lab_flow *f = &lab->net.flows[i];
    bool to_sender = qpn % 2 == 0;
    LAB_REQUIRE(lab, station == (to_sender ? f->from : f->to), "a flow's packet came to %s",
                lab_station_name(lab, station));
    rc_input(to_sender ? f->sender : f->receiver, frame + sizeof(struct eth_hdr),
             len - sizeof(struct eth_hdr), lab->fabric.now);
    check_order(f);
    return true;
}
