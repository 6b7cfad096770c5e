/* SPDX-License-Identifier: Apache-2.0
 *
 * Probes that are answered and those that are not; what comes back that this node has not asked for.  In
 * the fabric of tests/unit/prober-fixture.h.
 */
#include <stdlib.h>

#include "lib/ecn.h"
#include "lib/icmp6.h"
#include "lib/inet-csum.h"
#include "lib/node-base.h"
#include "lib/prober.h"
#include "lib/reflector.h"
#include "tests/unit/prober-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/usid-fixture.h"

#define TIMEOUT  (INTERVAL_USEC / 2)
#define DPU1_ID  0xa1
#define DPU3_ID  0xa3
#define OTHER_ID 0xa4

/* A fabric in which nobody probes, but dpu1 and dpu3 would answer each other. */
static struct net *
quiet_net(void)
{
    struct net *net = net_create(TIMEOUT);

    net->nodes[DPU1]->config.n_probes = net->nodes[DPU3]->config.n_probes = 0;
    fixture_configure(net->nodes[DPU1]);
    fixture_configure(net->nodes[DPU3]);
    return net;
}

/* A probe of another node as it arrives at dpu3. */
struct asked {
    uint16_t from;
    const char *back;
    uint32_t seq;
    uint16_t ssid;
    uint8_t tc;
    bool has_cos, no_checksum;
};

static const struct asked good = {
    .from = DPU1_ID,
    .back = "5f00:0:300:500:100:a1::",
    .seq = 77,
    .ssid = 9,
    .tc = 10 << 2 | ECN_CE,
    .has_cos = true,
};

static size_t
ask_bytes(const struct asked *a, uint8_t *bytes)
{
    struct packet_pool *pool = packet_pool_create(1);
    const struct in6_addr src = node_address(a->from), end = node_locator(DPU3_ID);
    const struct program program = {.n = 1, .containers = {end}};
    struct stamp say = {
        .seq = a->seq,
        .sent_nsec = 1000,
        .ssid = a->ssid,
        .no_checksum = a->no_checksum,
        .has_cos = a->has_cos,
        .dscp = 26,
        .has_cookie = true,
        .cookie = 4711,
    };

    ck_assert(!a->back || program_parse(a->back, &say.back));
    struct packet *p = stamp_build(pool, &say, &src, &program, &end, a->tc, 0, 50001, 862, 0);
    size_t len = packet_flatten(p, bytes, PACKET_ROOM);
    packet_put(p);
    packet_pool_destroy(pool);
    return len;
}

/* What dpu3 does with it: the reason, DROP_none if it answers. */
static enum drop_reason
ask(struct net *net, const struct asked *a)
{
    struct fixture *f = net->nodes[DPU3];
    uint64_t before[N_DROP_REASONS];
    uint8_t bytes[PACKET_ROOM];
    size_t len = ask_bytes(a, bytes);

    memcpy(before, f->class->drops(f->node), sizeof before);
    uint64_t n = net->wires[DPU3][LEAF3].n;
    net_input(net, DPU3, bytes, len);
    for (enum drop_reason why = 0; why < N_DROP_REASONS; why++) {
        if (f->class->drops(f->node)[why] != before[why]) {
            ck_assert_uint_eq(net->wires[DPU3][LEAF3].n, n + (why == DROP_none));
            return why;
        }
    }
    ck_abort_msg("no counter counts it");
}

/* STAMP's stateful reflector, along the way that the probe names.
 *
 * Proves AB-36. */
START_TEST(answer)
    {
        struct net *net = quiet_net();
        const struct in6_addr end = node_locator(DPU1_ID);
        struct asked a = good;
        struct stamp s;

        for (uint32_t i = 0; i < 3; i++, a.seq++) {
            ck_assert_int_eq(ask(net, &a), DROP_none);
            ck_assert_uint_eq(net->n_sent, 1);
            const struct ip6_hdr_wire *ip = (const void *) net->sent[0].bytes;
            const struct udp_hdr *udp = (const void *) (ip + 1);
            size_t udp_len = net->sent[0].len - sizeof *ip;
            const struct in6_addr src = node_address(DPU3_ID), dst = addr_of(a.back);

            ck_assert_mem_eq(&ip->src, &src, sizeof src);
            ck_assert_mem_eq(&ip->dst, &dst, sizeof dst);
            ck_assert_uint_eq(ip->hlim, 64);
            ck_assert_uint_eq(ip6_tc(ip), 26 << 2 | ECN_ECT0); /* the DSCP that it asks for. */
            ck_assert_uint_eq(ip6_flow_label(ip), 9 << 8);
            ck_assert_uint_eq(be16_get(udp->sport), UDP_PORT_STAMP);
            ck_assert_uint_eq(be16_get(udp->dport), 50001);
            ck_assert_uint_eq(be16_get(inet_csum_ip6(&src, &end, IP6_NH_UDP, udp, udp_len)), 0);
            ck_assert(stamp_parse((const uint8_t *) (udp + 1), udp_len - sizeof *udp, true, &s));
            ck_assert_uint_eq(s.seq, i);
            ck_assert_uint_eq(s.asked_seq, a.seq);
            ck_assert_uint_eq(s.asked_nsec, 1000);
            ck_assert_uint_eq(s.asked_hop_limit, 64);
            ck_assert_uint_eq(s.came_nsec, net->now * 1000);
            ck_assert_uint_eq(s.ssid, 9);
            ck_assert_uint_eq(s.cookie, 4711);
            ck_assert(s.has_cos && s.dscp == 26 && s.dscp_seen == 10 && s.ecn_seen == ECN_CE);
            net->n_sent = 0;
        }
        /* Another session counts for itself.  Without the TLV the answer's DSCP is the probe's. */
        a.ssid = 10;
        a.has_cos = false;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        const struct ip6_hdr_wire *ip = (const void *) net->sent[0].bytes;
        ck_assert(stamp_parse(net->sent[0].bytes + 48, net->sent[0].len - 48, true, &s));
        ck_assert_uint_eq(s.seq, 0);
        ck_assert_uint_eq(ip6_tc(ip), 10 << 2 | ECN_ECT0);
        net_destroy(net);
    }
END_TEST

/* Who asks without checksum is answered without, for an Open vSwitch is on the way; nobody else is. */
START_TEST(without_checksum)
    {
        struct net *net = quiet_net();
        struct asked a = good;

        for (a.no_checksum = false;; a.no_checksum = true, a.seq++) {
            ck_assert_int_eq(ask(net, &a), DROP_none);
            ck_assert_uint_eq(net->n_sent, 1);
            const struct udp_hdr *udp = (const void *) (net->sent[0].bytes + IP6_HDR_LEN);
            ck_assert(!be16_get(udp->csum) == a.no_checksum);
            net->n_sent = 0;
            if (a.no_checksum) {
                break;
            }
        }
        a.from = OTHER_ID;
        ck_assert_int_eq(ask(net, &a), DROP_probe_prober);
        net_destroy(net);
    }
END_TEST

static const struct {
    uint16_t from;
    const char *back;
    enum drop_reason why;
} requests[] = {
    {DPU1_ID, "5f00:0:300:100:a1::", DROP_none},
    {DPU1_ID, "5f00:0:300:500:100:200:300:100,5f00:0:500:a1::", DROP_none},
    /* Nobody whom the configuration names. */
    {OTHER_ID, "5f00:0:300:500:100:a4::", DROP_probe_prober},
    {OTHER_ID, "5f00:0:300:500:100:a1::", DROP_probe_prober},
    {DPU3_ID, "5f00:0:300:500:100:a3::", DROP_probe_forged}, /* dpu3's own address. */
    /* No way back, or one to somebody else. */
    {DPU1_ID, NULL, DROP_probe_return},
    {DPU1_ID, "5f00:0:300:500:100:a4::", DROP_probe_return},
    {DPU1_ID, "5f00:0:300:500:a1:100::", DROP_probe_return},
    {DPU1_ID, "5f00:0:300::", DROP_probe_return},
    {DPU1_ID, "5f00::", DROP_probe_return},
    {DPU1_ID, "5f00:0:300:500:100:a1:e003:0", DROP_probe_return}, /* goes on behind it. */
    {DPU1_ID, "fd00:1::a1", DROP_probe_return},
    {DPU1_ID, "5f00:0:a1::1", DROP_probe_return}, /* a node's address is no program. */
    {DPU1_ID, "fd00:1::1,5f00:0:100:a1::", DROP_probe_return},
    {DPU1_ID, "5f00:0:300:100::,fd00:1::a1", DROP_probe_return},
    /* It begins with nobody who is a neighbour. */
    {DPU1_ID, "5f00:0:500:100:a1::", DROP_usid_unknown},
    {DPU1_ID, "5f00:0:a3:300:100:a1::", DROP_usid_unknown},
    {DPU1_ID, "5f00:0:a1::", DROP_usid_unknown},
};

START_TEST(request)
    {
        struct net *net = quiet_net();
        struct asked a = good;

        a.from = requests[_i].from;
        a.back = requests[_i].back;
        enum drop_reason why = ask(net, &a);
        ck_assert_msg(why == requests[_i].why, "%s: %s", a.back ? a.back : "none", drop_name(why));
        net_destroy(net);
    }
END_TEST

START_TEST(link_down)
    {
        struct net *net = quiet_net();

        net->nodes[DPU3]->down[net->nodes[DPU3]->config.ports[0].number] = true;
        ck_assert_int_eq(ask(net, &good), DROP_usid_link_down);
        net_destroy(net);
    }
END_TEST

/* One that comes twice is answered once; older ones that come late too, and a new run of the prober. */
START_TEST(replayed)
    {
        struct net *net = quiet_net();
        struct asked a = good;

        ck_assert_int_eq(ask(net, &a), DROP_none);
        ck_assert_int_eq(ask(net, &a), DROP_probe_replayed);
        a.seq += 2;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        a.seq--;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        ck_assert_int_eq(ask(net, &a), DROP_probe_replayed);
        a.seq = UINT32_MAX;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        a.seq = 0;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        ck_assert_int_eq(ask(net, &a), DROP_probe_replayed);
        net_destroy(net);
    }
END_TEST

/* Nobody gets more answers than there may be in a second; with time there may be more. */
START_TEST(rate)
    {
        struct net *net = quiet_net();
        struct asked a = good;
        unsigned n = 0;

        for (a.seq = 0; a.seq < 2 * REFLECTOR_BURST; a.seq++) {
            enum drop_reason why = ask(net, &a);

            ck_assert(why == DROP_none || why == DROP_probe_rate);
            n += why == DROP_none;
            net->n_sent = 0;
        }
        ck_assert_uint_ge(n, REFLECTOR_BURST);
        ck_assert_uint_le(n, REFLECTOR_BURST + 1);
        net->now += 1000000 / REFLECTOR_RATE;
        ck_assert_int_eq(ask(net, &a), DROP_none);
        a.seq++;
        ck_assert_int_eq(ask(net, &a), DROP_probe_rate);
        net_destroy(net);
    }
END_TEST

/* A table of sessions that is full makes room. */
START_TEST(many_sessions)
    {
        struct net *net = quiet_net();
        struct asked a = good;

        for (unsigned i = 0; i < 20000; i++) {
            a.ssid = (uint16_t) i;
            a.seq = i;
            net->now += 1000;
            ck_assert_int_eq(ask(net, &a), DROP_none);
            net->n_sent = 0;
        }
        net_destroy(net);
    }
END_TEST

/* Bytes that are not those of a probe, each in a packet that is good otherwise. */
START_TEST(malformed)
    {
        static const unsigned offsets[] = {4,      5,      6,
                                           8 + 12, 8 + 13, 8 + 44 + 3}; /* of the UDP header. */
        struct net *net = quiet_net();
        struct fixture *f = net->nodes[DPU3];
        uint8_t bytes[PACKET_ROOM];

        for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
            size_t len = ask_bytes(&good, bytes);
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
            struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);

            ((uint8_t *) udp)[offsets[i]] ^= offsets[i] == 8 + 13 ? 1 : 0x40;
            if (offsets[i] != 6) { /* which is the checksum. */
                udp->csum = be16_put(0);
                udp->csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, udp, len - sizeof *ip);
            }
            net_input(net, DPU3, bytes, len);
            ck_assert_uint_eq(fixture_drops(f, DROP_probe_malformed), i + 1);
        }
        ck_assert_uint_eq(net->n_sent, 0);
        net_destroy(net);
    }
END_TEST

/* Behind the UDP header, a packet may be cut to any length. */
START_TEST(truncated)
    {
        struct net *net = quiet_net();
        struct fixture *f = net->nodes[DPU3];
        uint8_t bytes[PACKET_ROOM];
        size_t len = ask_bytes(&good, bytes);

        f->mangled = true;
        for (size_t n = IP6_HDR_LEN + sizeof(struct udp_hdr); n < len; n++) {
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;
            uint64_t before = fixture_total_drops(f);

            ip->plen = be16_put((uint16_t) (n - IP6_HDR_LEN));
            net_input(net, DPU3, bytes, n);
            ck_assert_uint_eq(fixture_total_drops(f), before + 1);
            net->n_sent = 0;
        }
        ck_assert_uint_eq(fixture_drops(f, DROP_probe_malformed), len - IP6_HDR_LEN - 8);
        net_destroy(net);
    }
END_TEST

/* What comes back to dpu1, from a fabric where all works. */
static struct net *
net_with_answer(struct sent_packet *loop, struct sent_packet *peer)
{
    struct net *net = net_create(TIMEOUT);
    bool has_loop = false, has_peer = false;

    for (unsigned i = 0; i < 100000 && !(has_loop && has_peer); i++) {
        net_run(net, LINK_USEC / 2);
        const struct sent_packet *p = &net->last[DPU1];
        const struct ip6_hdr_wire *ip = (const void *) p->bytes;
        const struct udp_hdr *udp = (const void *) (ip + 1);

        if (p->len && be16_get(udp->sport) == UDP_PORT_STAMP) {
            *peer = *p;
            has_peer = true;
        } else if (p->len && node_id_of(&ip->src) == DPU1_ID) {
            *loop = *p;
            has_loop = true;
        }
    }
    ck_assert(has_loop && has_peer);
    return net;
}

/* Changes a byte behind the UDP header, mends the checksum, and feeds it to dpu1. */
static enum drop_reason
feed_changed(struct net *net, const struct sent_packet *p, int ofs)
{
    struct fixture *f = net->nodes[DPU1];
    struct sent_packet changed = *p;
    struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) changed.bytes;
    struct udp_hdr *udp = (struct udp_hdr *) (ip + 1);
    uint64_t before[N_DROP_REASONS];

    if (ofs >= 0) {
        ((uint8_t *) (udp + 1))[ofs] ^= 1;
        udp->csum = be16_put(0);
        udp->csum = inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, udp, p->len - sizeof *ip);
    }
    memcpy(before, f->class->drops(f->node), sizeof before);
    net_input(net, DPU1, changed.bytes, p->len);
    for (enum drop_reason why = 0; why < N_DROP_REASONS; why++) {
        if (f->class->drops(f->node)[why] != before[why]) {
            return why;
        }
    }
    ck_abort_msg("no counter counts it");
}

/* Nobody can make up what comes back, or change what tells it from others; once seen, it counts once. */
START_TEST(forged_and_replayed)
    {
        struct sent_packet loop, peer;
        struct net *net = net_with_answer(&loop, &peer);
        uint64_t n[2];

        for (unsigned i = 0; i < 2; i++) {
            n[i] = net_probe(net, DPU1, i ? PEER : LOOP).n_returned;
        }
        ck_assert_int_eq(feed_changed(net, &loop, -1), DROP_probe_replayed);
        ck_assert_int_eq(feed_changed(net, &peer, -1), DROP_probe_replayed);
        /* Sequence number, time, SSID, cookie; of an answer what it answers to. */
        const int of_loop[] = {3, 7, 11, 15, 44 + 4 + 7},
                  of_answer[] = {15, 27, 31, 35, 44 + 8 + 4};
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_int_eq(feed_changed(net, &loop, of_loop[i]), DROP_probe_forged);
            ck_assert_int_eq(feed_changed(net, &peer, of_answer[i]), DROP_probe_forged);
        }
        /* Without a cookie: its TLV has another type. */
        ck_assert_int_eq(feed_changed(net, &loop, 44 + 1), DROP_probe_forged);
        /* An answer of somebody else. */
        struct sent_packet other = peer;
        ((struct ip6_hdr_wire *) other.bytes)->src = node_address(OTHER_ID);
        other.bytes[IP6_HDR_LEN + 8 + 4]++; /* so that the checksum is wrong, and made right. */
        ck_assert_int_eq(feed_changed(net, &other, 8), DROP_probe_forged);
        for (unsigned i = 0; i < 2; i++) {
            ck_assert_uint_eq(net_probe(net, DPU1, i ? PEER : LOOP).n_returned, n[i]);
        }
        net_destroy(net);
    }
END_TEST

/* One that was sent with a checksum does not come back without. */
START_TEST(lost_checksum)
    {
        struct sent_packet loop, peer;
        struct net *net = net_with_answer(&loop, &peer);

        for (unsigned i = 0; i < 2; i++) {
            struct sent_packet *p = i ? &peer : &loop;

            ((struct udp_hdr *) (p->bytes + IP6_HDR_LEN))->csum = be16_put(0);
            ck_assert_int_eq(feed_changed(net, p, -1), DROP_probe_malformed);
        }
        net_destroy(net);
    }
END_TEST

/* A probe of ours that comes back as if it were a peer's answer, or the other way round. */
START_TEST(other_kind)
    {
        struct sent_packet loop, peer;
        struct net *net = net_with_answer(&loop, &peer);

        /* dpu1's probe to dpu3 comes to dpu1 itself: it is no loop. */
        net->wires[LEAF3][DPU3].cut = true;
        net->nodes[DPU3]->config.n_probes = 0; /* nobody else sends to leaf3. */
        fixture_configure(net->nodes[DPU3]);
        net_run(net, 2 * INTERVAL_USEC);
        loop = net->last[LEAF3];
        ((struct ip6_hdr_wire *) loop.bytes)->dst = node_locator(DPU1_ID);
        ck_assert_int_eq(feed_changed(net, &loop, 16),
                         DROP_probe_forged); /* 16: must be zero, ignored. */
        net_destroy(net);
    }
END_TEST

/* Proves AB-46. */
START_TEST(hosts_and_addresses)
    {
        struct fixture *f = usid_create(DPU3_ID, SPINE_A, SPINE_B);
        uint8_t bytes[PACKET_ROOM];
        size_t len;

        f->config.probers = calloc(1, sizeof *f->config.probers);
        f->config.probers[0] = node_address(DPU1_ID);
        f->config.n_probers = 1;
        fixture_configure(f);
        /* A host's port takes no packet to a SID, whoever seems to have sent it. */
        len = ask_bytes(&good, bytes);
        fixture_input(f, HOST, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);
        ((struct ip6_hdr_wire *) bytes)->src = OWN_HOST;
        fixture_input(f, HOST, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 2);
        /* An agent's port takes that agent's only. */
        len = ask_bytes(&good, bytes);
        fixture_input(f, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 3);
        /* What is for the node's own address is no probe, nor what is for another SID. */
        ((struct ip6_hdr_wire *) bytes)->dst = node_address(DPU3_ID);
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_for_us), 1);
        ((struct ip6_hdr_wire *) bytes)->dst = node_sid(DPU3_ID, SID_FUNC_END);
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 1);
        /* Another UDP port at the SID. */
        len = ask_bytes(&good, bytes);
        bytes[IP6_HDR_LEN + 3] ^= 1;
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_sid_upper), 2);
        /* A probe, at last: no link leads to leaf3 from here. */
        len = ask_bytes(&good, bytes);
        fixture_input(f, PORT_SA, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_usid_unknown), 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
reflector_suite(void)
{
    Suite *s = suite_create("reflector");
    TCase *tc = tcase_create("reflector");

    tcase_add_test(tc, answer);
    tcase_add_test(tc, without_checksum);
    tcase_add_loop_test(tc, request, 0, sizeof requests / sizeof requests[0]);
    tcase_add_test(tc, link_down);
    tcase_add_test(tc, replayed);
    tcase_add_test(tc, rate);
    tcase_add_test(tc, many_sessions);
    tcase_add_test(tc, malformed);
    tcase_add_test(tc, truncated);
    tcase_add_test(tc, forged_and_replayed);
    tcase_add_test(tc, lost_checksum);
    tcase_add_test(tc, other_kind);
    tcase_add_test(tc, hosts_and_addresses);
    suite_add_tcase(s, tc);
    return s;
}
