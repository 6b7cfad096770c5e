/* SPDX-License-Identifier: Apache-2.0
 *
 * The headend of paths: headers, policies, pins, what is counted.  Who overtakes whom is in
 * test-path-order.c.
 */
#include <check.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/headend.h"
#include "lib/icmp6.h"
#include "lib/in-flight.h"
#include "lib/inet-csum.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/hex.h"
#include "tests/unit/path-fixture.h"
#include "tests/unit/suites.h"

#define QP            0x11
#define HEADEND_DRAIN 500000

static const uint8_t *
bytes_of(const struct frame *frame)
{
    return frame->bytes + sizeof(struct eth_hdr);
}

/* The frame leaves by 'port' with the IPv6 header, and perhaps SRH, in 'hex' in front of 'inner',
 * whose hop limit is one less.  The flow label is not compared. */
static void
check_header(const struct frame *frame, uint16_t port, const char *hex, const uint8_t *inner,
             size_t inner_len)
{
    uint8_t expected[PACKET_ROOM], sent[PACKET_ROOM];
    size_t len = hex_bytes(hex, expected, sizeof expected);

    ck_assert_uint_eq(frame->port, port);
    ck_assert_uint_eq(frame->len, sizeof(struct eth_hdr) + len + inner_len);
    memcpy(expected + len, inner, inner_len);
    expected[len + 7]--;
    memcpy(sent, bytes_of(frame), len + inner_len);
    sent[1] &= 0xf0;
    sent[2] = sent[3] = 0;
    ck_assert_mem_eq(sent, expected, len + inner_len);
    ck_assert(frame_icrc_ok(frame));
}

/* H.Encaps.Red, byte by byte: the program in the destination address and no SRH, 40 bytes. */
START_TEST(one_container)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_FAILOVER, 1, 0x123);
        struct roce_spec spec = path_request(RC_SEND_ONLY, QP, 1);
        uint8_t inner[PACKET_ROOM];

        d->paths[0].program.containers[0] = addr_of("5f00:0:100:500:300::");
        fixture_configure(f);
        spec.payload_len = 4;
        ck_assert_uint_eq(path_taken(f, &spec), 0x123);
        check_header(&f->frames[0], UPLINK,
                     "60200000 0044 29 40 5f000000020000000000000000000001"
                     "5f000000010005000300000000000000",
                     inner, roce_build(inner, &spec));
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* Three containers: the first is only in the destination address (RFC 8986 section 5.2). */
START_TEST(several_containers)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_FAILOVER, 1, 1);
        struct roce_spec spec = path_request(RC_SEND_ONLY, QP, 1);
        uint8_t inner[PACKET_ROOM];

        d->paths[0].program.n = 3;
        d->paths[0].program.containers[0] = addr_of("5f00:0:100:500:300:400:600:200");
        d->paths[0].program.containers[1] = addr_of("5f00:0:600:300::");
        d->paths[0].program.containers[2] = addr_of("5f00:0:a3::");
        fixture_configure(f);
        spec.payload_len = 4;
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        check_header(&f->frames[0], UPLINK,
                     "60200000 006c 2b 40 5f000000020000000000000000000001"
                     "5f000000010005000300040006000200"
                     "29 04 04 02 01 00 0000"
                     "5f00000000a300000000000000000000 5f000000060003000000000000000000",
                     inner, roce_build(inner, &spec));
        fixture_destroy(f);
    }
END_TEST

/* The whole traffic class goes outside, and stays inside (RFC 6040, normal mode). */
START_TEST(traffic_class)
    {
        struct fixture *f = path_agent();
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 1);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        path_add(f, &path_peer, PATH_FAILOVER, 1, 1);
        fixture_configure(f);
        for (unsigned tc = 0; tc < 256; tc++) {
            ip6_set_vtf((struct ip6_hdr_wire *) bytes, (uint8_t) tc, 0x777);
            fixture_input(f, HOST_PORT, bytes, len);
            ck_assert_uint_eq(f->n_frames, 1);
            const uint8_t *outer = bytes_of(&f->frames[0]);
            ck_assert_uint_eq(ip6_tc((const void *) outer), tc);
            ck_assert_mem_eq(outer + IP6_HDR_LEN, bytes, 4);
        }
        fixture_destroy(f);
    }
END_TEST

/* The label says the path; the rest of it is the flow's. */
START_TEST(flow_label)
    {
        struct fixture *f = path_agent();
        unsigned n_different = 0;

        path_add(f, &path_peer, PATH_SPREAD, 2, 0xffe);
        fixture_configure(f);
        for (uint32_t qp = 1; qp <= 20; qp++) {
            uint32_t labels[3];

            for (unsigned i = 0; i < 3; i++) {
                struct roce_spec spec = path_request(RC_WRITE_ONLY, qp, i);
                unsigned number = path_taken(f, &spec);

                labels[i] = ip6_flow_label((const void *) bytes_of(&f->frames[0]));
                ck_assert_uint_eq(number, qp % 2 ? 0xffe : 0xfff);
                ck_assert_uint_eq(f->frames[0].port, qp % 2 ? UPLINK : OTHER_UPLINK);
                ck_assert_uint_eq(labels[i], labels[0]);
            }
            n_different += (labels[0] & 0xff) != (qp & 0xff);
        }
        ck_assert_uint_gt(n_different, 15);
        fixture_destroy(f);
    }
END_TEST

/* What two queue pairs take, of paths 1 to 3 of which one may not be usable, and what they take when
 * it is. */
#define SIX 6
static const struct {
    enum path_policy policy;
    unsigned unusable;   /* 0: all are usable; otherwise for the first three packets. */
    bool down;           /* its port is, and no other's. */
    unsigned taken[SIX]; /* queue pairs in turn. */
} policies[] = {
    {PATH_NONE, 0, false, {0, 0, 0, 0, 0, 0}},     {PATH_FAILOVER, 0, false, {1, 1, 1, 1, 1, 1}},
    {PATH_FAILOVER, 1, false, {2, 2, 2, 2, 2, 2}}, /* going back is in test-headend-plan.c. */
    {PATH_FAILOVER, 2, true, {1, 1, 1, 1, 1, 1}},  {PATH_SPREAD, 0, false, {1, 2, 1, 2, 1, 2}},
    {PATH_SPREAD, 1, false, {2, 3, 2, 3, 2, 3}},   {PATH_SPREAD, 2, true, {1, 3, 1, 3, 1, 3}},
    {PATH_MESSAGE, 0, false, {1, 2, 1, 2, 1, 2}}, /* nothing is ever confirmed. */
    {PATH_SPRAY, 0, false, {1, 2, 3, 1, 2, 3}},    {PATH_SPRAY, 2, true, {1, 3, 1, 2, 3, 1}},
};

static void
set_usable(struct fixture *f, unsigned number, bool down, bool usable)
{
    if (down) {
        f->down[OTHER_UPLINK] = !usable;
    } else if (number) {
        f->config.destinations[0].paths[number - 1].usable = usable;
        fixture_configure(f);
    }
}

START_TEST(policy)
    {
        struct fixture *f = path_agent();

        path_add(f, &path_peer, policies[_i].policy, 3, 1);
        fixture_configure(f);
        ck_assert(headend_has(((struct node_base *) f->node)->headend, &path_peer));
        ck_assert(!headend_has(((struct node_base *) f->node)->headend, &path_peer2));
        set_usable(f, policies[_i].unusable, policies[_i].down, false);
        for (unsigned i = 0; i < SIX; i++) {
            struct roce_spec spec = path_request(RC_WRITE_ONLY, QP + i % 2, i / 2);

            if (i == 2 && policies[_i].policy != PATH_FAILOVER) {
                set_usable(f, policies[_i].unusable, policies[_i].down, true);
            }
            ck_assert_uint_eq(path_taken(f, &spec), policies[_i].taken[i]);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        fixture_destroy(f);
    }
END_TEST

/* A flow leaves a path that is not usable any more, and is counted where it comes to. */
START_TEST(flow_moves_away)
    {
        struct fixture *f = path_agent();
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 0);

        path_add(f, &path_peer, PATH_SPREAD, 2, 1);
        fixture_configure(f);
        ck_assert_uint_eq(path_taken(f, &spec), 1);
        f->down[UPLINK] = true;
        ck_assert(!path_info(f, 1).up);
        ck_assert_uint_eq(path_taken(f, &spec), 2);
        f->down[UPLINK] = false;
        ck_assert_uint_eq(path_taken(f, &spec), 2);
        ck_assert_uint_eq(path_info(f, 1).n_flows, 0);
        ck_assert_uint_eq(path_info(f, 1).n_packets, 1);
        ck_assert_uint_eq(path_info(f, 1).n_moved, 0);
        ck_assert_uint_eq(path_info(f, 2).n_flows, 1);
        ck_assert_uint_eq(path_info(f, 2).n_packets, 2);
        ck_assert_uint_eq(path_info(f, 2).n_moved, 1);
        ck_assert_uint_eq(path_info(f, 2).n_bytes, 2 * (f->frames[0].len - sizeof(struct eth_hdr)));
        fixture_destroy(f);
    }
END_TEST

/* No path is usable: the first is taken all the same. */
START_TEST(none_usable)
    {
        static const enum path_policy some[] = {PATH_FAILOVER, PATH_SPREAD, PATH_MESSAGE,
                                                PATH_SPRAY};

        for (size_t i = 0; i < 4; i++) {
            struct fixture *f = path_agent();
            struct destination_config *d = path_add(f, &path_peer, some[i], 3, 1);
            struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 0);

            for (size_t j = 0; j < 3; j++) {
                d->paths[j].usable = false;
            }
            fixture_configure(f);
            for (unsigned j = 0; j < 3; j++) {
                ck_assert_uint_eq(path_taken(f, &spec), 1);
            }
            fixture_destroy(f);
        }
    }
END_TEST

/* No paths at all: as it is. */
START_TEST(no_paths)
    {
        struct fixture *f = path_agent();
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 0);
        struct path_info info;

        path_add(f, &path_peer, PATH_SPREAD, 0, 1);
        fixture_configure(f);
        ck_assert_uint_eq(path_taken(f, &spec), 0);
        ck_assert(!headend_has(((struct node_base *) f->node)->headend, &path_peer));
        ck_assert(!headend_path(f->node, 0, &info));
        fixture_destroy(f);
    }
END_TEST

static void
check_path_none(struct fixture *f, const struct roce_spec *spec)
{
    uint64_t before = fixture_drops(f, DROP_path_none);

    agent_from_host(f, spec);
    ck_assert_uint_eq(f->n_frames, 0);
    ck_assert_uint_eq(fixture_drops(f, DROP_path_none), before + 1);
}

/* Pins win over each policy, that of a flow over that of the destination; a pin that is not usable
 * drops, and so does one to a path that is not there. */
START_TEST(pins)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, (enum path_policy) _i, 4, 1);
        struct roce_spec a = path_request(RC_WRITE_ONLY, QP, 0);
        struct roce_spec b = path_request(RC_WRITE_ONLY, QP + 1, 0);
        struct roce_spec lost = path_request(RC_WRITE_ONLY, QP + 2, 0);

        path_pin(d, QP + 1, 4);
        path_pin(d, QP + 2, 9);
        d->pinned = 3;
        fixture_configure(f);
        for (unsigned i = 0; i < 3; i++) {
            ck_assert_uint_eq(path_taken(f, &a), 3);
            ck_assert_uint_eq(path_taken(f, &b), 4);
            check_path_none(f, &lost);
        }
        f->down[OTHER_UPLINK] = true;
        check_path_none(f, &b);
        ck_assert_uint_eq(path_taken(f, &a), 3);
        f->down[OTHER_UPLINK] = false;
        f->config.destinations[0].paths[2].usable = false;
        fixture_configure(f);
        check_path_none(f, &a);
        ck_assert_uint_eq(path_taken(f, &b), 4);
        f->config.destinations[0].pinned = 0;
        fixture_configure(f);
        f->now += HEADEND_DRAIN; /* it leaves the path when all is confirmed, or then. */
        f->class->timer(f->node, f->now);
        ck_assert_uint_ne(path_taken(f, &a), 3);
        fixture_destroy(f);
    }
END_TEST

/* Flows at all destinations together, as counted at their paths. */
static uint32_t
n_flows(const struct fixture *f)
{
    struct path_info info;
    uint32_t n = 0;

    for (size_t i = 0; f->class->path(f->node, i, &info); i++) {
        n += info.n_flows;
    }
    return n;
}

/* The table holds so many flows; who was silent for longest makes room. */
START_TEST(eviction)
    {
        struct fixture *f = path_agent();

        path_add(f, &path_peer, PATH_SPREAD, 3, 1);
        fixture_configure(f);
        struct roce_spec kept = path_request(RC_WRITE_ONLY, 1, 0);
        unsigned number = path_taken(f, &kept);
        for (uint32_t qp = 2; qp < 6000; qp++) {
            struct roce_spec spec = path_request(RC_WRITE_ONLY, qp, 0);

            f->now++;
            (void) path_taken(f, &spec);
            f->now++;
            ck_assert_uint_eq(path_taken(f, &kept), number);
        }
        ck_assert_uint_eq(n_flows(f), 1024);
        ck_assert_uint_eq(path_info(f, 1).n_moved + path_info(f, 2).n_moved, 0);
        struct roce_spec back = path_request(RC_WRITE_ONLY, 2, 0);
        (void) path_taken(f, &back);
        ck_assert_uint_eq(n_flows(f), 1024);
        fixture_destroy(f);
    }
END_TEST

/* A new configuration: flows and counters go by the paths' names, flows of paths that are gone are
 * placed anew, and those of destinations that are gone are forgotten. */
START_TEST(reconfigured)
    {
        struct fixture *f = path_agent();
        struct roce_spec a = path_request(RC_WRITE_ONLY, QP, 0);
        struct roce_spec b = path_request(RC_WRITE_ONLY, QP + 1, 0);
        struct roce_spec other = path_request(RC_WRITE_ONLY, QP, 0);

        other.dst = &path_peer2;
        path_add(f, &path_peer, PATH_SPREAD, 3, 1);
        path_add(f, &path_peer2, PATH_SPREAD, 1, 10);
        fixture_configure(f);
        ck_assert_uint_eq(path_taken(f, &a), 1);
        ck_assert_uint_eq(path_taken(f, &b), 2);
        ck_assert_uint_eq(path_taken(f, &other), 10);

        /* The first is gone; the others change places and numbers. */
        struct destination_config *d = &f->config.destinations[0];
        d->paths[0] = d->paths[2];
        d->paths[0].number = 5;
        d->paths[1].number = 6;
        d->n_paths = 2;
        f->config.n_destinations = 1;
        free(f->config.destinations[1].paths);
        fixture_configure(f);
        ck_assert_uint_eq(path_info(f, 5).n_packets, 0);
        ck_assert_uint_eq(path_info(f, 6).n_packets, 1);
        ck_assert_uint_eq(path_info(f, 6).n_flows, 1);
        ck_assert_uint_eq(path_taken(f, &b), 6);
        ck_assert_uint_eq(path_taken(f, &a), 5);
        ck_assert_uint_eq(path_taken(f, &other), 0);
        ck_assert_uint_eq(n_flows(f), 2);
        fixture_destroy(f);
    }
END_TEST

/*
 * PATH_MESSAGE.
 */

static struct fixture *
message_agent(void)
{
    struct fixture *f = path_agent();

    path_add(f, &path_peer, PATH_MESSAGE, 2, 1);
    fixture_configure(f);
    f->now += IN_FLIGHT_LIFE;
    return f;
}

static unsigned
sends(struct fixture *f, uint8_t opcode, uint32_t qp, uint32_t psn)
{
    struct roce_spec spec = path_request(opcode, qp, psn);

    return path_taken(f, &spec);
}

static void
acks(struct fixture *f, uint32_t psn)
{
    path_answer(f, RC_ACK, AETH_ACK_UNLIMITED, psn);
}

/* A message moves only when all before it is confirmed; its later packets follow it. */
START_TEST(message_moves_when_confirmed)
    {
        struct fixture *f = message_agent();

        ck_assert_uint_eq(sends(f, RC_WRITE_FIRST, QP, START), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_LAST, QP, START + 1), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 1);
        acks(f, START + 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_FIRST, QP, START + 3), 1);
        acks(f, START + 3);
        ck_assert_uint_eq(sends(f, RC_WRITE_LAST, QP, START + 4), 1); /* begins no message. */
        path_answer(f, RC_ACK, AETH_NAK_PSN_SEQ, START + 4);          /* is sent again. */
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 5), 1);
        path_answer(f, RC_ACK, AETH_RNR | 1, START + 5);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 6), 1);
        acks(f, START + 6);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 7), 2);
        acks(f, START + 7);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 8), 1);
        ck_assert_uint_eq(path_info(f, 1).n_moved, 1);
        ck_assert_uint_eq(path_info(f, 2).n_moved, 1);
        fixture_destroy(f);
    }
END_TEST

/* What was sent before the policy may be under way for as long as nothing behind it is confirmed. */
START_TEST(message_begins)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_SPREAD, 2, 1);

        fixture_configure(f);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START), 1);
        d->policy = PATH_MESSAGE;
        fixture_configure(f);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 1), 1);
        f->now += IN_FLIGHT_LIFE;
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 2), 1);
        acks(f, START + 2);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, START + 3), 2);
        fixture_destroy(f);
    }
END_TEST

/* A READ has arrived when some of its answer has; its answer has more PSNs than it. */
START_TEST(message_read)
    {
        struct fixture *f = message_agent();
        struct roce_spec read = path_request(RC_READ_REQ, QP, 100);

        read.dma_len = 10 * 1024;
        ck_assert_uint_eq(path_taken(f, &read), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 110), 1);
        path_answer(f, RC_READ_RESP_FIRST, AETH_ACK_UNLIMITED, 100);
        path_answer(f, RC_READ_RESP_MIDDLE, 0, 101);
        path_answer(f, RC_READ_RESP_LAST, AETH_ACK_UNLIMITED, 109);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 111), 1);
        acks(f, 111);
        read.psn = 112;
        ck_assert_uint_eq(path_taken(f, &read), 2);
        path_answer(f, RC_READ_RESP_FIRST, AETH_ACK_UNLIMITED, 112);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 122), 1);
        fixture_destroy(f);
    }
END_TEST

/* An answer that may be to several flows confirms none of them: to a packet that is in flight, to one
 * that was confirmed a moment ago, since that may be said twice, and to any part of a READ. */
START_TEST(message_ambiguous)
    {
        struct fixture *f = message_agent();
        struct roce_spec read = path_request(RC_READ_REQ, QP + 2, 1000);

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 5), 1);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 5), 2);
        acks(f, 5);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 6), 1);
        acks(f, 6); /* only one has sent it. */
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 7), 1);
        acks(f, 7);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 6), 2);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 7), 2);
        acks(f, 7); /* the other's, again? */
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 8), 2);

        read.dma_len = 100 * 256;
        (void) path_taken(f, &read);
        unsigned where = sends(f, RC_WRITE_ONLY, QP + 3, 1099);
        path_answer(f, RC_READ_RESP_LAST, AETH_ACK_UNLIMITED, 1099);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 3, 1100), where);
        acks(f, 1100); /* nobody else can have been asked for that. */
        ck_assert_uint_ne(sends(f, RC_WRITE_ONLY, QP + 3, 1101), where);

        /* Later there are no answers any more to what was sent now. */
        f->now += 2 * IN_FLIGHT_LIFE;
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 9), 2);
        acks(f, 9);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + 1, 10), 1);
        fixture_destroy(f);
    }
END_TEST

/* Does the flow go on as it is, although its packet is answered? */
static void
check_doubt(struct fixture *f, uint32_t qp, uint32_t psn)
{
    unsigned where = sends(f, RC_WRITE_ONLY, qp, psn);

    acks(f, psn);
    ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, qp, psn + 1), where);
    f->now += IN_FLIGHT_LIFE;
    ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, qp, psn + 2), where);
    acks(f, psn + 2);
    ck_assert_uint_ne(sends(f, RC_WRITE_ONLY, qp, psn + 3), where);
}

/* As long as there may be answers to flows that are not known no answer counts: after a restart,
 * another policy, a queue pair with the same number as one before, or one that had to make room. */
START_TEST(message_doubt)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_MESSAGE, 2, 1);

        fixture_configure(f);
        check_doubt(f, QP, 100);
        d->policy = PATH_SPRAY; /* which knows no flows. */
        fixture_configure(f);
        d->policy = PATH_MESSAGE;
        fixture_configure(f);
        check_doubt(f, QP, 200);
        fixture_configure(f); /* nothing has changed. */
        acks(f, 203);
        unsigned where = sends(f, RC_WRITE_ONLY, QP, 204);
        acks(f, 204);
        ck_assert_uint_ne(sends(f, RC_WRITE_ONLY, QP, 205), where);
        check_doubt(f, QP, 0x800000); /* a jump. */
        for (uint32_t qp = 0x1000; qp < 0x3000; qp++) {
            (void) sends(f, RC_WRITE_ONLY, qp, 5);
        }
        check_doubt(f, 0x2fff, 10);
        fixture_destroy(f);
    }
END_TEST

/* Answers of the host stay on their path, whatever is confirmed, and so does what is no RoCE. */
START_TEST(message_is_of_requests)
    {
        struct fixture *f = message_agent();
        unsigned answers = sends(f, RC_ACK, QP, 1);
        unsigned requests = sends(f, RC_WRITE_ONLY, QP, 1);
        uint8_t plain[IP6_HDR_LEN + 8];

        ck_assert_uint_ne(answers, requests);
        for (uint32_t psn = 1; psn < 9; psn++) {
            ck_assert_uint_eq(sends(f, RC_ACK, QP, psn), answers);
            acks(f, psn);
        }
        for (unsigned i = 0; i < 4; i++) {
            ip6_build(plain, star_source, path_peer, 253, 8);
            fixture_input(f, HOST_PORT, plain, sizeof plain);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, UPLINK);
        }
        ck_assert_uint_eq(n_flows(f), 3);
        fixture_destroy(f);
    }
END_TEST

/* Answers to other hosts, and what is no answer, confirm nothing. */
START_TEST(message_other_arrivals)
    {
        struct fixture *f = message_agent();
        struct headend *h = ((struct node_base *) f->node)->headend;
        struct roce_spec ack = {
            .src = &path_peer, .dst = &path_peer2, .dest_qp = 9, .opcode = RC_ACK, .psn = 1};
        uint8_t bytes[PACKET_ROOM];

        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 1), 1);
        size_t len = roce_build(bytes, &ack);
        headend_note_arrival(h, bytes, len, f->now); /* for another host. */
        ack.dst = &star_source;
        ack.src = &path_peer2;
        headend_note_arrival(h, bytes, roce_build(bytes, &ack), f->now); /* of another one. */
        ack.src = &path_peer;
        ack.opcode = RC_WRITE_ONLY;
        headend_note_arrival(h, bytes, roce_build(bytes, &ack), f->now);
        ack.opcode = RC_ACK;
        roce_build(bytes, &ack);
        for (size_t i = IP6_HDR_LEN; i < IP6_HDR_LEN + 8 + 12; i++) {
            headend_note_arrival(h, bytes, i, f->now);
        }
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 2), 1);
        ack.psn = 2;
        headend_note_arrival(h, bytes, roce_build(bytes, &ack), f->now);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 3), 2);
        fixture_destroy(f);
    }
END_TEST

/*
 * Errors.
 */

/* A packet that does not fit with its header: the host hears what fits. */
START_TEST(packet_too_big)
    {
        static const struct {
            uint8_t n;
            uint16_t port;
            uint32_t header;
        } cases[] = {{1, UPLINK, 40}, {1, 0, 40}, {2, UPLINK, 64}, {4, UPLINK, 96}};

        for (size_t i = 0; i < 4; i++) {
            struct fixture *f = path_agent();
            struct destination_config *d = path_add(f, &path_peer, PATH_FAILOVER, 1, 1);
            uint8_t bytes[PACKET_ROOM];
            uint16_t room = (uint16_t) (1500 - cases[i].header);

            d->paths[0].program.n = cases[i].n;
            d->paths[0].port = cases[i].port;
            f->mtu[UPLINK] = 1500;
            f->mtu[OTHER_UPLINK] = 9000;
            fixture_configure(f);
            ip6_build(bytes, star_source, path_peer, 253, room - IP6_HDR_LEN + 1u);
            fixture_input(f, HOST_PORT, bytes, room + 1u);
            ck_assert_uint_eq(f->n_frames, 1);
            check_icmp6_error(&f->frames[0], HOST_PORT, ICMP6_TOO_BIG, 0, room);
            ck_assert_uint_eq(fixture_drops(f, DROP_too_long), 1);
            ck_assert_uint_eq(path_info(f, 1).n_packets, 0);
            ip6_build(bytes, star_source, path_peer, 253, room - IP6_HDR_LEN);
            f->mangled = true; /* containers are zero. */
            fixture_input(f, HOST_PORT, bytes, room);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, UPLINK);
            ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + 1500);
            fixture_destroy(f);
        }
    }
END_TEST

/* The hop limit counts before the header: 1 is too little, and the host hears so. */
START_TEST(hop_limit)
    {
        struct fixture *f = path_agent();
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 0);
        uint8_t bytes[PACKET_ROOM];
        size_t len = roce_build(bytes, &spec);

        path_add(f, &path_peer, PATH_FAILOVER, 1, 1);
        fixture_configure(f);
        ((struct ip6_hdr_wire *) bytes)->hlim = 1;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], HOST_PORT, ICMP6_TIME, 0, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_hop_limit), 1);
        ((struct ip6_hdr_wire *) bytes)->hlim = 2;
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(path_info(f, 1).n_packets, 1);
        ck_assert_uint_eq(bytes_of(&f->frames[0])[7], 64);
        ck_assert_uint_eq(bytes_of(&f->frames[0])[IP6_HDR_LEN + 7], 1);
        fixture_destroy(f);
    }
END_TEST

/* An ICMPv6 error about the packet in the frame, which has lost a uSID on its way, with the first
 * 'quoted' bytes of it. */
static size_t
make_error(uint8_t *out, const uint8_t *about, size_t quoted)
{
    struct in6_addr node = node_address(0x500), own = node_address(STAR_AGENT_ID);
    uint8_t *icmp = ip6_build(out, node, own, IP6_NH_ICMPV6, 8 + quoted);

    icmp[0] = ICMP6_TIME;
    memcpy(icmp + 8, about, quoted);
    be16_t sum = inet_csum_ip6(&node, &own, IP6_NH_ICMPV6, icmp, 8 + quoted);
    memcpy(icmp + 2, &sum, sizeof sum);
    return IP6_HDR_LEN + 8 + quoted;
}

/* Errors count for the path that the quoted label says, whatever has become of the address. */
START_TEST(icmp_errors)
    {
        struct fixture *f = path_agent();
        struct destination_config *d = path_add(f, &path_peer, PATH_SPREAD, 2, 1);
        uint8_t about[2][PACKET_ROOM], bytes[PACKET_ROOM];
        size_t encap_len[2] = {40, 64};

        d->paths[1].program.n = 2;
        d->paths[1].program.containers[1] = addr_of("5f00:0:a3::");
        path_add(f, &path_peer2, PATH_SPREAD, 1, 3);
        fixture_configure(f);
        for (uint32_t i = 0; i < 2; i++) {
            ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP + i, 0), i + 1);
            memcpy(about[i], bytes_of(&f->frames[0]), f->frames[0].len - sizeof(struct eth_hdr));
            struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) about[i];
            ip->dst = node_locator(0x300);
            ip->hlim = 1;
        }
        for (uint32_t i = 0; i < 2; i++) {
            for (size_t quoted = 0; quoted < encap_len[i] + 60; quoted++) {
                uint64_t before = path_info(f, (uint16_t) (i + 1)).n_errors;
                uint64_t other = path_info(f, (uint16_t) (2 - i)).n_errors;

                fixture_input(f, UPLINK, bytes, make_error(bytes, about[i], quoted));
                ck_assert_uint_eq(path_info(f, (uint16_t) (i + 1)).n_errors - before,
                                  quoted >= encap_len[i] + IP6_HDR_LEN);
                ck_assert_uint_eq(path_info(f, (uint16_t) (2 - i)).n_errors, other);
            }
        }
        uint64_t before = path_info(f, 1).n_errors;
        struct ip6_hdr_wire *outer = (struct ip6_hdr_wire *) about[0];
        struct ip6_hdr_wire *inner = outer + 1;
        size_t len = make_error(bytes, about[0], 100);
        bytes[IP6_HDR_LEN + 60] ^= 1; /* the checksum is wrong. */
        fixture_input(f, UPLINK, bytes, len);
        inner->src = star_proxy; /* a group's. */
        fixture_input(f, UPLINK, bytes, make_error(bytes, about[0], 100));
        inner->src = star_source;
        outer->src = node_address(0x777);
        fixture_input(f, UPLINK, bytes, make_error(bytes, about[0], 100));
        outer->src = node_address(STAR_AGENT_ID);
        ip6_set_vtf(outer, 2, 3 << 8); /* not to this host. */
        fixture_input(f, UPLINK, bytes, make_error(bytes, about[0], 100));
        ip6_set_vtf(outer, 2, 99 << 8);
        fixture_input(f, UPLINK, bytes, make_error(bytes, about[0], 100));
        ck_assert_uint_eq(path_info(f, 1).n_errors, before);
        ck_assert_uint_eq(path_info(f, 3).n_errors, 0);
        ip6_set_vtf(outer, 2, 1 << 8);
        fixture_input(f, UPLINK, bytes, make_error(bytes, about[0], 100));
        ck_assert_uint_eq(path_info(f, 1).n_errors, before + 1);
        fixture_destroy(f);
    }
END_TEST

/* Whatever the host sends inside: nothing breaks, and what leaves is what came. */
START_TEST(garbage)
    {
        struct fixture *f = path_agent();
        struct roce_spec spec = path_request(RC_READ_REQ, QP, 5);
        uint8_t whole[PACKET_ROOM], bytes[PACKET_ROOM];
        size_t whole_len = roce_build(whole, &spec);

        path_add(f, &path_peer, (enum path_policy)(1 + _i), 2, 1);
        f->mangled = true;
        fixture_configure(f);
        srandom(1);
        for (size_t len = IP6_HDR_LEN; len <= whole_len; len++) {
            for (unsigned i = 0; i < 20; i++) {
                struct ip6_hdr_wire *ip = (struct ip6_hdr_wire *) bytes;

                memcpy(bytes, whole, len);
                ip->plen = be16_put((uint16_t) (len - IP6_HDR_LEN));
                for (unsigned j = 0; j < i && len > IP6_HDR_LEN; j++) {
                    bytes[IP6_HDR_LEN + (size_t) random() % (len - IP6_HDR_LEN)] =
                        (uint8_t) random();
                }
                fixture_input(f, HOST_PORT, bytes, len);
                if (f->n_frames) {
                    bytes[7]--;
                    ck_assert_uint_eq(f->frames[0].len, sizeof(struct eth_hdr) + 40 + len);
                    ck_assert_mem_eq(bytes_of(&f->frames[0]) + 40, bytes, len);
                }
                bytes[7] = 64;
                ip->src = path_peer;
                ip->dst = star_source;
                fixture_input(f, UPLINK, bytes, len);
            }
        }
        ck_assert_uint_gt(path_info(f, 1).n_packets + path_info(f, 2).n_packets, 500);
        fixture_destroy(f);
    }
END_TEST

/*
 * Around it.
 */

/* A flow that is slowed down leaves on its path. */
START_TEST(paced)
    {
        struct fixture *f = path_agent();
        struct fast_cnp said = {.node = node_address(STAR_EDGE_ID)};

        agent_congestion(f, 8000000);
        path_add(f, &path_peer, PATH_FAILOVER, 2, 1);
        fixture_configure(f);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 0), 1);
        struct flow *flow = rate_find(f->node, &path_peer, QP);
        ck_assert_ptr_nonnull(flow);
        ck_assert_int_eq(rate_fast_cnp(f->node, flow, &said, f->now), DROP_fast_cnp);
        ck_assert_uint_eq(sends(f, RC_WRITE_ONLY, QP, 1), 1);
        struct roce_spec spec = path_request(RC_WRITE_ONLY, QP, 2);
        agent_from_host(f, &spec);
        ck_assert_uint_eq(f->n_frames, 0);
        do {
            fixture_timer(f);
        } while (!f->n_frames);
        ck_assert_uint_eq(path_info(f, 1).n_packets, 3);
        ck_assert_uint_ne(f->frames[0].h.inner.ofs, 0);
        fixture_destroy(f);
    }
END_TEST

/* On each uplink the agent answers for its host. */
START_TEST(uplinks_answer)
    {
        struct fixture *f = path_agent();

        ck_assert(fixture_solicit(f, UPLINK, star_source));
        ck_assert(fixture_solicit(f, OTHER_UPLINK, star_source));
        ck_assert(!fixture_solicit(f, OTHER_UPLINK, path_peer));
        fixture_destroy(f);
    }
END_TEST

/* A group's packets on a path: another destination address and nothing else, digests included. */
START_TEST(group_program)
    {
        static const struct auth_key key = {.id = 1, .len = 32, .secret = "of this test"};
        struct fixture *f = path_agent();
        struct tree_config *t = &f->config.trees[0];
        uint8_t without[PACKET_ROOM];

        t->auth.tlvs = AUTH_MT | AUTH_HMAC;
        t->auth.key = key.id;
        t->auth.n_keys = 1;
        t->auth.keys = must_copy(&key, 1, sizeof key);
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        size_t len = f->frames[0].len;
        memcpy(without, f->frames[0].bytes, len);
        f->config.trees[0].outer_program = addr_of("5f00:0:100:500:100:e000::");
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].len, len);
        struct ip6_hdr_wire *ip = (void *) (without + sizeof(struct eth_hdr));
        ip->dst = f->config.trees[0].outer_program;
        ck_assert_mem_eq(f->frames[0].bytes, without, len);

        /* With a packet for each edge the program is not used. */
        f->config.trees[0].mode = MODE_INGRESS;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        const struct ip6_hdr_wire *sent = (const void *) bytes_of(&f->frames[0]);
        ck_assert_mem_eq(&sent->dst, &f->config.trees[0].outer_da[0], 16);
        fixture_destroy(f);
    }
END_TEST

Suite *
headend_suite(void)
{
    Suite *s = suite_create("headend");
    TCase *tc = tcase_create("headend");

    tcase_add_test(tc, one_container);
    tcase_add_test(tc, several_containers);
    tcase_add_test(tc, traffic_class);
    tcase_add_test(tc, flow_label);
    tcase_add_loop_test(tc, policy, 0, sizeof policies / sizeof policies[0]);
    tcase_add_test(tc, flow_moves_away);
    tcase_add_test(tc, none_usable);
    tcase_add_test(tc, no_paths);
    tcase_add_loop_test(tc, pins, PATH_NONE, PATH_SPRAY + 1);
    tcase_add_test(tc, eviction);
    tcase_add_test(tc, reconfigured);
    tcase_add_test(tc, message_moves_when_confirmed);
    tcase_add_test(tc, message_begins);
    tcase_add_test(tc, message_read);
    tcase_add_test(tc, message_ambiguous);
    tcase_add_test(tc, message_doubt);
    tcase_add_test(tc, message_is_of_requests);
    tcase_add_test(tc, message_other_arrivals);
    tcase_add_test(tc, packet_too_big);
    tcase_add_test(tc, hop_limit);
    tcase_add_test(tc, icmp_errors);
    tcase_add_loop_test(tc, garbage, 0, 4);
    tcase_add_test(tc, paced);
    tcase_add_test(tc, uplinks_answer);
    tcase_add_test(tc, group_program);
    suite_add_tcase(s, tc);
    return s;
}
