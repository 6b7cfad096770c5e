/* SPDX-License-Identifier: Apache-2.0
 *
 * A source agent that is also the edge of its host, which is a source of one group and a receiver of
 * another.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/ecn.h"
#include "lib/fast-cnp.h"
#include "lib/icmp6.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/edge-fixture.h"
#include "tests/unit/suites.h"

#define OTHER_AGENT 0x201
#define OTHER_DQPN  0x105
#define OTHER_START 7000
#define HOST_QPN    0x11 /* of the host's queue pair as a receiver. */
#define HOST_RKEY   0x1234u
#define HOST_VA     0x7f0000001000u
#define UPLINK_2    3
#define SWITCH_2    0x101

static struct in6_addr other_proxy, other_source;

/* Adds the tree of which the host is a receiver. */
static void
add_received(struct node_config *c)
{
    c->trees = realloc(c->trees, 2 * sizeof *c->trees);
    struct tree_config *t = &c->trees[c->n_trees++];

    *t = (struct tree_config){
        .group = "other",
        .generation = 1,
        .epoch = 1,
        .row = 77,
        .proxy = other_proxy,
        .designated_qpn = OTHER_DQPN,
        .start_psn = psn_make(OTHER_START),
        .mtu = 1024,
        .designated_rkey = STAR_RKEY,
        .region_len = STAR_REGION,
        .source = other_source,
        .source_qpn = STAR_SOURCE_QPN,
        .outer_source = node_address(OTHER_AGENT),
        .parent_sid = node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE),
        .branches = calloc(1, sizeof *t->branches),
        .n_branches = 1,
    };
    t->branches[0] = (struct branch_config){
        .id = 1,
        .kind = BRANCH_RECEIVER,
        .name = "host",
        .address = star_source,
        .edge = c->address,
        .qpn = HOST_QPN,
        .rkey = HOST_RKEY,
        .va = HOST_VA,
        .len = STAR_REGION,
        .psn = psn_make(OTHER_START),
    };
}

/* The agent's node, with two uplinks, as an agent or as a switch. */
static struct fixture *
create(const struct node_class *class)
{
    struct fixture *f = fixture_create(class, 2);

    other_proxy = proxy_address(5);
    other_source = addr_of("fd00:9::1");
    node_config_uninit(&f->config);
    star_config(&f->config, false, 2);
    f->config.role = NODE_AGENT;
    fixture_add_node(f, UPLINK_2, SWITCH_2);
    fixture_add_sid(f, SID_FUNC_END_MT, 64, SID_END_MT);
    fixture_add_sid(f, SID_FUNC_RESPONSE, 64, SID_RESPONSE);
    fixture_add_sid(f, SID_FUNC_END_DT6, 64, SID_END_DT6);
    add_received(&f->config);
    fixture_configure(f);
    return f;
}

static struct fixture *
create_agent(void)
{
    return create(&srcagent_class);
}

static struct roce_spec
other_write(uint32_t psn)
{
    struct roce_spec spec = edge_write(psn);

    spec.src = &other_source;
    spec.dst = &other_proxy;
    spec.dest_qp = OTHER_DQPN;
    return spec;
}

/* The other group's packet as it comes to this node's SID of End.MT. */
static size_t
encapsulated(uint8_t *out, const struct roce_spec *spec, uint16_t from, uint8_t tc)
{
    const struct srh_copy copy = {node_address(STAR_AGENT_ID), star_source, HOST_QPN};
    struct in6_addr src = node_address(from);
    struct in6_addr dst = node_sid(STAR_AGENT_ID, SID_FUNC_END_MT);
    struct encap_template t;
    uint8_t inner[PACKET_ROOM];
    size_t len = roce_build(inner, spec);

    ck_assert_int_eq(encap_template_build(&t, &src, &dst, &other_proxy, &copy, 1), 0);
    encap_template_stamp(&t, out, (uint16_t) len, tc, 0x12345);
    memcpy(out + t.len, inner, len);
    return t.len + len;
}

static void
down(struct fixture *f, uint16_t port, uint32_t psn)
{
    struct roce_spec spec = other_write(psn);
    uint8_t bytes[PACKET_ROOM];

    fixture_input(f, port, bytes, encapsulated(bytes, &spec, OTHER_AGENT, 2));
}

/* What the host sends to a Proxy. */
static void
host_answers(struct fixture *f, const struct in6_addr *proxy, uint8_t opcode, uint32_t psn,
             uint32_t dest_qp)
{
    uint8_t bytes[256];
    size_t len = roce_build(bytes, &(struct roce_spec){
                                       .src = &star_source,
                                       .dst = proxy,
                                       .dest_qp = dest_qp,
                                       .opcode = opcode,
                                       .psn = psn,
                                       .syndrome = AETH_ACK_UNLIMITED,
                                       .msn = 1,
                                   });
    fixture_input(f, HOST_PORT, bytes, len);
}

/* The only frame that was sent is for the parent's response SID, from this node. */
static const struct frame *
check_to_parent(const struct fixture *f, uint8_t opcode)
{
    struct in6_addr own = node_address(STAR_AGENT_ID);
    struct in6_addr sid = node_sid(STAR_EDGE_ID, SID_FUNC_RESPONSE);

    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    const struct ip6_hdr_wire *inner = (const void *) (frame->bytes + frame->h.inner.ofs);

    ck_assert_uint_eq(frame->port, UPLINK);
    ck_assert_mem_eq(&ip->src, &own, 16);
    ck_assert_mem_eq(&ip->dst, &sid, 16);
    ck_assert_mem_eq(&inner->src, &other_proxy, 16);
    ck_assert_mem_eq(&inner->dst, &other_source, 16);
    ck_assert_uint_eq(frame->h.opcode, opcode);
    ck_assert(frame_icrc_ok(frame));
    return frame;
}

/* The copy that the host gets is the one that a switch with this configuration would give it,
 * whichever way the packet came. */
START_TEST(copy)
    {
        struct fixture *agent = create_agent();
        struct fixture *edge = create(&swedge_class);
        struct roce_spec spec = other_write(OTHER_START);
        uint8_t bytes[PACKET_ROOM];
        size_t len;

        down(agent, UPLINK, OTHER_START);
        down(edge, UPLINK, OTHER_START);
        ck_assert_uint_eq(agent->n_frames, 1);
        ck_assert_uint_eq(edge->n_frames, 1);
        ck_assert_uint_eq(agent->frames[0].port, HOST_PORT);
        ck_assert_uint_eq(agent->frames[0].len, edge->frames[0].len);
        ck_assert_mem_eq(agent->frames[0].bytes, edge->frames[0].bytes, edge->frames[0].len);

        spec.src = &other_proxy;
        spec.dst = &star_source;
        spec.dest_qp = HOST_QPN;
        spec.va += HOST_VA;
        spec.rkey = HOST_RKEY;
        len = roce_build(bytes, &spec);
        bytes[7] = 63;
        ck_assert_uint_eq(agent->frames[0].len, sizeof(struct eth_hdr) + len);
        ck_assert_mem_eq(agent->frames[0].bytes + sizeof(struct eth_hdr), bytes, len);

        down(agent, UPLINK_2, OTHER_START + 1);
        ck_assert_uint_eq(agent->n_frames, 1);
        ck_assert_uint_eq(agent->frames[0].port, HOST_PORT);
        ck_assert_uint_eq(fixture_total_drops(agent), 0);
        fixture_destroy(agent);
        fixture_destroy(edge);
    }
END_TEST

/* In mode mcast the agent is a listener, and no router. */
START_TEST(mcast)
    {
        struct fixture *f = create_agent();
        struct tree_config *t = &f->config.trees[1];
        struct roce_spec spec = other_write(OTHER_START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = encapsulated(bytes, &spec, OTHER_AGENT, 2);

        t->mode = MODE_MCAST;
        t->mcast_group = mcast_group_address(9);
        t->upstream = node_address(SWITCH_2);
        fixture_configure(f);
        memcpy(&((struct ip6_hdr_wire *) (void *) bytes)->dst, &t->mcast_group, 16);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_mcast_rpf), 1);
        fixture_input(f, UPLINK_2, bytes, len);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* What the host says goes to the parent; the rest is said to nobody. */
START_TEST(answers)
    {
        struct fixture *f = create_agent();

        down(f, UPLINK, OTHER_START);
        down(f, UPLINK, OTHER_START + 1);
        host_answers(f, &other_proxy, RC_ACK, OTHER_START + 1, OTHER_DQPN);
        const struct frame *frame = check_to_parent(f, RC_ACK);
        ck_assert_uint_eq(bth_psn((const void *) (frame->bytes + frame->h.bth_ofs)).v,
                          OTHER_START + 1);
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        host_answers(f, &other_proxy, RC_ACK, OTHER_START + 5, OTHER_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), 1);
        host_answers(f, &other_proxy, RC_ACK, OTHER_START, OTHER_DQPN + 1);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        host_answers(f, &other_proxy, RC_WRITE_ONLY, OTHER_START, OTHER_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_resp_opcode), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 3);
        fixture_destroy(f);
    }
END_TEST

/* Copies that meet congestion, and CNPs of the host, become the edge's CNPs. */
START_TEST(congestion)
    {
        struct fixture *f = create_agent();
        struct roce_spec spec = other_write(OTHER_START);
        struct node_base *base = f->node;
        uint8_t bytes[PACKET_ROOM];

        base->ce_left(base, &other_proxy, OTHER_DQPN, 1, f->now);
        fixture_timer(f);
        check_to_parent(f, ROCE_CNP);
        host_answers(f, &other_proxy, ROCE_CNP, 0, OTHER_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_cnp), 1);
        fixture_timer(f);
        check_to_parent(f, ROCE_CNP);

        /* A copy with CE from the fabric. */
        spec.psn = OTHER_START + 1;
        fixture_input(f, UPLINK, bytes, encapsulated(bytes, &spec, OTHER_AGENT, ECN_CE));
        ck_assert_uint_eq(f->n_frames, 1);
        const struct ip6_hdr_wire *ip = (const void *) (f->frames[0].bytes + f->frames[0].h.ip.ofs);
        ck_assert_uint_eq(ip6_tc(ip) & ECN_MASK, ECN_CE);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* The host sends to one group and receives another, through one agent. */
START_TEST(source_and_receiver)
    {
        struct fixture *f = create_agent();

        for (uint32_t i = 0; i < 20; i++) {
            agent_write(f, START + i);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, UPLINK);
            down(f, UPLINK, OTHER_START + i);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
            host_answers(f, &other_proxy, RC_ACK, OTHER_START + i, OTHER_DQPN);
            check_to_parent(f, RC_ACK);
            agent_response(f, AETH_ACK_UNLIMITED, START + i, STAR_SOURCE_QPN);
            ck_assert_uint_eq(f->n_frames, 1);
            ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
        }
        ck_assert_uint_eq(fixture_total_drops(f), 0);

        /* An answer to the group that it is the source of, and what it sends to nobody's. */
        host_answers(f, &star_proxy, RC_ACK, START, STAR_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_opcode), 1);
        struct in6_addr nobodys = proxy_address(6);
        host_answers(f, &nobodys, RC_ACK, START, STAR_DQPN);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* The source of a group moves to a host that was a receiver before: the agent has the new epoch as
 * its source, and the old one as an edge, which is over. */
START_TEST(one_group_both_ways)
    {
        struct fixture *f = create_agent();

        f->config.trees[1].proxy = star_proxy;
        f->config.trees[0].epoch = 2;
        fixture_configure(f);
        host_answers(f, &star_proxy, RC_ACK, OTHER_START, OTHER_DQPN);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        ck_assert_uint_eq(f->frames[0].port, UPLINK);
        ck_assert_uint_eq(f->frames[0].h.opcode, RC_WRITE_ONLY);
        ck_assert_uint_eq(fixture_total_drops(f), 1);

        /* The other way round: the host receives the newer epoch. */
        f->config.trees[0].epoch = 1;
        f->config.trees[1].epoch = 2;
        fixture_configure(f);
        other_proxy = star_proxy;
        down(f, UPLINK, OTHER_START);
        ck_assert_uint_eq(f->n_frames, 1);
        host_answers(f, &star_proxy, RC_ACK, OTHER_START, OTHER_DQPN);
        check_to_parent(f, RC_ACK);
        fixture_destroy(f);
    }
END_TEST

/* What comes out of a tunnel is for the host, or for the agent. */
START_TEST(tunnels)
    {
        static const struct {
            const char *dst;
            enum drop_reason why; /* DROP_none: the host gets it. */
        } cases[] = {
            {NULL, DROP_none},
            {"fd00:9::1", DROP_not_for_us},
            {"5f00:0:101::1", DROP_not_for_us},
            {"5f00:0:101:e001::", DROP_not_for_us},
            {"5f00:0:200:e777::", DROP_not_for_us},
        };
        struct fixture *f = create_agent();
        struct in6_addr sid = node_sid(STAR_AGENT_ID, SID_FUNC_END_DT6);
        uint8_t bytes[512], inner[256];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct in6_addr dst = cases[i].dst ? addr_of(cases[i].dst) : star_source;
            uint8_t *upper =
                ip6_build(bytes, node_address(SWITCH_2), sid, IP6_NH_IPV6, IP6_HDR_LEN + 4);
            uint64_t before = fixture_drops(f, cases[i].why);
            uint64_t total = fixture_total_drops(f);

            ip6_build(upper, other_source, dst, IP6_NH_NONE, 4);
            fixture_input(f, UPLINK_2, bytes, 2 * IP6_HDR_LEN + 4);
            ck_assert_uint_eq(f->n_frames, !cases[i].why);
            ck_assert_uint_eq(fixture_total_drops(f), total + !!cases[i].why);
            if (cases[i].why) {
                ck_assert_uint_eq(fixture_drops(f, cases[i].why), before + 1);
            } else {
                upper[7]--;
                ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
                ck_assert_mem_eq(f->frames[0].bytes + sizeof(struct eth_hdr), upper,
                                 IP6_HDR_LEN + 4);
            }
        }

        /* A response of the root is looked at whether it comes in a tunnel or not. */
        for (uint32_t i = 0; i < 2; i++) {
            size_t len = roce_build(inner, &(struct roce_spec){
                                               .src = &star_proxy,
                                               .dst = &star_source,
                                               .dest_qp = STAR_SOURCE_QPN,
                                               .opcode = RC_ACK,
                                               .psn = START + i,
                                               .syndrome = AETH_ACK_UNLIMITED,
                                           });

            agent_write(f, START);
            memcpy(ip6_build(bytes, node_address(SWITCH_2), sid, IP6_NH_IPV6, len), inner, len);
            fixture_input(f, UPLINK_2, bytes, IP6_HDR_LEN + len);
            ck_assert_uint_eq(f->n_frames, !i);
            ck_assert_uint_eq(fixture_drops(f, DROP_psn_not_sent), i);
        }

        /* A Fast CNP is looked at, too. */
        struct fast_cnp cnp = {.node = node_address(STAR_EDGE_ID), .sender = star_source};
        struct packet *p = fast_cnp_build(f->pool, &cnp, 0xc000);
        uint32_t len = p->len;
        uint8_t *upper = ip6_build(bytes, node_address(SWITCH_2), sid, IP6_NH_IPV6, len);

        packet_flatten(p, upper, sizeof bytes - IP6_HDR_LEN);
        packet_put(p);
        fixture_input(f, UPLINK_2, bytes, IP6_HDR_LEN + len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_fast_cnp_off), 1);
        fixture_destroy(f);
    }
END_TEST

/* Nor does a program go on at an agent, whatever is behind its uSID. */
START_TEST(no_transit)
    {
        struct fixture *f = create_agent();
        struct in6_addr dst = addr_of("5f00:0:200:101::");
        uint8_t bytes[2 * IP6_HDR_LEN];

        fixture_add_sid(f, 0, NODE_LOCATOR_PLEN, SID_UN);
        fixture_configure(f);
        uint8_t *upper = ip6_build(bytes, node_address(SWITCH_2), dst, IP6_NH_IPV6, IP6_HDR_LEN);
        ip6_build(upper, other_source, star_source, IP6_NH_NONE, 0);
        fixture_input(f, UPLINK_2, bytes, sizeof bytes);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_not_for_us), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 1);
        fixture_destroy(f);
    }
END_TEST

/* The agent's address is none of the SIDs in its locator: the host is told what is wrong with a
 * Routing header, as by any node (RFC 8200 section 4.4). */
START_TEST(own_address)
    {
        struct fixture *f = create_agent();
        uint8_t bytes[IP6_HDR_LEN + 8];
        const uint8_t routing[8] = {IP6_NH_NONE, 0, 0, 1};

        fixture_add_sid(f, 0, NODE_LOCATOR_PLEN, SID_UN);
        fixture_configure(f);
        memcpy(ip6_build(bytes, star_source, node_address(STAR_AGENT_ID), IP6_NH_ROUTING, 8),
               routing, sizeof routing);
        fixture_input(f, HOST_PORT, bytes, sizeof bytes);
        ck_assert_uint_eq(f->n_frames, 1);
        check_icmp6_error(&f->frames[0], HOST_PORT, ICMP6_PARAMETER, ICMP6_PARAMETER_FIELD,
                          IP6_HDR_LEN + offsetof(struct srh_hdr, type));
        fixture_destroy(f);
    }
END_TEST

/* Packets of the group that are not as they should be. */
START_TEST(drops)
    {
        struct fixture *f = create_agent();
        struct roce_spec spec = other_write(OTHER_START);
        uint8_t bytes[PACKET_ROOM];
        size_t len = encapsulated(bytes, &spec, SWITCH_2, 2);

        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_outer_source), 1);
        spec.dest_qp++;
        len = encapsulated(bytes, &spec, OTHER_AGENT, 2);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_stale_epoch), 1);
        spec = other_write(OTHER_START);
        spec.rkey++;
        len = encapsulated(bytes, &spec, OTHER_AGENT, 2);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_rkey), 1);
        spec = other_write(OTHER_START);
        len = encapsulated(bytes, &spec, OTHER_AGENT, 2);
        fixture_input(f, HOST_PORT, bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_source_guard), 1);
        /* Its own group's packets do not come back to it. */
        spec = agent_request(RC_WRITE_ONLY, START);
        len = encapsulated(bytes, &spec, STAR_AGENT_ID, 2);
        fixture_input(f, UPLINK, bytes, len);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 5);
        fixture_destroy(f);
    }
END_TEST

static void
check_refused(struct fixture *f, const char *why)
{
    char *error = NULL;

    ck_assert_int_eq(srcagent_class.configure(f->node, &f->config, f->now, &error), EOPNOTSUPP);
    ck_assert_str_eq(error, why);
    free(error);
}

/* A configuration of which one part cannot be applied changes nothing of the other. */
START_TEST(whole_or_not)
    {
        static const char why[] =
            "group other: a source agent has no nodes below it in a tree that "
            "is not its own";
        struct fixture *f = create_agent();
        struct tree_config *t = f->config.trees;
        char *error = NULL;

        t[0].open = false;
        t[1].outer_da = calloc(1, sizeof *t[1].outer_da);
        t[1].outer_da[0] = node_sid(SWITCH_2, SID_FUNC_END_MT);
        t[1].n_outer_da = 1;
        check_refused(f, why);
        t[1].n_outer_da = 0;
        t[1].replication_sid = node_replication_sid(STAR_AGENT_ID, 3);
        check_refused(f, why);
        t[1].replication_sid = in6addr_any;
        t[1].branches[0].kind = BRANCH_NODE;
        check_refused(f, why);
        t[1].branches[0].kind = BRANCH_RECEIVER;
        agent_write(f, START); /* it is open as before. */
        ck_assert_uint_eq(f->n_frames, 1);

        /* The source's part is wrong, and the edge's would go. */
        t[0].open = true;
        t[0].policy.trace_slots = IOAM_MAX_SLOTS + 1;
        tree_config_uninit(&t[1]);
        f->config.n_trees = 1;
        ck_assert_int_eq(srcagent_class.configure(f->node, &f->config, f->now, &error), EINVAL);
        free(error);
        down(f, UPLINK, OTHER_START);
        ck_assert_uint_eq(f->n_frames, 1);
        t[0].policy.trace_slots = 0;
        fixture_configure(f);
        down(f, UPLINK, OTHER_START + 1);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_drops(f, DROP_group_unknown), 1);
        fixture_destroy(f);
    }
END_TEST

/* What is shown of both parts. */
START_TEST(display)
    {
        struct fixture *f = create_agent();
        struct reverse_branch_info branch;
        struct tree_info info;
        uint64_t number;

        agent_write(f, START);
        down(f, UPLINK, OTHER_START);
        ck_assert_uint_eq(srcagent_class.n_trees(f->node), 2);
        srcagent_class.tree(f->node, 0, &info);
        ck_assert_str_eq(info.config->group, "g");
        ck_assert_uint_eq(info.down->n_packets, 1);
        ck_assert_int_eq(srcagent_class.message(f->node, 0, psn_make(START), &number),
                         MESSAGE_KNOWN);
        srcagent_class.tree(f->node, 1, &info);
        ck_assert_str_eq(info.config->group, "other");
        ck_assert_ptr_null(info.down);
        ck_assert(info.started);
        ck_assert_uint_eq(info.reverse.h.v, OTHER_START + 1);
        ck_assert(srcagent_class.branch(f->node, 1, 1, &branch));
        ck_assert(!srcagent_class.branch(f->node, 0, 1, &branch));
        ck_assert_int_eq(srcagent_class.message(f->node, 1, psn_make(START), &number),
                         MESSAGE_UNKNOWN);
        fixture_destroy(f);
    }
END_TEST

/* RDMA-CM knows of both: the host receives by this queue pair. */
START_TEST(connections)
    {
        struct fixture *f = create_agent();
        const struct node_base *base = f->node;

        ck_assert(base->has_receiver(base, &other_proxy, &star_source, HOST_QPN));
        ck_assert(!base->has_receiver(base, &other_proxy, &star_source, HOST_QPN + 1));
        ck_assert(!base->has_receiver(base, &star_proxy, &star_source, STAR_SOURCE_QPN));
        fixture_destroy(f);
    }
END_TEST

/* A receiver that says nothing is asked, and then lost, as at any edge. */
START_TEST(liveness)
    {
        struct fixture *f = create_agent();
        struct tree_info info = {.config = NULL};

        f->config.trees[1].policy.liveness_msec = 100;
        fixture_configure(f);
        down(f, UPLINK, OTHER_START);
        for (unsigned i = 0; i < 100 && srcagent_class.deadline(f->node) != UINT64_MAX; i++) {
            fixture_timer(f);
            srcagent_class.tree(f->node, 1, &info);
            if (info.reverse.n_lost) {
                break;
            }
        }
        ck_assert_uint_eq(info.reverse.n_lost, 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
agent_edge_suite(void)
{
    Suite *s = suite_create("agent_edge");
    TCase *tc = tcase_create("agent_edge");

    tcase_add_test(tc, copy);
    tcase_add_test(tc, mcast);
    tcase_add_test(tc, answers);
    tcase_add_test(tc, congestion);
    tcase_add_test(tc, source_and_receiver);
    tcase_add_test(tc, one_group_both_ways);
    tcase_add_test(tc, tunnels);
    tcase_add_test(tc, no_transit);
    tcase_add_test(tc, own_address);
    tcase_add_test(tc, drops);
    tcase_add_test(tc, whole_or_not);
    tcase_add_test(tc, display);
    tcase_add_test(tc, connections);
    tcase_add_test(tc, liveness);
    suite_add_tcase(s, tc);
    return s;
}
