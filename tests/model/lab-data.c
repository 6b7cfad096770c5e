/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab's group whose data is authenticated (docs/draft-notes.md, R25 and R26): what castd gives out, and
 * somebody beside each node who keeps what it has taken, data and other nodes' responses.
 *
 * He brings the edge frames again, in this life of the edge or in a later one; with another payload or
 * PSN and an ICRC that fits; with the SRH of one in front of another; and as a packet of another epoch.
 * None of them may have a copy for a receiver.  With responses he does the same, and leaves the SRH
 * away; none may count.  At the end of a run no nonce may have come twice.
 *
 * It takes no chance from the rest of the run.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/data-auth.h"
#include "lib/icrc.h"
#include "lib/prng.h"
#include "lib/roce.h"
#include "tests/model/lab.h"

#define ANSWER_USEC 5000
#define ATTACKS_OF  4 /* frames one is preceded by an attack. */

struct lab_nonce {
    uint32_t key; /* an epoch, in each direction. */
    uint16_t from, to;
    uint32_t instance;
    uint64_t seq;
    psn_t psn; /* that went with it. */
};

static bool
is_on(const struct lab *lab)
{
    return lab->auth & AUTH_DATA;
}

void
lab_data_init(struct lab *lab)
{
    lab->faults |= is_on(lab) ? LAB_FAULT_DATA : 0;
    lab->attacks.random = lab->fabric.random;
}

/* Who is beside edges. */

static uint64_t
n_auth_drops(const struct lab_node *n)
{
    return lab_node_drops(n, DROP_auth_missing) + lab_node_drops(n, DROP_auth_bad)
           + lab_node_drops(n, DROP_auth_unknown_key) + lab_node_drops(n, DROP_auth_replay);
}

static uint64_t
n_drops(const struct lab_node *n)
{
    uint64_t sum = 0;

    for (unsigned why = 1; why < N_DROP_REASONS; why++) {
        sum += lab_node_drops(n, (enum drop_reason) why);
    }
    return sum;
}

/* Do the tree's packets come to the node by this address? */
static bool
is_address_of(const struct lab_node *n, const struct tree_config *t, const in6_wire_t *dst)
{
    struct in6_addr own = tree_mode(t->mode)->addressed_to_group ? t->mcast_group
                          : !IN6_IS_ADDR_UNSPECIFIED(&t->replication_sid)
                              ? t->replication_sid
                              : node_sid(n->base.id, SID_FUNC_END_MT);

    return !memcmp(dst, &own, sizeof own);
}

static bool
has_receivers(const struct tree_config *t)
{
    for (size_t i = 0; i < t->n_branches; i++) {
        if (t->branches[i].kind == BRANCH_RECEIVER) {
            return true;
        }
    }
    return false;
}

/* Is the frame one of the group for a node that has receivers in its epoch? */
static bool
is_for_edge(const struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);

    for (size_t i = 0; h->data_ofs && h->bth_ofs && h->inner.ofs && i < n->n_trees; i++) {
        const struct tree_config *t = &n->trees[i];

        if (t->designated_qpn == be24_get(bth->dest_qp) && has_receivers(t)
            && is_address_of(n, t, &ip->dst) && n != &n->lab->nodes[n->lab->agent]) {
            return true;
        }
    }
    return false;
}

/* Is it a response or CNP, for a node that merges those of its epoch, or passes them to the source? */
static bool
is_response_for(const struct lab_node *n, const uint8_t *frame, const struct parsed *h)
{
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);
    const struct in6_addr own = node_sid(n->base.id, SID_FUNC_RESPONSE);

    for (size_t i = 0; h->bth_ofs && i < n->n_trees; i++) {
        const struct tree_config *t = &n->trees[i];
        bool passes = n == &n->lab->nodes[n->lab->agent] && !t->root;
        bool is_plain = passes && !h->inner.ofs && !memcmp(&ip->src, &t->proxy, sizeof t->proxy);
        bool is_here = h->inner.ofs && !memcmp(&ip->dst, &own, sizeof own);

        if ((passes ? t->source_qpn : t->designated_qpn) == be24_get(bth->dest_qp)
            && t->auth.responses && (is_plain || is_here)
            && (h->opcode == RC_ACK || h->opcode == ROCE_CNP)) {
            return true;
        }
    }
    return false;
}

static void
mend(struct lab_frame *f, const struct parsed *h)
{
    size_t ip = h->inner.ofs;

    icrc_store(f->bytes + h->icrc_ofs,
               icrc_compute(f->bytes + ip, (size_t) (h->icrc_ofs - h->inner.ofs)));
}

/* Has that PSN been sent behind the SRH of 'f'?  Its tag then fits what went with it: what was sent again, with
 * AckReq or without, or what 'f' was before a link or somebody on the way altered it. */
static bool
fits(const struct lab *lab, const struct lab_frame *f, const struct parsed *h, psn_t psn)
{
    const struct data_tlv *tlv = (const void *) (f->bytes + h->data_ofs);

    for (size_t i = 0; i < lab->nonces.n; i++) {
        const struct lab_nonce *nonce = &lab->nonces.v[i];

        if (psn_eq(nonce->psn, psn) && nonce->instance == be32_get(tlv->instance)
            && nonce->seq == be64_get(tlv->seq)) {
            return true;
        }
    }
    return false;
}

/* The SRH of 'f', parsed as 'h', in front of another inner packet of the same length. */
static bool
splice(const struct lab *lab, struct lab_frame *f, const struct parsed *h,
       const struct lab_frame *other)
{
    size_t len = (size_t) (h->inner.end - h->inner.ofs);
    struct parsed o;

    if (!other->len || parse_frame(other->bytes, (uint32_t) other->len, &o) || !o.inner.ofs
        || (size_t) (o.inner.end - o.inner.ofs) != len
        || fits(lab, f, h, bth_psn((const void *) (other->bytes + o.bth_ofs)))) {
        return false;
    }
    memcpy(f->bytes + h->inner.ofs, other->bytes + o.inner.ofs, len);
    return true;
}

/* The response without the SRH, or without the tunnel. */
static void
strip(struct lab_frame *f, const struct parsed *h, bool whole)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) (f->bytes + h->ip.ofs);
    size_t len = (size_t) (h->inner.ofs - h->ip.ofs) - (whole ? 0 : sizeof *ip);

    ip->nh = IP6_NH_IPV6;
    ip->plen = be16_put((uint16_t) (be16_get(ip->plen) - len));
    memmove(ip + !whole, f->bytes + h->inner.ofs, f->len - h->inner.ofs);
    f->len -= len;
}

/* Makes of 'f' what its agent has never sent, or what the edge has had.  False: of this one nothing.
 * What he or a link has changed before is not undone by it: nodes that pass a frame on do not verify. */
static bool
forge(struct lab_node *n, struct lab_frame *f, const struct parsed *h)
{
    struct lab_attacks *a = &n->lab->attacks;
    bool is_response = is_response_for(n, f->bytes, h);
    const struct lab_frame *kept =
        &(is_response ? n->kept_ups : n->kept)[prng_below(&a->random, LAB_N_KEPT)];
    struct bth *bth = (struct bth *) (f->bytes + h->bth_ofs);

    switch (prng_below(&a->random, 6)) {
    case 0:
        if (is_response) {
            bool passes = n == &n->lab->nodes[n->lab->agent] && !n->trees[0].root;

            strip(f, h, passes && bth_psn(bth).v % 2);
            break;
        }
        if (!h->payload_len) {
            return false;
        }
        f->bytes[h->payload_ofs + prng_below(&a->random, h->payload_len)] += 17;
        mend(f, h);
        break;
    case 1:
        bth_set_psn(bth, psn_add(bth_psn(bth), 3));
        mend(f, h);
        break;
    case 2:
        if (!splice(n->lab, f, h, kept)) {
            return false;
        }
        break;
    case 3:
        if (n->n_trees < 2) {
            return false;
        }
        bth->dest_qp =
            be24_put(n->trees[n->trees[0].designated_qpn == be24_get(bth->dest_qp)].designated_qpn);
        mend(f, h);
        if (!is_for_edge(n, f->bytes, h) && !is_response_for(n, f->bytes, h)) {
            return false;
        }
        break;
    default: /* as it was. */
        if (!kept->len) {
            return false;
        }
        *f = *kept;
        n->lab->n_seen[is_response ? LAB_SAW_response_replayed : LAB_SAW_replayed]++;
        return true;
    }
    n->lab->n_seen[is_response ? LAB_SAW_response_altered : LAB_SAW_altered]++;
    return true;
}

/* Frames of an epoch that is over are dropped for that. */
static bool
is_of_tree(const struct lab_node *n, const struct lab_frame *f)
{
    struct parsed h;

    return !parse_frame(f->bytes, (uint32_t) f->len, &h)
           && (is_for_edge(n, f->bytes, &h) || is_response_for(n, f->bytes, &h));
}

/* It must be dropped: a copy might still wait for a neighbour. */
static void
bring(struct lab_node *n, const struct lab_frame *f)
{
    struct lab *lab = n->lab;
    uint64_t before = n_drops(n);
    struct packet *p = packet_from_bytes(lab->pool, f->bytes, f->len);

    LAB_REQUIRE(lab, p, "the pool is empty");
    lab->attacks.under_way = true;
    n->class->input(n->node, f->port, p, lab->fabric.now);
    lab_node_event(lab, n);
    lab->attacks.under_way = false;
    LAB_REQUIRE(lab, n_drops(n) > before, "%s takes what nobody has sent, or not twice",
                n->plan->name);
}

static void
attack(struct lab_node *n, struct fabric_end to, const uint8_t *frame, size_t len,
       const struct parsed *h)
{
    struct lab_frame f = {.port = to.port, .len = len};

    memcpy(f.bytes, frame, len);
    if (!forge(n, &f, h) || !is_of_tree(n, &f)) {
        return;
    }
    bring(n, &f);
}

bool
lab_data_before(struct lab_node *n, struct fabric_end to, const uint8_t *frame, size_t len,
                const struct parsed *h)
{
    struct lab *lab = n->lab;

    if (!is_on(lab) || (!is_for_edge(n, frame, h) && !is_response_for(n, frame, h))) {
        return false;
    }
    if (!lab->exact && len <= sizeof n->kept[0].bytes
        && prng_below(&lab->attacks.random, ATTACKS_OF) == 0) {
        attack(n, to, frame, len, h);
    }
    n->drops_before = n_drops(n);
    return true;
}

void
lab_data_after(struct lab_node *n, struct fabric_end to, const uint8_t *frame, size_t len)
{
    struct lab *lab = n->lab;
    struct parsed h;

    if (n_drops(n) == n->drops_before && len <= sizeof n->kept[0].bytes
        && !parse_frame(frame, (uint32_t) len, &h)) {
        struct lab_frame *kept = is_response_for(n, frame, &h) ? n->kept_ups : n->kept;

        kept += prng_below(&lab->attacks.random, LAB_N_KEPT);

        kept->port = to.port;
        kept->len = len;
        memcpy(kept->bytes, frame, len);
    }
}

void
lab_data_look(struct lab_node *n)
{
    uint64_t drops = is_on(n->lab) ? n_auth_drops(n) : 0;

    if (drops > n->auth_drops && !n->lab->attacks.under_way) {
        n->lab->fabric.last_loss = n->lab->fabric.now;
    }
    n->auth_drops = drops;
}

/* What castd does. */

static void
tell(void *lab, unsigned node, unsigned unused)
{
    (void) unused;
    lab_node_configure(lab, node);
}

static void
replay_all(struct lab_node *n, const struct lab_frame kept[LAB_N_KEPT], uint64_t *n_seen)
{
    for (unsigned i = 0; !n->lab->exact && n->node && i < LAB_N_KEPT; i++) {
        if (kept[i].len && is_of_tree(n, &kept[i])) {
            bring(n, &kept[i]);
            ++*n_seen;
        }
    }
}

/* The node, which has been answered, gets at once what it has taken before. */
static void
tell_and_replay(void *lab_, unsigned node, unsigned unused)
{
    struct lab *lab = lab_;
    struct lab_node *n = &lab->nodes[node];

    tell(lab, node, unused);
    replay_all(n, n->kept, &lab->n_seen[LAB_SAW_replayed]);
    replay_all(n, n->kept_ups, &lab->n_seen[LAB_SAW_response_replayed]);
}

/* The node that takes what the tree's node says, of those of the lab. */
static unsigned
parent_of(const struct lab *lab, const struct tree_config *t)
{
    for (unsigned i = 0; i < lab->n_nodes && !t->root; i++) {
        if (lab->nodes[i].base.id == node_id_of(&t->parent_sid)) {
            return i;
        }
    }
    return lab->agent;
}

static void
answer(struct lab *lab, unsigned node, unsigned epoch)
{
    struct lab_data_row *row = &lab->nodes[node].data[epoch];

    lab->instance++;
    row->answered = row->own;
    row->floor = row->instance = lab->instance;
    lab->nodes[lab->agent].data[epoch].instance = lab->instance;
}

static uint64_t
soon(struct lab *lab)
{
    return lab->fabric.now + 1 + prng_below(&lab->attacks.random, ANSWER_USEC);
}

static void
answer_later(void *lab_, unsigned node, unsigned epoch)
{
    struct lab *lab = lab_;

    answer(lab, node, epoch);
    fabric_schedule(&lab->fabric, soon(lab), tell_and_replay, node, 0);
    fabric_schedule(&lab->fabric, soon(lab), tell, lab->agent, 0);
    for (unsigned i = 0; i < lab->n_nodes; i++) {
        const struct lab_node *n = &lab->nodes[i];

        if (i != lab->agent && n->n_trees && parent_of(lab, &n->trees[n->n_trees - 1]) == node) {
            fabric_schedule(&lab->fabric, soon(lab), tell, i, 0);
        }
    }
}

void
lab_data_set(struct lab_node *n, struct tree_config *t)
{
    struct lab *lab = n->lab;
    unsigned epoch = t->epoch - 1;
    struct lab_data_row *row = &n->data[epoch];
    uint32_t response = row->floor;

    if (!row->own) {
        row->own = ++lab->n_lives;
        if (lab->data_started) {
            fabric_schedule(&lab->fabric, soon(lab), answer_later, (unsigned) (n - lab->nodes),
                            epoch);
        }
    }
    if (n != &lab->nodes[lab->agent]) {
        uint32_t floor = lab->nodes[parent_of(lab, t)].data[epoch].floor;

        response = floor > response ? floor : response;
    }
    t->auth.instance = data_instance(row->own, row->answered, row->instance);
    t->auth.response_instance = data_instance(row->own, row->answered, response);
}

/* At first all are answered before anything is sent. */
void
lab_data_start(struct lab *lab)
{
    for (unsigned i = 0; is_on(lab) && i < lab->n_nodes; i++) {
        for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
            if (lab->nodes[i].data[epoch].own) {
                answer(lab, i, epoch);
            }
        }
    }
    for (unsigned i = 0; is_on(lab) && i < lab->n_nodes; i++) {
        lab_node_configure(lab, i);
    }
    lab->data_started = true;
}

void
lab_data_new_life(struct lab_node *n)
{
    for (unsigned epoch = 0; epoch < LAB_N_EPOCHS; epoch++) {
        n->data[epoch].own = 0;
    }
}

/* Nonces. */

void
lab_data_sent(struct lab *lab, const struct lab_node *n, const uint8_t *frame,
              const struct parsed *h)
{
    struct lab_nonces *nonces = &lab->nonces;
    const struct data_tlv *tlv = (const void *) (frame + h->data_ofs);
    const struct bth *bth = (const void *) (frame + h->bth_ofs);
    const struct ip6_hdr_wire *ip = (const void *) (frame + h->ip.ofs);
    const struct srh_hdr *srh = (const void *) (frame + h->srh_ofs);
    bool is_response = h->opcode == RC_ACK || h->opcode == ROCE_CNP;
    struct in6_addr segment;

    if (!h->data_ofs || !h->bth_ofs || memcmp(&ip->src, &n->base.address, sizeof ip->src)
        || lab_comes_again(n, ip) || (!is_response && n != &lab->nodes[lab->agent])) {
        return;
    }
    memcpy(&segment, srh + 1, sizeof segment);
    if (nonces->n == nonces->size) {
        nonces->size = nonces->size ? 2 * nonces->size : 1024;
        nonces->v = realloc(nonces->v, nonces->size * sizeof *nonces->v);
        if (!nonces->v) {
            abort();
        }
    }
    nonces->v[nonces->n++] = (struct lab_nonce){
        .key = be24_get(bth->dest_qp),
        .from = n->base.id,
        .to = is_response ? node_id_of(&segment) : 0,
        .instance = be32_get(tlv->instance),
        .seq = be64_get(tlv->seq),
        .psn = bth_psn(bth),
    };
}

static int
compare(const void *a_, const void *b_)
{
    const struct lab_nonce *a = a_, *b = b_;

    return a->key != b->key             ? (a->key > b->key ? 1 : -1)
           : a->from != b->from         ? (a->from > b->from ? 1 : -1)
           : a->to != b->to             ? (a->to > b->to ? 1 : -1)
           : a->instance != b->instance ? (a->instance > b->instance ? 1 : -1)
                                        : (a->seq > b->seq) - (a->seq < b->seq);
}

void
lab_data_check_end(struct lab *lab)
{
    struct lab_nonces *nonces = &lab->nonces;

    if (nonces->n) {
        qsort(nonces->v, nonces->n, sizeof *nonces->v, compare);
    }
    for (size_t i = 1; i < nonces->n; i++) {
        LAB_REQUIRE(lab, compare(&nonces->v[i - 1], &nonces->v[i]),
                    "node %04x used nonce %" PRIu32 ", %" PRIu64 " twice", nonces->v[i].from,
                    nonces->v[i].instance, nonces->v[i].seq);
    }
}
