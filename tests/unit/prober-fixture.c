/* SPDX-License-Identifier: Apache-2.0
 *
 * A small fabric of real nodes with a clock of its own, and probes in it.
 */
#include "tests/unit/prober-fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ecn.h"

extern const struct node_class srcagent_class, swedge_class;

static const uint16_t ids[N_NODES] = {0xa1, 0x100, 0x500, 0x300, 0xa3};

/* Each node's port to a neighbour. */
static uint16_t
port_to(unsigned node)
{
    return (uint16_t) (10 + node);
}

static bool
is_agent(unsigned node)
{
    return node == DPU1 || node == DPU3;
}

static struct fixture *
node_create(unsigned i)
{
    struct fixture *f = fixture_create_with(is_agent(i) ? &srcagent_class : &swedge_class, 1, 4096);
    struct node_config *c = &f->config;

    tree_config_uninit(&c->trees[0]);
    c->n_trees = c->n_sids = c->n_ports = c->n_routes = 0;
    c->id = ids[i];
    c->address = node_address(c->id);
    for (unsigned j = i ? i - 1 : 1; j <= i + 1 && j < N_NODES; j += 2) {
        fixture_add_node(f, port_to(j), ids[j]);
        if (is_agent(j)) {
            c->ports[c->n_ports - 1].role = ROLE_AGENT;
        }
    }
    fixture_add_sid(f, 0, 48, SID_UN);
    c->sids[0].block_len = SID_BLOCK_PLEN;
    return f;
}

struct probe_config *
net_add_probe(struct net *net, unsigned node, uint16_t number)
{
    static const char *const programs[] = {
        [NEAR_LOOP] = "5f00:0:100:a1::",
        [LOOP] = "5f00:0:100:500:100:a1::",
        [PEER] = "5f00:0:100:500:300:a3::",
        [PEER_BACK] = "5f00:0:300:500:100:a1::",
    };
    struct node_config *c = &net->nodes[node]->config;

    c->probes = realloc(c->probes, (c->n_probes + 1) * sizeof *c->probes);
    ck_assert_ptr_nonnull(c->probes);
    struct probe_config *p = &c->probes[c->n_probes++];
    *p = (struct probe_config){
        .number = number,
        .kind = number < PEER ? PROBE_LOOP : PROBE_PEER,
        .port = c->ports[0].number,
        .interval_usec = INTERVAL_USEC,
        .timeout_usec = INTERVAL_USEC / 2,
    };
    snprintf(p->name, sizeof p->name, "probe%u", number);
    unsigned which = number <= PEER_BACK ? number : LOOP;
    ck_assert(program_parse(programs[which], &p->program));
    if (p->kind == PROBE_PEER) {
        p->peer = node_address(node == DPU1 ? ids[DPU3] : ids[DPU1]);
        p->reverse = number == PEER ? PEER_BACK : PEER;
        ck_assert(program_parse(programs[p->reverse], &p->back));
    }
    return p;
}

static void
add_prober(struct fixture *f, uint16_t id)
{
    f->config.probers = calloc(1, sizeof *f->config.probers);
    ck_assert_ptr_nonnull(f->config.probers);
    f->config.probers[0] = node_address(id);
    f->config.n_probers = 1;
}

struct net *
net_create(uint32_t timeout_usec)
{
    struct net *net = calloc(1, sizeof *net);

    ck_assert_ptr_nonnull(net);
    net->now = 1000000;
    for (unsigned i = 0; i < N_NODES; i++) {
        net->nodes[i] = node_create(i);
    }
    add_prober(net->nodes[DPU1], ids[DPU3]);
    add_prober(net->nodes[DPU3], ids[DPU1]);
    for (int number = NEAR_LOOP; number <= PEER_BACK; number++) {
        struct probe_config *p =
            net_add_probe(net, number == PEER_BACK ? DPU3 : DPU1, (uint16_t) number);

        p->timeout_usec = timeout_usec;
    }
    for (unsigned i = 0; i < N_NODES; i++) {
        fixture_configure(net->nodes[i]);
    }
    return net;
}

void
net_destroy(struct net *net)
{
    for (unsigned i = 0; i < N_NODES; i++) {
        fixture_destroy(net->nodes[i]);
    }
    free(net);
}

static void
mark(uint8_t *bytes)
{
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
    uint8_t tc = ip6_tc(ip);

    ck_assert_uint_ne(tc & ECN_MASK, ECN_NOT_ECT);
    ip6_set_vtf(ip, tc | ECN_CE, ip6_flow_label(ip));
}

static void
rewrite(uint8_t *bytes)
{
    struct udp_hdr *udp = (struct udp_hdr *) (bytes + IP6_HDR_LEN);

    if (be16_get(udp->csum)) {
        udp->csum = be16_put((uint16_t) (be16_get(udp->csum) ^ 0x100));
    }
}

/* What node i has sent is under way. */
static void
take_sent(struct net *net, unsigned i)
{
    struct fixture *f = net->nodes[i];

    for (size_t j = 0; j < f->n_frames; j++) {
        const struct frame *frame = &f->frames[j];
        unsigned to = frame->port - port_to(0);
        struct wire *w = &net->wires[i][to];
        size_t len = frame->len - sizeof(struct eth_hdr);

        ck_assert_uint_lt(to, N_NODES);
        w->n++;
        bool lost = w->cut || w->lose_now || (w->max_len && len > w->max_len)
                    || (w->lose_each && w->n % w->lose_each == 0);
        w->lose_now -= w->lose_now > 0;
        if (lost) {
            continue;
        }
        ck_assert_uint_lt(net->n_sent, FIXTURE_MAX_FRAMES);
        struct sent_packet *s = &net->sent[net->n_sent++];
        s->when = net->now + LINK_USEC;
        s->from = i;
        s->to = to;
        s->len = len;
        memcpy(s->bytes, frame->bytes + sizeof(struct eth_hdr), len);
        if (w->marks) {
            mark(s->bytes);
        }
        if (w->rewrites) {
            rewrite(s->bytes);
        }
    }
    f->n_frames = 0;
}

static void
input_from(struct net *net, unsigned node, unsigned from, const uint8_t *ip, size_t len)
{
    struct fixture *f = net->nodes[node];

    f->now = net->now;
    fixture_input(f, port_to(from), ip, len);
    take_sent(net, node);
}

void
net_input(struct net *net, unsigned node, const uint8_t *ip, size_t len)
{
    input_from(net, node, node ? node - 1 : 1, ip, len);
}

static void
arrive(struct net *net)
{
    struct sent_packet s = net->sent[0];

    memmove(net->sent, net->sent + 1, --net->n_sent * sizeof net->sent[0]);
    net->last[s.to] = s;
    input_from(net, s.to, s.from, s.bytes, s.len);
}

void
net_run(struct net *net, uint64_t usec)
{
    uint64_t end = net->now + usec;

    for (;;) {
        uint64_t first = net->n_sent ? net->sent[0].when : UINT64_MAX;
        unsigned node = N_NODES;

        for (unsigned i = 0; i < N_NODES; i++) {
            uint64_t when = net->nodes[i]->class->deadline(net->nodes[i]->node);

            if (when < first) {
                first = when;
                node = i;
            }
        }
        if (first > end) {
            break;
        }
        net->now = first > net->now ? first : net->now;
        if (node == N_NODES) {
            arrive(net);
            continue;
        }
        struct fixture *f = net->nodes[node];
        f->now = net->now;
        f->n_frames = 0;
        f->class->timer(f->node, f->now);
        fixture_settle(f);
        take_sent(net, node);
    }
    net->now = end;
}

struct probe_info
net_probe(const struct net *net, unsigned node, uint16_t number)
{
    const struct fixture *f = net->nodes[node];
    struct probe_info info;

    for (size_t i = 0; f->class->probe(f->node, i, &info); i++) {
        if (info.config->number == number) {
            return info;
        }
    }
    ck_abort_msg("no probe %u", number);
    return info;
}

enum path_state
net_state(const struct net *net, uint16_t number)
{
    return net_probe(net, DPU1, number).health.state;
}

uint64_t
net_drops(const struct net *net)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < N_NODES; i++) {
        n += fixture_total_drops(net->nodes[i]);
    }
    return n;
}
