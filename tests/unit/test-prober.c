/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes in a fabric of real nodes: what is sent, what is found out, and how fast.  Who forges or asks
 * without right is in test-reflector.c.
 */
#include <stdio.h>
#include <time.h>

#include "lib/alloc.h"
#include "lib/ecn.h"
#include "lib/inet-csum.h"
#include "lib/planes.h"
#include "lib/prober.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/prober-fixture.h"
#include "tests/unit/suites.h"

#define TIMEOUT (INTERVAL_USEC / 2)
#define SEC     UINT64_C(1000000)

static struct prober *
prober_of(const struct net *net, unsigned node)
{
    return ((struct node_base *) net->nodes[node]->node)->prober;
}

/* Changes that the node was told of. */
static struct {
    unsigned n;
    uint16_t number;
    enum path_state state;
    uint64_t when;
} told;

static void
note_change(struct node_base *base, uint16_t number, uint64_t now)
{
    told.n++;
    told.number = number;
    told.state = prober_state(base->prober, number);
    told.when = now;
}

/* A fabric in which all probes were good for a while. */
static struct net *
good_net(uint32_t timeout)
{
    struct net *net = net_create(timeout);

    net_run(net, 10 * INTERVAL_USEC);
    for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
        ck_assert_int_eq(net_state(net, number), PATH_GOOD);
    }
    ((struct node_base *) net->nodes[DPU1]->node)->way_changed = note_change;
    told.n = 0;
    return net;
}

static void
cut(struct net *net, unsigned a, unsigned b, bool is_cut)
{
    net->wires[a][b].cut = net->wires[b][a].cut = is_cut;
}

static void
make_long(struct net *net)
{
    struct node_config *c = &net->nodes[DPU1]->config;

    for (size_t i = 0; i < c->n_probes; i++) {
        c->probes[i].large = LONG_LEN;
    }
    net->nodes[DPU1]->now = net->now;
    fixture_configure(net->nodes[DPU1]);
}

/* Nobody but the prober has to do with a loop: switches shift it like data.
 *
 * Proves AB-32, AB-35, AB-39. */
START_TEST(all_is_well)
    {
        struct net *net = net_create(TIMEOUT);
        static const uint32_t rtts[] = {[NEAR_LOOP] = 2, [LOOP] = 4, [PEER] = 8};

        for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
            ck_assert_int_eq(net_state(net, number), PATH_UNKNOWN);
        }
        net_run(net, 40 * INTERVAL_USEC);
        for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
            struct probe_info info = net_probe(net, DPU1, number);

            ck_assert_int_eq(info.health.state, PATH_GOOD);
            ck_assert_uint_ge(info.n_sent, 40);
            ck_assert_uint_le(info.n_sent, 41);
            ck_assert_uint_eq(info.n_returned, info.n_sent);
            ck_assert_uint_eq(info.n_lost + info.n_late + info.n_marked + info.n_marked_back, 0);
            ck_assert_uint_eq(info.n_lost_there + info.n_lost_back, 0);
            ck_assert_uint_eq(info.rtt_usec, rtts[number] * LINK_USEC);
            ck_assert_uint_eq(info.rtt_mean_usec, rtts[number] * LINK_USEC);
            ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), number), 0);
            ck_assert(info.heard == (number == PEER));
        }
        ck_assert(net_probe(net, DPU3, PEER_BACK).heard);
        ck_assert_uint_eq(net_drops(net), 0);
        ck_assert_int_eq(prober_state(prober_of(net, DPU1), 99), PATH_UNKNOWN);
        ck_assert_int_eq(prober_state(prober_of(net, DPU1), UINT16_MAX), PATH_UNKNOWN);
        net_destroy(net);
    }
END_TEST

/* Behind spine5, which is an Open vSwitch, only probes without checksum are taken: as loops, by the peer,
 * and as its answers. */
START_TEST(no_checksum)
    {
        struct net *net = net_create(TIMEOUT);
        struct node_config *c = &net->nodes[DPU1]->config;

        net->wires[SPINE5][LEAF1].rewrites = net->wires[SPINE5][LEAF3].rewrites = true;
        net_run(net, 4 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, NEAR_LOOP), PATH_GOOD);
        ck_assert_int_eq(net_state(net, LOOP), PATH_BAD);
        ck_assert_int_eq(net_state(net, PEER), PATH_BAD);
        ck_assert_uint_gt(fixture_drops(net->nodes[DPU1], DROP_probe_malformed), 0);
        ck_assert_uint_gt(fixture_drops(net->nodes[DPU3], DROP_probe_malformed), 0);
        c->probes[LOOP - NEAR_LOOP].no_checksum = c->probes[PEER - NEAR_LOOP].no_checksum = true;
        net->nodes[DPU3]->config.n_probes = 0;
        fixture_configure(net->nodes[DPU3]);
        fixture_configure(net->nodes[DPU1]);
        ck_assert_int_eq(net_state(net, LOOP), PATH_UNKNOWN); /* another way. */
        net_run(net, INTERVAL_USEC);
        uint64_t drops = net_drops(net);
        net_run(net, 4 * INTERVAL_USEC);
        for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
            ck_assert_int_eq(net_state(net, number), PATH_GOOD);
            ck_assert_uint_eq(net_probe(net, DPU1, number).n_lost_back, 0);
        }
        ck_assert_uint_eq(net_drops(net), drops);
        net_destroy(net);
    }
END_TEST

/* Proves AB-33, AB-34, AB-36. */
START_TEST(what_is_sent)
    {
        struct net *net = net_create(TIMEOUT);
        const struct in6_addr end = node_locator(0xa1), dpu1 = node_address(0xa1);
        const struct in6_addr loop = addr_of("5f00:0:100:500:100:a1::");
        struct stamp s;

        prober_note_data(prober_of(net, DPU1), LOOP, 26 << 2 | ECN_ECT1);
        net_run(net, INTERVAL_USEC);
        /* As it came to leaf1 for the first time. */
        cut(net, LEAF1, SPINE5, true);
        net->nodes[DPU1]->config.probes[0] = net->nodes[DPU1]->config.probes[LOOP - NEAR_LOOP];
        net->nodes[DPU1]->config.n_probes = 1;
        fixture_configure(net->nodes[DPU1]);
        net_run(net, INTERVAL_USEC);
        const uint8_t *bytes = net->last[LEAF1].bytes;
        const struct ip6_hdr_wire *ip = (const void *) bytes;
        const struct udp_hdr *udp = (const void *) (ip + 1);
        size_t udp_len = net->last[LEAF1].len - sizeof *ip;

        ck_assert_mem_eq(&ip->src, &dpu1, sizeof dpu1);
        ck_assert_mem_eq(&ip->dst, &loop, sizeof loop);
        ck_assert_uint_eq(ip->hlim, 64);
        ck_assert_uint_eq(ip->nh, IP6_NH_UDP);
        ck_assert_uint_eq(ip6_tc(ip), 26 << 2 | ECN_ECT0); /* DSCP of data. */
        ck_assert_uint_eq(ip6_flow_label(ip), LOOP << 8);
        ck_assert_uint_eq(be16_get(udp->sport), PROBER_SPORT);
        ck_assert_uint_eq(be16_get(udp->dport), UDP_PORT_STAMP);
        ck_assert_uint_eq(be16_get(inet_csum_ip6(&dpu1, &end, IP6_NH_UDP, udp, udp_len)), 0);
        ck_assert(stamp_parse((const uint8_t *) (udp + 1), udp_len - sizeof *udp, false, &s));
        ck_assert_uint_eq(s.ssid, LOOP);
        ck_assert(s.has_cookie && !s.has_cos && !s.back.n);
        ck_assert_uint_le(s.sent_nsec, net->now * 1000);
        net_destroy(net);
    }
END_TEST

/* Probes have the DSCP of the data on their path.
 *
 * Proves AB-36. */
START_TEST(dscp_of_data)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_FAILOVER, 1, 5);
        struct roce_spec spec = path_request(0x0a, 0x11, 1);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        d->paths[0].probe = 7;
        f->config.probes = must_calloc(1, sizeof *f->config.probes);
        f->config.n_probes = 1;
        f->config.probes[0] = (struct probe_config){
            .number = 7,
            .port = UPLINK,
            .program = d->paths[0].program,
            .interval_usec = INTERVAL_USEC,
            .timeout_usec = TIMEOUT,
        };
        fixture_configure(f);
        ip6_set_vtf((struct ip6_hdr_wire *) bytes, 26 << 2 | ECN_ECT1, 0);
        fixture_input(f, HOST_PORT, bytes, len);
        while (!f->n_frames || f->frames[0].h.inner.ofs) {
            fixture_timer(f);
        }
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        const struct ip6_hdr_wire *ip =
            (const void *) (f->frames[0].bytes + sizeof(struct eth_hdr));
        ck_assert_uint_eq(ip6_flow_label(ip), 7 << 8);
        ck_assert_uint_eq(ip6_tc(ip), 26 << 2 | ECN_ECT0);
        fixture_destroy(f);
    }
END_TEST

/* A fault at any time in the interval, with timeouts up to an interval: bad within three intervals.
 * Probes that do not go there stay good, and who is told hears of both changes.
 *
 * Proves AB-35. */
START_TEST(bad_within_three_intervals)
    {
        static const uint32_t timeouts[] = {INTERVAL_USEC / 10, TIMEOUT, INTERVAL_USEC};
        struct net *net = good_net(timeouts[_i % 3]);
        uint64_t longest = 0;

        net_run(net, (uint64_t) (_i / 3) * INTERVAL_USEC / 10 + 7);
        cut(net, LEAF1, SPINE5, true);
        uint64_t fault = net->now;
        while (net_state(net, LOOP) != PATH_BAD || net_state(net, PEER) != PATH_BAD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - fault, 3 * INTERVAL_USEC);
            ck_assert_int_eq(net_state(net, NEAR_LOOP), PATH_GOOD);
            longest = net->now - fault;
        }
        ck_assert_uint_le(longest, INTERVAL_USEC + 2 * timeouts[_i % 3] + 1000);
        ck_assert_uint_eq(told.n, 4); /* two are suspect, and bad. */
        ck_assert_int_eq(told.state, PATH_BAD);
        ck_assert_uint_eq(net_drops(net), 0);
        net_destroy(net);
    }
END_TEST

/* One packet is lost: a confirmation of three at most clears it, and the way is good after three. */
START_TEST(one_loss)
    {
        struct net *net = good_net(TIMEOUT);

        net->wires[SPINE5][LEAF1].lose_now = 1;
        while (!net_probe(net, DPU1, LOOP).n_lost && !net_probe(net, DPU1, PEER).n_lost) {
            net_run(net, 1000);
        }
        uint16_t number = net_probe(net, DPU1, LOOP).n_lost ? LOOP : PEER;
        ck_assert_int_eq(net_state(net, number), PATH_SUSPECT);
        uint64_t n_sent = net_probe(net, DPU1, number).n_sent;
        net_run(net, 1000);
        struct probe_info info = net_probe(net, DPU1, number);
        ck_assert_uint_eq(info.n_sent,
                          n_sent); /* the first one came back already: no more are sent. */
        ck_assert_uint_eq(info.n_lost, 1);
        ck_assert_uint_eq(info.health.n_lost, 0);
        ck_assert_int_eq(info.health.state, PATH_SUSPECT);
        net_run(net, 2 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, number), PATH_GOOD);
        ck_assert_uint_eq(told.n, 2);
        net_destroy(net);
    }
END_TEST

/* The whole confirmation but its last packet is lost, too. */
START_TEST(confirmation)
    {
        struct net *net = good_net(TIMEOUT);

        net->nodes[DPU1]->config.n_probes = LOOP; /* no other packets on this link. */
        fixture_configure(net->nodes[DPU1]);
        net->nodes[DPU3]->config.n_probes = 0;
        fixture_configure(net->nodes[DPU3]);
        net_run(net, INTERVAL_USEC);
        uint64_t n_sent = net_probe(net, DPU1, LOOP).n_sent;
        net->wires[LEAF1][SPINE5].lose_now = 3;
        while (net_probe(net, DPU1, LOOP).n_sent < n_sent + 4) {
            net_run(net, 100);
        }
        net_run(net, 1000);
        struct probe_info info = net_probe(net, DPU1, LOOP);
        ck_assert_uint_eq(info.n_sent, n_sent + 4);
        ck_assert_int_eq(info.health.state, PATH_SUSPECT);
        ck_assert_uint_eq(info.health.n_lost, 0);
        net_run(net, 4 * INTERVAL_USEC);
        info = net_probe(net, DPU1, LOOP);
        ck_assert_int_eq(info.health.state, PATH_GOOD);
        ck_assert_uint_eq(info.n_lost, 3);
        ck_assert_uint_eq(info.n_returned + info.n_lost, info.n_sent);
        net_destroy(net);
    }
END_TEST

/* Paths come back, but not at once, and not at all while they flap.
 *
 * Proves AB-38. */
START_TEST(recovery)
    {
        struct net *net = good_net(TIMEOUT);

        cut(net, LEAF1, SPINE5, true);
        net_run(net, 3 * INTERVAL_USEC);
        uint64_t bad_since = net_probe(net, DPU1, LOOP).health.bad_since;
        ck_assert_int_eq(net_state(net, LOOP), PATH_BAD);
        cut(net, LEAF1, SPINE5, false);
        while (net_state(net, LOOP) != PATH_GOOD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - bad_since, 2 * SEC);
        }
        ck_assert_uint_ge(net->now - bad_since, SEC);
        /* A relapse: twice as long. */
        cut(net, LEAF1, SPINE5, true);
        net_run(net, 3 * INTERVAL_USEC);
        bad_since = net_probe(net, DPU1, LOOP).health.bad_since;
        cut(net, LEAF1, SPINE5, false);
        while (net_state(net, LOOP) != PATH_GOOD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - bad_since, 3 * SEC);
        }
        ck_assert_uint_ge(net->now - bad_since, 2 * SEC);
        net_destroy(net);
    }
END_TEST

/* A bad way is probed less and less often, and found to be back all the same. */
START_TEST(backoff)
    {
        struct net *net = good_net(TIMEOUT);

        cut(net, LEAF1, SPINE5, true);
        net_run(net, 3 * INTERVAL_USEC);
        uint64_t before = net_probe(net, DPU1, LOOP).n_sent;
        net_run(net, 31 * INTERVAL_USEC); /* 1 + 2 + 4 + 8 + 16. */
        uint64_t n = net_probe(net, DPU1, LOOP).n_sent - before;
        ck_assert_uint_ge(n, 4);
        ck_assert_uint_le(n, 6);
        before += n;
        net_run(net, 64 * INTERVAL_USEC);
        n = net_probe(net, DPU1, LOOP).n_sent - before;
        ck_assert_uint_eq(n, 4);
        cut(net, LEAF1, SPINE5, false);
        net_run(net, 16 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, LOOP), PATH_RECOVERING);
        net_run(net, 5 * INTERVAL_USEC); /* as often as before. */
        ck_assert_int_eq(net_state(net, LOOP), PATH_GOOD);
        net_destroy(net);
    }
END_TEST

/* Marks on the way there and back are told apart where a peer answers. */
START_TEST(marks)
    {
        struct net *net = good_net(TIMEOUT);

        net->wires[SPINE5][LEAF3].marks = true;
        net_run(net, 20 * INTERVAL_USEC);
        ck_assert_uint_eq(net_probe(net, DPU1, LOOP).n_marked, 0);
        struct probe_info peer = net_probe(net, DPU1, PEER);
        ck_assert_uint_ge(peer.n_marked, 19);
        ck_assert_uint_eq(peer.n_marked_back, 0);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), PEER), 256);
        net->wires[SPINE5][LEAF3].marks = false;
        net->wires[SPINE5][LEAF1].marks = true;
        net_run(net, 8 * INTERVAL_USEC);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), PEER), 128);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), LOOP), 128);
        peer = net_probe(net, DPU1, PEER);
        ck_assert_uint_ge(peer.n_marked_back, 7);
        ck_assert_uint_eq(peer.health.state, PATH_GOOD);
        net_run(net, 8 * INTERVAL_USEC);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), PEER), 0);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), LOOP), 256);
        ck_assert_uint_eq(prober_marked(prober_of(net, DPU1), 99), 0);
        net_destroy(net);
    }
END_TEST

/* Long ones are sent now and then, have that length, and are answered with as much. */
START_TEST(long_probes)
    {
        struct net *net = good_net(TIMEOUT);

        make_long(net);
        unsigned n_long = 0, n = 0;
        for (unsigned i = 0; i < 33 * INTERVAL_USEC / LINK_USEC; i++) {
            uint64_t before = net->wires[DPU1][LEAF1].n;

            net_run(net, LINK_USEC);
            for (; before < net->wires[DPU1][LEAF1].n; before++) {
                n++;
                for (size_t j = 0; j < net->n_sent; j++) {
                    n_long += net->sent[j].from == DPU1 && net->sent[j].len == LONG_LEN;
                }
            }
        }
        ck_assert_uint_ge(n, 3 * 33);
        /* Of each probe one when it became good, and two in 33. */
        ck_assert_uint_ge(n_long, 3 * 3);
        ck_assert_uint_le(n_long, 3 * 3 + 3);
        ck_assert_uint_eq(net_drops(net), 0);
        for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
            struct probe_info info = net_probe(net, DPU1, number);
            ck_assert_int_eq(info.health.state, PATH_GOOD);
            ck_assert_uint_eq(info.n_returned, info.n_sent);
        }
        net_destroy(net);
    }
END_TEST

/* A link that carries short packets only: bad, until it carries long ones again. */
START_TEST(only_long_ones_are_lost)
    {
        struct net *net = good_net(TIMEOUT);

        make_long(net);
        net_run(net, 3 * INTERVAL_USEC);
        net->wires[LEAF1][SPINE5].max_len = 1500;
        uint64_t fault = net->now;
        while (net_state(net, LOOP) != PATH_BAD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - fault, (16 + 2) * INTERVAL_USEC);
        }
        ck_assert_int_eq(net_state(net, NEAR_LOOP), PATH_GOOD);
        uint64_t n_returned = net_probe(net, DPU1, LOOP).n_returned;
        net_run(net, 40 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, LOOP), PATH_BAD);
        ck_assert_uint_gt(net_probe(net, DPU1, LOOP).n_returned, n_returned); /* short ones. */
        net->wires[LEAF1][SPINE5].max_len = 0;
        net_run(net, 40 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, LOOP), PATH_GOOD);
        net_destroy(net);
    }
END_TEST

/* Which direction of a way is lost: by the peer's numbers once it is mended, by the peer's own probes at
 * once. */
START_TEST(one_direction)
    {
        struct net *net = good_net(TIMEOUT);

        net->wires[LEAF3][SPINE5].cut = true; /* the way back. */
        net_run(net, 6 * INTERVAL_USEC);
        struct probe_info info = net_probe(net, DPU1, PEER);
        ck_assert_int_eq(info.health.state, PATH_BAD);
        ck_assert(!info.heard);
        ck_assert(
            net_probe(net, DPU3, PEER_BACK).heard); /* dpu3 hears that what dpu1 sends comes. */
        ck_assert_int_eq(net_probe(net, DPU3, PEER_BACK).health.state, PATH_BAD);
        ck_assert_int_eq(net_state(net, LOOP), PATH_GOOD);
        net->wires[LEAF3][SPINE5].cut = false;
        net_run(net, 20 * INTERVAL_USEC);
        info = net_probe(net, DPU1, PEER);
        ck_assert_uint_eq(info.n_lost_there, 0);
        ck_assert_uint_eq(info.n_lost_back, info.n_lost);
        ck_assert_uint_gt(info.n_lost, 4);
        ck_assert(info.heard);

        uint64_t n_lost_back = info.n_lost_back;
        net->wires[SPINE5][LEAF3].cut = true; /* the way there. */
        net_run(net, 6 * INTERVAL_USEC);
        ck_assert(net_probe(net, DPU1, PEER).heard);
        ck_assert(!net_probe(net, DPU3, PEER_BACK).heard);
        net->wires[SPINE5][LEAF3].cut = false;
        net_run(net, 20 * INTERVAL_USEC);
        info = net_probe(net, DPU1, PEER);
        ck_assert_uint_gt(info.n_lost_there, 4);
        ck_assert_uint_eq(info.n_lost_back, n_lost_back);
        ck_assert_uint_eq(info.n_lost_there + info.n_lost_back, info.n_lost);
        net_destroy(net);
    }
END_TEST

/* A way that loses long packets only: that short ones of the peer arrive says of no direction that it works. */
START_TEST(long_ones_are_not_heard)
    {
        struct net *net = good_net(TIMEOUT);

        make_long(net);
        net->nodes[DPU3]->config.probes[0].large = LONG_LEN;
        fixture_configure(net->nodes[DPU3]);
        net_run(net, 3 * INTERVAL_USEC);
        ck_assert(net_probe(net, DPU1, PEER).heard && net_probe(net, DPU3, PEER_BACK).heard);
        net->wires[SPINE5][LEAF3].max_len = 1500;
        net_run(net, 40 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, PEER), PATH_BAD);
        ck_assert_int_eq(net_probe(net, DPU3, PEER_BACK).health.state, PATH_BAD);
        ck_assert(!net_probe(net, DPU1, PEER).heard && !net_probe(net, DPU3, PEER_BACK).heard);
        net_destroy(net);
    }
END_TEST

/* A way that fails one way for long is heard all the time, in spite of the backing off. */
START_TEST(heard_for_long)
    {
        struct net *net = good_net(TIMEOUT);

        net->wires[LEAF3][SPINE5].cut = true;
        for (unsigned i = 0; i < 2000; i++) {
            net_run(net, INTERVAL_USEC / 10);
            ck_assert(net_probe(net, DPU3, PEER_BACK).heard);
        }
        net->wires[SPINE5][LEAF3].cut = true;
        net_run(net, 50 * INTERVAL_USEC);
        ck_assert(!net_probe(net, DPU3, PEER_BACK).heard);
        net_destroy(net);
    }
END_TEST

/* One packet after a long silence does not stand for a slow session: if the way fails again at once, that
 * is known as soon as ever. */
START_TEST(silent_again)
    {
        struct net *net = good_net(TIMEOUT);

        cut(net, LEAF3, SPINE5, true);
        net_run(net, 100 * INTERVAL_USEC);
        ck_assert(!net_probe(net, DPU3, PEER_BACK).heard);
        cut(net, LEAF3, SPINE5, false);
        while (!net_probe(net, DPU3, PEER_BACK).heard) {
            net_run(net, 1000);
        }
        cut(net, LEAF3, SPINE5, true);
        net_run(net, 20 * INTERVAL_USEC); /* so long dpu3 may have nothing to do. */
        ck_assert(!net_probe(net, DPU3, PEER_BACK).heard);
        net_destroy(net);
    }
END_TEST

/* What comes after its time was lost, and changes nothing. */
START_TEST(late)
    {
        struct net *net = good_net(TIMEOUT);
        struct fixture *f = net->nodes[DPU1];
        struct sent_packet p;

        f->now = net->now;
        f->config.n_probes = 1;
        fixture_configure(f);
        net->nodes[DPU3]->config.n_probes = 0;
        fixture_configure(net->nodes[DPU3]);
        cut(net, LEAF1, DPU1, true);
        net->wires[DPU1][LEAF1].cut = false;
        net_run(net, INTERVAL_USEC);
        p = net->last[LEAF1];
        ((struct ip6_hdr_wire *) p.bytes)->dst =
            node_locator(0xa1); /* as it would have come back. */
        net_run(net, INTERVAL_USEC);
        net->wires[LEAF1][DPU1].cut = false;
        struct probe_info before = net_probe(net, DPU1, NEAR_LOOP);
        ck_assert_int_eq(before.health.state, PATH_BAD);
        net_input(net, DPU1, p.bytes, p.len);
        ck_assert_uint_eq(fixture_drops(f, DROP_probe_late), 1);
        struct probe_info info = net_probe(net, DPU1, NEAR_LOOP);
        ck_assert_uint_eq(info.n_late, before.n_late + 1);
        ck_assert_uint_eq(info.n_lost, before.n_lost);
        ck_assert_uint_eq(info.n_returned, before.n_returned);
        ck_assert_int_eq(info.health.state, PATH_BAD);
        net_destroy(net);
    }
END_TEST

/* Data give reason to doubt: a confirmation at once, once in an interval. */
START_TEST(doubt)
    {
        struct net *net = good_net(TIMEOUT);
        struct prober *prober = prober_of(net, DPU1);
        struct fixture *f = net->nodes[DPU1];

        cut(net, LEAF1, SPINE5, true);
        while (net_probe(net, DPU1, LOOP).n_sent == net_probe(net, DPU1, LOOP).n_returned) {
            net_run(net, 1000); /* until one is awaited: this is enough. */
        }
        uint64_t n_sent = net_probe(net, DPU1, LOOP).n_sent;
        prober_doubt(prober, LOOP, false, net->now);
        ck_assert_uint_eq(net_probe(net, DPU1, LOOP).n_sent, n_sent);
        cut(net, LEAF1, SPINE5, false);
        net_run(net, 5 * INTERVAL_USEC);
        while (net_probe(net, DPU1, LOOP).n_sent != n_sent) { /* just after one came back. */
            n_sent = net_probe(net, DPU1, LOOP).n_sent;
            net_run(net, 60000);
        }
        cut(net, LEAF1, SPINE5, true);
        f->n_frames = 0;
        f->now = net->now;
        prober_doubt(prober, LOOP, false, net->now);
        fixture_settle(f);
        ck_assert_uint_eq(net_probe(net, DPU1, LOOP).n_sent, n_sent + 1);
        uint64_t begun = net->now;
        f->n_frames = 0;
        net_run(net, 5000);
        ck_assert_uint_eq(net_probe(net, DPU1, LOOP).n_sent, n_sent + 3);
        prober_doubt(prober, LOOP, false, net->now);
        ck_assert_uint_eq(net_probe(net, DPU1, LOOP).n_sent, n_sent + 3);
        while (net_state(net, LOOP) != PATH_BAD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - begun, 2 * TIMEOUT + 1000);
        }
        prober_doubt(prober, LOOP, false,
                     net->now + SEC); /* of a bad way nobody needs to be told. */
        prober_doubt(prober, 99, false, net->now);
        net_destroy(net);
    }
END_TEST

/* Only loop probes are on the link from leaf1 to spine5, of which each so many-th packet is lost. */
static struct net *
lossy_net(unsigned lose_each)
{
    struct net *net = good_net(TIMEOUT);

    net->nodes[DPU1]->config.n_probes = LOOP;
    fixture_configure(net->nodes[DPU1]);
    net->nodes[DPU3]->config.n_probes = 0;
    fixture_configure(net->nodes[DPU3]);
    net_run(net, INTERVAL_USEC);
    net->wires[LEAF1][SPINE5].lose_each = lose_each;
    return net;
}

/* If data are lost each packet of many counts for itself. */
START_TEST(survey)
    {
        struct net *net = lossy_net(3);
        struct prober *prober = prober_of(net, DPU1);
        uint64_t begun = net->now;

        prober_doubt(prober, LOOP, true, net->now);
        while (net_state(net, LOOP) != PATH_BAD) {
            net_run(net, 1000);
            ck_assert_uint_le(net->now - begun, INTERVAL_USEC + TIMEOUT);
        }
        /* No more of them are sent, and all that were lost have been counted. */
        uint64_t n_sent = net_probe(net, DPU1, LOOP).n_sent;
        ck_assert_uint_gt(net_probe(net, DPU1, LOOP).n_lost, 4);
        net_run(net, INTERVAL_USEC);
        struct probe_info info = net_probe(net, DPU1, LOOP);
        ck_assert_uint_le(info.n_sent, n_sent + 4);
        net_destroy(net);
    }
END_TEST

/* One in ten: that is not bad.  A survey is followed by another one as long as more than one is lost. */
START_TEST(survey_ends)
    {
        struct net *net = lossy_net(10);
        struct prober *prober = prober_of(net, DPU1);
        uint64_t n_sent = net_probe(net, DPU1, LOOP).n_sent;

        prober_doubt(prober, LOOP, true, net->now);
        net_run(net, 20 * INTERVAL_USEC);
        struct probe_info info = net_probe(net, DPU1, LOOP);
        ck_assert_int_lt(info.health.state, PATH_RECOVERING);
        ck_assert_uint_ge(info.n_sent, n_sent + 20 + 16);
        ck_assert_uint_gt(info.n_lost, 3);
        net->wires[LEAF1][SPINE5].lose_each = 0;
        net_run(net, 10 * INTERVAL_USEC);
        n_sent = net_probe(net, DPU1, LOOP).n_sent;
        net_run(net, 10 * INTERVAL_USEC);
        info = net_probe(net, DPU1, LOOP);
        ck_assert_uint_eq(info.n_sent, n_sent + 10); /* it has ended. */
        ck_assert_uint_eq(info.n_sent, info.n_returned + info.n_lost);
        ck_assert_int_eq(info.health.state, PATH_GOOD);
        /* One in which nothing is lost: 16 packets and no more, however often there is doubt meanwhile. */
        for (unsigned i = 0; i < 5; i++) {
            prober_doubt(prober, LOOP, true, net->now);
        }
        net_run(net, 10 * INTERVAL_USEC);
        info = net_probe(net, DPU1, LOOP);
        ck_assert_uint_ge(info.n_sent, n_sent + 20 + 16);
        ck_assert_uint_le(info.n_sent, n_sent + 20 + 18); /* and the doubt's own. */
        ck_assert_uint_eq(info.n_sent, info.n_returned + info.n_lost);
        net_destroy(net);
    }
END_TEST

/* Probes of the plane in use are told, and no others; where there is one plane, none. */
START_TEST(plane_is_doubted)
    {
        struct net *net = good_net(TIMEOUT);
        const struct node_base *base = net->nodes[DPU1]->node;
        uint16_t first[] = {LOOP, PEER}, second[] = {NEAR_LOOP};
        const struct plane_config planes[] = {{.n_probes = 2, .probes = first},
                                              {.n_probes = 1, .probes = second}};
        uint64_t n_sent[PEER + 1];

        for (size_t n_planes = 0; n_planes <= 2; n_planes++) {
            for (uint16_t i = NEAR_LOOP; i <= PEER; i++) {
                n_sent[i] = net_probe(net, DPU1, i).n_sent;
            }
            plane_doubt(&(struct plane_use){.used = 0}, base, planes, n_planes, net->now);
            net_run(net, 3 * INTERVAL_USEC);
            for (uint16_t i = NEAR_LOOP; i <= PEER; i++) {
                uint64_t n = net_probe(net, DPU1, i).n_sent - n_sent[i];

                if (n_planes == 2 && i != NEAR_LOOP) {
                    ck_assert_uint_ge(n, 16);
                } else {
                    ck_assert_uint_le(n, 4);
                }
            }
        }
        net_destroy(net);
    }
END_TEST

/* A probe whose way stays as it is keeps its state, whatever else is new; another way is unknown. */
START_TEST(configuration)
    {
        struct net *net = good_net(TIMEOUT);
        struct fixture *f = net->nodes[DPU1];
        struct probe_config *loop = &f->config.probes[LOOP - NEAR_LOOP];
        uint64_t n_sent = net_probe(net, DPU1, LOOP).n_sent;

        f->now = net->now;
        snprintf(loop->name, sizeof loop->name, "renamed");
        loop->interval_usec /= 2;
        loop->timeout_usec /= 2;
        fixture_configure(f);
        struct probe_info info = net_probe(net, DPU1, LOOP);
        ck_assert_int_eq(info.health.state, PATH_GOOD);
        ck_assert_str_eq(info.config->name, "renamed");
        net_run(net, 10 * INTERVAL_USEC);
        ck_assert_uint_ge(net_probe(net, DPU1, LOOP).n_sent, n_sent + 19);
        loop->program.containers[0] = addr_of("5f00:0:100:500:300:500:100:a1");
        fixture_configure(f);
        info = net_probe(net, DPU1, LOOP);
        ck_assert_int_eq(info.health.state, PATH_UNKNOWN);
        ck_assert_uint_eq(info.n_sent, 0);
        net_run(net, 2 * INTERVAL_USEC);
        info = net_probe(net, DPU1, LOOP);
        ck_assert_int_eq(info.health.state, PATH_GOOD);
        ck_assert_uint_eq(info.rtt_usec, 6 * LINK_USEC);
        f->config.n_probes = 1;
        fixture_configure(f);
        net_run(net, 5 * INTERVAL_USEC);
        ck_assert_int_eq(prober_state(prober_of(net, DPU1), LOOP), PATH_UNKNOWN);
        f->config.n_probes = 0;
        fixture_configure(f);
        ck_assert_uint_eq(prober_deadline(prober_of(net, DPU1)), UINT64_MAX);
        net_destroy(net);
    }
END_TEST

/* What the node sent before it was started again is not its own any more; all is found out anew. */
START_TEST(restart)
    {
        struct net *net = good_net(TIMEOUT);
        struct fixture *f = net->nodes[DPU1];

        while (!net->n_sent || net->sent[0].from == DPU3) {
            net_run(net, LINK_USEC / 2);
        }
        f->now = net->now;
        fixture_restart(f, 4711);
        ck_assert_int_eq(net_state(net, LOOP), PATH_UNKNOWN);
        net_run(net, INTERVAL_USEC / 2);
        ck_assert_uint_ge(fixture_drops(f, DROP_probe_forged), 1);
        net_run(net, 10 * INTERVAL_USEC);
        for (uint16_t number = NEAR_LOOP; number <= PEER; number++) {
            struct probe_info info = net_probe(net, DPU1, number);
            ck_assert_int_eq(info.health.state, PATH_GOOD);
            ck_assert_uint_eq(info.n_lost_there + info.n_lost_back, 0);
        }
        /* And the one that answers. */
        net->nodes[DPU3]->now = net->now;
        fixture_restart(net->nodes[DPU3], 4712);
        net_run(net, 10 * INTERVAL_USEC);
        struct probe_info info = net_probe(net, DPU1, PEER);
        ck_assert_int_eq(info.health.state, PATH_GOOD);
        ck_assert_uint_eq(info.n_lost_there, 0);
        net_destroy(net);
    }
END_TEST

/* Another worker of the node sends nothing, and knows what the first one does. */
START_TEST(other_worker)
    {
        struct net *net = good_net(TIMEOUT);
        struct node_base other = *(struct node_base *) net->nodes[DPU1]->node;
        struct prober *follower = prober_create(&other, &(struct node_io){.follows = true});

        prober_configure(follower, &net->nodes[DPU1]->config, net->now);
        ck_assert_uint_eq(prober_deadline(follower), UINT64_MAX);
        ck_assert_int_eq(prober_state(follower, LOOP), PATH_UNKNOWN);
        prober_doubt(follower, LOOP, false, net->now);
        told.n = 0;
        other.prober = follower;
        prober_follow(follower, prober_of(net, DPU1), net->now);
        ck_assert_int_eq(prober_state(follower, LOOP), PATH_GOOD);
        ck_assert_uint_eq(told.n, 3);
        prober_follow(follower, prober_of(net, DPU1), net->now);
        ck_assert_uint_eq(told.n, 3);
        ck_assert_uint_eq(prober_deadline(follower), UINT64_MAX);
        prober_destroy(follower);
        /* As the daemon has it done. */
        struct net *second = net_create(TIMEOUT);
        struct fixture *f = second->nodes[DPU1];
        f->class->follow_ways(f->node, net->nodes[DPU1]->node, net->now);
        ck_assert_int_eq(net_state(second, LOOP), PATH_GOOD);
        net_destroy(second);
        net_destroy(net);
    }
END_TEST

/* Through a link that is known to be down nothing is sent, which is loss and counted. */
START_TEST(port_down)
    {
        struct net *net = good_net(TIMEOUT);

        net->nodes[DPU1]->down[net->nodes[DPU1]->config.ports[0].number] = true;
        uint64_t n = net->wires[DPU1][LEAF1].n;
        net_run(net, 3 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, NEAR_LOOP), PATH_BAD);
        ck_assert_uint_gt(fixture_drops(net->nodes[DPU1], DROP_port_down), 5);
        ck_assert_uint_eq(net->wires[DPU1][LEAF1].n, n);
        net->nodes[DPU1]->down[net->nodes[DPU1]->config.ports[0].number] = false;
        net_run(net, 30 * INTERVAL_USEC);
        ck_assert_int_eq(net_state(net, NEAR_LOOP), PATH_GOOD);
        net_destroy(net);
    }
END_TEST

/* Most packets that dpu1 sends in a twentieth of an interval. */
static uint64_t
most_at_once(struct net *net, uint64_t interval)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < 20; i++) {
        uint64_t before = net->wires[DPU1][LEAF1].n;
        net_run(net, interval / 20);
        uint64_t n = net->wires[DPU1][LEAF1].n - before;
        most = n > most ? n : most;
    }
    return most;
}

/* Probes are spread over the interval, also after the node could do nothing for a while, and in another
 * interval. */
START_TEST(phases)
    {
        struct net *net = net_create(TIMEOUT);
        struct node_config *config = &net->nodes[DPU1]->config;

        for (uint16_t number = 100; number < 200; number++) {
            net_add_probe(net, DPU1, number);
            config->probes[config->n_probes - 1].kind = PROBE_LOOP;
        }
        fixture_configure(net->nodes[DPU1]);
        net_run(net, INTERVAL_USEC);
        ck_assert_uint_le(most_at_once(net, INTERVAL_USEC), 20); /* 5 on average. */

        net->now += 10 * INTERVAL_USEC;
        net_run(net, INTERVAL_USEC);
        net_run(net, INTERVAL_USEC);
        ck_assert_uint_le(most_at_once(net, INTERVAL_USEC), 20);

        for (size_t i = 0; i < config->n_probes; i++) {
            config->probes[i].interval_usec = 8 * INTERVAL_USEC;
        }
        fixture_configure(net->nodes[DPU1]);
        net_run(net, 8 * INTERVAL_USEC);
        ck_assert_uint_le(most_at_once(net, 8 * INTERVAL_USEC), 20);
        net_destroy(net);
    }
END_TEST

/* Processor time for so many returned packets, with n probes. */
static double
cost(uint16_t n)
{
    struct net *net = net_create(TIMEOUT);
    struct fixture *f = net->nodes[DPU1];

    for (uint16_t number = PEER_BACK + 1; number <= PEER_BACK + n; number++) {
        net_add_probe(net, DPU1, number)->kind = PROBE_LOOP;
    }
    for (size_t i = 0; i < f->config.n_probes; i++) {
        f->config.probes[i].interval_usec *= n; /* as many packets, however many probes. */
    }
    fixture_configure(f);
    clock_t begin = clock();
    net_run(net, (uint64_t) INTERVAL_USEC * 2000);
    clock_t end = clock();
    ck_assert_uint_ge(net->wires[DPU1][LEAF1].n, 1500);
    net_destroy(net);
    return (double) (end - begin);
}

/* A thousand probes cost per packet what ten do: nobody searches for them.  A search would make it a
 * hundred times as much of what is the prober's part. */
START_TEST(thousand_probes)
    {
        double few = cost(10), many = cost(1000);

        ck_assert_msg(many < 5 * few, "10 probes: %.0f, 1000: %.0f", few, many);
    }
END_TEST

Suite *
prober_suite(void)
{
    Suite *s = suite_create("prober");
    TCase *tc = tcase_create("prober");

    tcase_add_test(tc, all_is_well);
    tcase_add_test(tc, no_checksum);
    tcase_add_test(tc, what_is_sent);
    tcase_add_test(tc, dscp_of_data);
    tcase_add_loop_test(tc, bad_within_three_intervals, 0, 30);
    tcase_add_test(tc, one_loss);
    tcase_add_test(tc, confirmation);
    tcase_add_test(tc, recovery);
    tcase_add_test(tc, backoff);
    tcase_add_test(tc, marks);
    tcase_add_test(tc, long_probes);
    tcase_add_test(tc, only_long_ones_are_lost);
    tcase_add_test(tc, one_direction);
    tcase_add_test(tc, long_ones_are_not_heard);
    tcase_add_test(tc, heard_for_long);
    tcase_add_test(tc, silent_again);
    tcase_add_test(tc, late);
    tcase_add_test(tc, doubt);
    tcase_add_test(tc, survey);
    tcase_add_test(tc, survey_ends);
    tcase_add_test(tc, plane_is_doubted);
    tcase_add_test(tc, configuration);
    tcase_add_test(tc, restart);
    tcase_add_test(tc, other_worker);
    tcase_add_test(tc, port_down);
    tcase_add_test(tc, phases);
    tcase_add_test(tc, thousand_probes);
    suite_add_tcase(s, tc);
    return s;
}
