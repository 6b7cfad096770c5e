/* SPDX-License-Identifier: Apache-2.0
 *
 * Authenticated groups at nodes: what a source agent sends an edge takes, and
 * nothing else; who does not have to look, does not.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/auth.h"
#include "lib/icrc.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "swedge/swedge.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/modes-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

static const struct auth_key old_key = {.id = 1, .len = 32, .secret = "old"};
static const struct auth_key new_key = {.id = 2, .len = 32, .secret = "new"};

/* Gives tree 0 this configuration, to be applied with fixture_configure(). */
static void
set_auth(struct fixture *f, unsigned int tlvs, uint32_t key, const struct auth_key *keys[])
{
    struct auth_config *c = &f->config.trees[0].auth;

    auth_config_uninit(c);
    *c = (struct auth_config){.tlvs = tlvs, .key = key, .keys = calloc(2, sizeof *c->keys)};
    for (; c->n_keys < 2 && keys[c->n_keys]; c->n_keys++) {
        c->keys[c->n_keys] = *keys[c->n_keys];
    }
}

static void
configure_auth(struct fixture *f, unsigned int tlvs, uint32_t key, const struct auth_key *a,
               const struct auth_key *b)
{
    set_auth(f, tlvs, key, (const struct auth_key *[]){a, b});
    fixture_configure(f);
}

/* What the agent makes of a WRITE of its host, from the outer IPv6 header on. */
static size_t
encapsulate(struct fixture *agent, uint8_t *out, uint32_t psn)
{
    agent_write(agent, psn);
    ck_assert_uint_eq(agent->n_frames, 1);
    const struct frame *frame = &agent->frames[0];
    size_t len = frame->len - sizeof(struct eth_hdr);

    memcpy(out, frame->bytes + sizeof(struct eth_hdr), len);
    return len;
}

/* The edge makes a copy for each receiver. */
static void
check_taken(struct fixture *edge, const uint8_t *bytes, size_t len, size_t n)
{
    uint64_t total = fixture_total_drops(edge);

    fixture_input(edge, 1, bytes, len);
    ck_assert_uint_eq(edge->n_frames, n);
    ck_assert_uint_eq(fixture_total_drops(edge), total);
}

/* Nothing is sent, one counter moves, and nobody hears of the PSN. */
static void
check_refused(struct fixture *edge, const uint8_t *bytes, size_t len, enum drop_reason why)
{
    uint64_t before = fixture_drops(edge, why), total = fixture_total_drops(edge);
    struct tree_info info, then;

    edge->class->tree(edge->node, 0, &info);
    fixture_input(edge, 1, bytes, len);
    edge->class->tree(edge->node, 0, &then);
    ck_assert_uint_eq(edge->n_frames, 0);
    ck_assert_uint_eq(fixture_drops(edge, why), before + 1);
    ck_assert_uint_eq(fixture_total_drops(edge), total + 1);
    ck_assert_uint_eq(then.reverse.h.v, info.reverse.h.v);
    ck_assert_int_eq(then.started, info.started);
    ck_assert_int_eq(then.auth->refused.why, why);
}

/* Byte of the first End.MT TLV's first QPN. */
static size_t
qpn_ofs(void)
{
    return IP6_HDR_LEN + sizeof(struct srh_hdr) + sizeof(struct in6_addr) + sizeof(struct mt_tlv)
           + offsetof(struct mt_receiver, qpn);
}

static const unsigned int which[] = {AUTH_MT, AUTH_HMAC, AUTH_MT | AUTH_HMAC};

/* Proves MT-9-2, MT-9-6, MT-9-7. */
START_TEST(at_an_edge)
    {
        unsigned int tlvs = which[_i];
        struct fixture *agent = agent_create(3), *edge = fixture_create(&swedge_class, 3);
        struct fixture *plain = agent_create(3);
        uint8_t bytes[PACKET_ROOM], without[PACKET_ROOM];
        size_t len, without_len;
        struct tree_info info;

        configure_auth(agent, tlvs, 2, &new_key, NULL);
        configure_auth(edge, tlvs, 0, &old_key, &new_key);
        edge->now += AUTH_LINGER_USEC;
        for (uint32_t psn = START; psn < START + 3; psn++) {
            without_len = encapsulate(plain, without, psn);
            check_refused(edge, without, without_len, DROP_auth_missing);
            len = encapsulate(agent, bytes, psn);
            check_taken(edge, bytes, len, 3);
        }
        edge->class->tree(edge->node, 0, &info);
        ck_assert_uint_eq(info.auth->n_computed, 1);
        ck_assert_uint_eq(info.auth->n_cached, 2);
        ck_assert_uint_eq(info.auth->n_refused, 3);

        bytes[IP6_HDR_LEN + 5] ^= 1; /* Flags. */
        check_refused(edge, bytes, len, DROP_auth_bad);
        bytes[IP6_HDR_LEN + 5] ^= 1;
        if (tlvs & AUTH_MT) {
            bytes[qpn_ofs() + 2] ^= 1;
            check_refused(edge, bytes, len, DROP_auth_bad);
            bytes[qpn_ofs() + 2] ^= 1;
        }
        configure_auth(edge, tlvs, 0, &old_key, NULL);
        edge->now += AUTH_LINGER_USEC;
        check_refused(edge, bytes, len, DROP_auth_unknown_key);

        fixture_destroy(agent);
        fixture_destroy(plain);
        fixture_destroy(edge);
    }
END_TEST

/* Data that is authenticated, with this instance. */
static void
configure_data(struct fixture *f, uint32_t instance)
{
    set_auth(f, AUTH_DATA, 1, (const struct auth_key *[]){&old_key, NULL});
    f->config.trees[0].auth.instance = instance;
    fixture_configure(f);
}

/* An edge that has asked for it for longer than packets are under way. */
static struct fixture *
data_edge(uint32_t floor)
{
    struct fixture *edge = fixture_create(&swedge_class, 2);

    configure_data(edge, floor);
    edge->now += AUTH_LINGER_USEC;
    return edge;
}

/* Byte 'ofs' of the inner packet changes, and its ICRC. */
static void
alter(uint8_t *bytes, size_t len, size_t ofs)
{
    size_t ip =
        IP6_HDR_LEN + 8u * (bytes[IP6_HDR_LEN + offsetof(struct srh_hdr, hdr_ext_len)] + 1u);
    size_t icrc = len - ROCE_ICRC_LEN;

    bytes[ip + ofs] ^= 1;
    icrc_store(bytes + icrc, icrc_compute(bytes + ip, icrc - ip));
}

/* Bytes of the inner packet. */
#define PSN_OFS (IP6_HDR_LEN + sizeof(struct udp_hdr) + offsetof(struct bth, psn) + 2)
#define PAYLOAD_OFS \
    (IP6_HDR_LEN + sizeof(struct udp_hdr) + sizeof(struct bth) + sizeof(struct reth))

/* Each packet counts once, and as it was sent; one that the source sends again is another one. */
START_TEST(data_at_an_edge)
    {
        struct fixture *agent = agent_create(2), *edge = data_edge(5), *plain = data_edge(5);
        uint8_t bytes[PACKET_ROOM], altered[PACKET_ROOM];

        configure_data(agent, 5);
        configure_auth(plain, AUTH_MT, 0, &old_key, NULL);
        for (uint32_t i = 0; i < 3; i++) {
            uint32_t psn = START + (i < 2 ? i : 0);
            size_t len = encapsulate(agent, bytes, psn);

            memcpy(altered, bytes, len);
            alter(altered, len, PSN_OFS);
            check_refused(edge, altered, len, DROP_auth_bad);
            alter(altered, len, PSN_OFS);
            alter(altered, len, PAYLOAD_OFS);
            check_refused(edge, altered, len, DROP_auth_bad);
            check_taken(edge, bytes, len, 2);
            check_refused(edge, bytes, len, DROP_auth_replay);
        }
        /* An MT-AUTH group sees none of that: its tags are the same for all packets. */
        configure_auth(agent, AUTH_MT, 1, &old_key, NULL);
        plain->now += AUTH_LINGER_USEC;
        size_t len = encapsulate(agent, bytes, START + 2);
        alter(bytes, len, PAYLOAD_OFS);
        check_taken(plain, bytes, len, 2);
        check_taken(plain, bytes, len, 2);
        fixture_destroy(agent);
        fixture_destroy(edge);
        fixture_destroy(plain);
    }
END_TEST

/* Without an instance the agent holds packets, and an edge takes none. */
START_TEST(data_waits)
    {
        struct fixture *agent = agent_create(2), *edge = data_edge(0);
        uint8_t bytes[PACKET_ROOM];

        configure_data(agent, 0);
        agent_write(agent, START);
        ck_assert_uint_eq(agent->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(agent), 0);
        configure_data(agent, 1);
        ck_assert_uint_eq(agent->n_frames, 1);
        size_t len = agent->frames[0].len - sizeof(struct eth_hdr);
        memcpy(bytes, agent->frames[0].bytes + sizeof(struct eth_hdr), len);
        check_refused(edge, bytes, len, DROP_auth_replay);
        configure_data(edge, 1);
        check_taken(edge, bytes, len, 2);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* An edge in another life takes nothing of before; one that was there all the time takes what is
 * under way. */
START_TEST(data_of_another_life)
    {
        struct fixture *agent = agent_create(2), *edge = data_edge(5), *restarted = data_edge(6);
        uint8_t before[2][PACKET_ROOM], bytes[PACKET_ROOM];
        size_t before_len, len;

        configure_data(agent, 5);
        encapsulate(agent, before[0], START);
        before_len = encapsulate(agent, before[1], START + 1);
        check_taken(edge, before[0], before_len, 2);
        configure_data(agent, 6);
        len = encapsulate(agent, bytes, START + 2);
        check_refused(restarted, before[0], before_len, DROP_auth_replay);
        check_refused(restarted, before[1], before_len, DROP_auth_replay);
        check_taken(restarted, bytes, len, 2);
        check_taken(edge, bytes, len, 2);
        check_taken(edge, before[1], before_len, 2);
        check_refused(edge, before[0], before_len, DROP_auth_replay);
        fixture_destroy(agent);
        fixture_destroy(edge);
        fixture_destroy(restarted);
    }
END_TEST

static uint64_t
sequence_of(const struct frame *frame)
{
    const struct data_tlv *tlv = (const void *) (frame->bytes + frame->h.data_ofs);

    ck_assert_uint_ne(frame->h.data_ofs, 0);
    return be64_get(tlv->seq);
}

/* A tree that the agent loses and gets back goes on with the sequence; an edge whose receivers have
 * left and come back knows what has come. */
START_TEST(data_is_not_forgotten)
    {
        struct fixture *agent = agent_create(2), *edge = data_edge(5);
        struct tree_config *t = &edge->config.trees[0];
        uint8_t bytes[PACKET_ROOM];

        configure_data(agent, 5);
        size_t len = encapsulate(agent, bytes, START);
        ck_assert_uint_eq(sequence_of(&agent->frames[0]), 1);
        agent->config.n_trees = 0;
        fixture_configure(agent);
        agent->config.n_trees = 1;
        fixture_configure(agent);
        agent_write(agent, START);
        ck_assert_uint_eq(sequence_of(&agent->frames[0]), 2);

        check_taken(edge, bytes, len, 2);
        t->n_branches = 0;
        configure_auth(edge, 0, 0, NULL, NULL);
        t->n_branches = 2;
        t->branches[0].join = t->branches[1].join = BRANCH_ADMITTED;
        configure_data(edge, 5);
        check_refused(edge, bytes, len, DROP_auth_replay);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* A WRITE of the group's next epoch, with a good ICRC, behind outer header and SRH of 'seen'. */
static size_t
move_to_next_epoch(uint8_t *out, const uint8_t *seen)
{
    size_t srh_len = 8u * (seen[IP6_HDR_LEN + offsetof(struct srh_hdr, hdr_ext_len)] + 1u);
    struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);

    memcpy(out, seen, IP6_HDR_LEN + srh_len);
    spec.dest_qp++;
    spec.dma_len = spec.payload_len = 60;
    size_t inner_len = roce_build(out + IP6_HDR_LEN + srh_len, &spec);
    ((struct ip6_hdr_wire *) out)->plen = be16_put((uint16_t) (srh_len + inner_len));
    return IP6_HDR_LEN + srh_len + inner_len;
}

/* Somebody who has seen an epoch's packets knows the next one's Designated QPN, but the SRH that
 * he has seen belongs to no packet of that: each epoch has digests of its own.
 *
 * Proves MT-9-2. */
START_TEST(srh_of_another_epoch)
    {
        unsigned int tlvs = which[_i];
        struct fixture *agent = agent_create(2), *edge = fixture_create(&swedge_class, 2);
        uint8_t seen[PACKET_ROOM], bytes[PACKET_ROOM];
        struct tree_info info;

        configure_auth(agent, tlvs, 1, &old_key, NULL);
        configure_auth(edge, tlvs, 0, &old_key, NULL);
        edge->now += AUTH_LINGER_USEC;
        size_t len = encapsulate(agent, seen, START);
        check_taken(edge, seen, len, 2);

        fixture_add_epoch(edge);
        len = move_to_next_epoch(bytes, seen);
        fixture_input(edge, 1, bytes, len);
        ck_assert_uint_eq(edge->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(edge, DROP_auth_bad), 1);
        ck_assert_uint_eq(fixture_total_drops(edge), 1);
        edge->class->tree(edge->node, 1, &info);
        ck_assert(!info.started);

        agent->config.trees[0].epoch++;
        agent->config.trees[0].designated_qpn++;
        fixture_configure(agent);
        struct roce_spec spec = agent_request(RC_WRITE_ONLY, START);
        spec.dest_qp++;
        agent_from_host(agent, &spec);
        ck_assert_uint_eq(agent->n_frames, 1);
        len = agent->frames[0].len - sizeof(struct eth_hdr);
        memcpy(bytes, agent->frames[0].bytes + sizeof(struct eth_hdr), len);
        check_taken(edge, bytes, len, 2);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* A group without authentication takes such TLVs for any other that it does not know. */
START_TEST(nobody_asks)
    {
        struct fixture *agent = agent_create(3), *edge = fixture_create(&swedge_class, 3);
        uint8_t bytes[PACKET_ROOM];

        configure_auth(agent, AUTH_MT | AUTH_HMAC, 1, &old_key, NULL);
        size_t len = encapsulate(agent, bytes, START);
        bytes[qpn_ofs() + 60] ^= 1; /* in the HMAC TLV. */
        check_taken(edge, bytes, len, 3);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* A key is replaced: first edges have both, then the agent uses the new one, then the old one goes,
 * while packets made with it are still under way. */
START_TEST(roll_over)
    {
        struct fixture *agent = agent_create(2), *edge = fixture_create(&swedge_class, 2);
        uint8_t under_way[PACKET_ROOM], bytes[PACKET_ROOM];
        uint32_t psn = START;
        size_t len, under_way_len;

        configure_auth(agent, AUTH_MT, 1, &old_key, NULL);
        configure_auth(edge, AUTH_MT, 0, &old_key, NULL);
        edge->now += AUTH_LINGER_USEC;
        check_taken(edge, bytes, encapsulate(agent, bytes, psn++), 2);
        configure_auth(edge, AUTH_MT, 0, &old_key, &new_key);
        check_taken(edge, bytes, encapsulate(agent, bytes, psn++), 2);
        under_way_len = encapsulate(agent, under_way, psn++);
        configure_auth(agent, AUTH_MT, 2, &new_key, NULL);
        configure_auth(edge, AUTH_MT, 0, &new_key, NULL);
        check_taken(edge, under_way, under_way_len, 2);
        len = encapsulate(agent, bytes, psn++);
        check_taken(edge, bytes, len, 2);
        edge->now += AUTH_LINGER_USEC;
        check_refused(edge, under_way, under_way_len, DROP_auth_unknown_key);
        check_taken(edge, bytes, len, 2);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* An edge forgets an old key by its own timer, also while nothing comes. */
START_TEST(forgotten_by_timer)
    {
        struct fixture *agent = agent_create(2), *edge = fixture_create(&swedge_class, 2);
        uint8_t bytes[PACKET_ROOM];

        configure_auth(agent, AUTH_MT, 1, &old_key, NULL);
        size_t len = encapsulate(agent, bytes, START);
        configure_auth(edge, AUTH_MT, 0, &old_key, NULL);
        edge->now += AUTH_LINGER_USEC;
        configure_auth(edge, AUTH_MT, 0, &new_key, NULL);
        uint64_t changed = edge->now;
        for (int n = 0; edge->class->deadline(edge->node) <= changed + AUTH_LINGER_USEC; n++) {
            ck_assert_int_lt(n, 1000);
            fixture_timer(edge);
        }
        edge->now = changed;
        check_refused(edge, bytes, len, DROP_auth_unknown_key);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* A bud drops what it cannot verify for its children too.  A node without receivers has no key, and
 * passes on what it gets. */
START_TEST(between_nodes)
    {
        struct fixture *bud = transit_create(1), *node = transit_create(0);
        uint8_t bytes[PACKET_ROOM];

        configure_auth(bud, AUTH_MT, 0, &old_key, NULL);
        bud->now += AUTH_LINGER_USEC;
        size_t len = transit_down(bud, bytes, START, 1);
        ck_assert_uint_eq(bud->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(bud, DROP_auth_missing), 1);
        ck_assert_uint_eq(fixture_total_drops(bud), 1);

        fixture_input(node, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(node->n_frames, 2);
        ck_assert_uint_eq(fixture_total_drops(node), 0);
        fixture_destroy(bud);
        fixture_destroy(node);
    }
END_TEST

/* In mode mcast a node forwards as a multicast router, which looks at no SRH: its own receivers
 * only get no copy. */
START_TEST(between_nodes_mcast)
    {
        struct fixture *bud = mcast_create(1);
        struct in6_addr dst = mcast_group_address(REPLICATION_ID);
        struct roce_spec spec = transit_write(START);
        uint8_t bytes[PACKET_ROOM];

        configure_auth(bud, AUTH_MT, 0, &old_key, NULL);
        bud->now += AUTH_LINGER_USEC;
        size_t len = transit_encapsulated(bytes, &dst, &spec, 1);
        fixture_input(bud, AGENT_PORT, bytes, len);
        ck_assert_uint_eq(bud->n_frames, 2);
        transit_check_replica(&bud->frames[0], PORT_A, dst, bytes, len);
        transit_check_replica(&bud->frames[1], PORT_B, dst, bytes, len);
        ck_assert_uint_eq(fixture_drops(bud, DROP_auth_missing), 1);
        ck_assert_uint_eq(fixture_total_drops(bud), 1);
        fixture_destroy(bud);
    }
END_TEST

/* A node whose receivers have left forgets what it asked for: of those that come later packets are
 * not taken by a key that was gone long before. */
START_TEST(forgotten_with_the_receivers)
    {
        struct fixture *edge = fixture_create(&swedge_class, 2), *agent = agent_create(2);
        struct tree_config *t = &edge->config.trees[0];
        uint8_t bytes[PACKET_ROOM];

        configure_auth(agent, AUTH_MT, 1, &old_key, NULL);
        size_t len = encapsulate(agent, bytes, START);
        configure_auth(edge, AUTH_MT, 0, &old_key, NULL);
        t->n_branches = 0;
        configure_auth(edge, 0, 0, NULL, NULL);
        edge->now += 10 * AUTH_LINGER_USEC;
        t->n_branches = 2;
        configure_auth(edge, AUTH_MT, 0, &new_key, NULL);
        check_refused(edge, bytes, len, DROP_auth_unknown_key);
        fixture_destroy(edge);
        fixture_destroy(agent);
    }
END_TEST

/* The agent refuses a configuration without its key, and goes on as before. */
START_TEST(agent_without_key)
    {
        struct fixture *agent = agent_create(1);
        uint8_t bytes[PACKET_ROOM], then[PACKET_ROOM];
        char *error = NULL;

        configure_auth(agent, AUTH_MT, 1, &old_key, NULL);
        size_t len = encapsulate(agent, bytes, START);
        set_auth(agent, AUTH_MT, 2, (const struct auth_key *[]){&old_key, NULL});
        ck_assert_int_eq(agent->class->configure(agent->node, &agent->config, agent->now, &error),
                         ENOKEY);
        ck_assert_str_eq(error, "group g: no key 2 to authenticate its packets with");
        free(error);
        ck_assert_uint_eq(encapsulate(agent, then, START), len);
        ck_assert_mem_eq(bytes, then, IP6_HDR_LEN + 24 + 48 + 40);
        fixture_destroy(agent);
    }
END_TEST

Suite *
auth_node_suite(void)
{
    Suite *suite = suite_create("auth-node");
    TCase *tc = tcase_create("auth-node");

    tcase_add_loop_test(tc, at_an_edge, 0, 3);
    tcase_add_loop_test(tc, srh_of_another_epoch, 0, 3);
    tcase_add_test(tc, data_at_an_edge);
    tcase_add_test(tc, data_waits);
    tcase_add_test(tc, data_of_another_life);
    tcase_add_test(tc, data_is_not_forgotten);
    tcase_add_test(tc, nobody_asks);
    tcase_add_test(tc, roll_over);
    tcase_add_test(tc, forgotten_by_timer);
    tcase_add_test(tc, between_nodes);
    tcase_add_test(tc, between_nodes_mcast);
    tcase_add_test(tc, forgotten_with_the_receivers);
    tcase_add_test(tc, agent_without_key);
    suite_add_tcase(suite, tc);
    return suite;
}
