/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM at a node: from packets to what is reported, and from the configuration to packets.
 */
#include "lib/node-cm.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

#define HOST_ID     0x4d2 /* the host's communication ID. */
#define TID         UINT64_C(0x1122334455667788)
#define PROGRAM_QPN 0x11 /* star_qpn(0). */
#define ACTIVE_ID   7
#define PORT        7174

static struct fixture *f;
static struct packet_pool *pool; /* of messages of the test's. */

/* An agent, or an edge that is a transit node, too. */
enum kind { AGENT, EDGE };

static struct in6_addr
host_of(enum kind kind)
{
    return kind == AGENT ? star_source : star_receiver(0);
}

static uint16_t
host_port(enum kind kind)
{
    return kind == AGENT ? HOST_PORT : star_port(0);
}

static void
setup(void)
{
    pool = packet_pool_create(1);
}

static void
teardown(void)
{
    fixture_destroy(f);
    packet_pool_destroy(pool);
}

static struct cm_msg
request(struct in6_addr host, struct in6_addr proxy)
{
    return (struct cm_msg){
        .attribute = CM_REQ,
        .tid = TID,
        .local_id = HOST_ID,
        .qpn = PROGRAM_QPN,
        .psn = psn_make(7000),
        .service = CM_SERVICE_TCP | PORT,
        .mtu_code = 3,
        .local_gid = host,
        .remote_gid = proxy,
        .ip_header = true,
        .sport = 1234,
        .ip_src = host,
        .ip_dst = proxy,
        .private_len = 3,
        .private_data = {1, 2, 3},
    };
}

/* A message as it arrives, without Ethernet header; returns its length. */
static size_t
message(uint8_t *out, struct in6_addr src, struct in6_addr dst, const struct cm_msg *m)
{
    struct packet *p = cm_build(pool, &src, &dst, psn_make(99), m);
    size_t len = packet_flatten(p, out, PACKET_ROOM);

    packet_put(p);
    return len;
}

static void
say(uint16_t port, struct in6_addr src, struct in6_addr dst, const struct cm_msg *m)
{
    uint8_t bytes[PACKET_ROOM];

    fixture_input(f, port, bytes, message(bytes, src, dst, m));
}

/* The only frame that was sent is this one, whole, from the Proxy to the host. */
static struct cm_msg
heard(enum kind kind, struct in6_addr proxy, enum cm_attribute attribute)
{
    const struct frame *frame = &f->frames[0];
    struct in6_addr host = host_of(kind);
    struct cm_msg m;

    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(frame->port, host_port(kind));
    ck_assert(cm_is(frame->bytes, &frame->h));
    ck_assert_int_eq(cm_parse(frame->bytes, &frame->h, &m), DROP_none); /* the ICRC, too. */
    ck_assert_str_eq(cm_attribute_name(m.attribute), cm_attribute_name(attribute));
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h.ip.ofs);
    ck_assert_mem_eq(&ip->src, &proxy, sizeof proxy);
    ck_assert_mem_eq(&ip->dst, &host, sizeof host);
    return m;
}

static uint32_t
heard_psn(void)
{
    const struct bth *bth = (const void *) (f->frames[0].bytes + f->frames[0].h.bth_ofs);
    return bth_psn(bth).v;
}

static size_t
n_connections(void)
{
    return f->class->n_connections(f->node);
}

static struct cm_conn_info
only_connection(void)
{
    struct cm_conn_info info;

    ck_assert_uint_eq(n_connections(), 1);
    f->class->connection(f->node, 0, &info);
    return info;
}

static void
check_state(enum cm_state state)
{
    ck_assert_str_eq(cm_state_name(only_connection().known->state), cm_state_name(state));
}

static void
configure(const struct cm_conn_config *c)
{
    f->n_frames = 0;
    f->class->configure_connections(f->node, c, c ? 1 : 0, f->now);
    fixture_settle(f);
}

static void
make(enum kind kind)
{
    f = kind == AGENT ? agent_create(2) : transit_create(2);
    configure(NULL);
}

/* The registry has the connection as it is, and castd decides. */
static struct cm_conn_config
decided(enum cm_decision decision)
{
    struct cm_conn_info info = only_connection();

    return (struct cm_conn_config){
        .id = info.id,
        .role = info.role,
        .proxy = info.proxy,
        .host = info.host,
        .decision = decision,
        .port = PORT,
        .qpn = STAR_DQPN,
        .psn = psn_make(START),
        .mtu = 1024,
        .ack_timeout = 14,
        .private_len = 2,
        .private_data = {0xca, 0xfe},
        .known = *info.known,
    };
}

static struct cm_conn_config
accepted(enum kind kind, struct in6_addr proxy)
{
    struct in6_addr host = host_of(kind);
    struct cm_msg req = request(host, proxy);

    say(host_port(kind), host, proxy, &req);
    struct cm_conn_config c = decided(CM_ACCEPT);
    configure(&c);
    return c;
}

static struct cm_msg
ready_to_use(uint32_t id)
{
    return (struct cm_msg){.attribute = CM_RTU, .tid = TID, .local_id = HOST_ID, .remote_id = id};
}

/* A program connects to a Proxy that the node has, and to one that nobody has. */
START_TEST(passive)
    {
        enum kind kind = _i & 1 ? AGENT : EDGE;
        struct in6_addr proxy = _i & 2 ? proxy_address(0x12345) : star_proxy;
        struct in6_addr host = host_of(kind);
        struct cm_msg req = request(host, proxy), m;

        make(kind);
        uint64_t version = f->class->connections_version(f->node);
        say(host_port(kind), host, proxy, &req);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
        ck_assert_uint_ne(f->class->connections_version(f->node), version);
        struct cm_conn_info info = only_connection();
        ck_assert_int_eq(info.role, CM_PASSIVE);
        ck_assert(!info.configured);
        ck_assert_mem_eq(&info.proxy, &proxy, sizeof proxy);
        ck_assert_mem_eq(&info.host, &host, sizeof host);
        ck_assert_uint_eq(info.known->remote_id, HOST_ID);
        ck_assert_uint_eq(info.known->tid, TID);
        ck_assert_uint_eq(info.known->qpn, PROGRAM_QPN);
        ck_assert_uint_eq(info.known->psn.v, 7000);
        ck_assert_uint_eq(info.known->mtu_code, 3);
        ck_assert_uint_eq(info.known->port, PORT);
        ck_assert_mem_eq(info.known->private_data, req.private_data, 3);
        check_state(CM_REQUESTED);

        struct cm_conn_config c = decided(CM_ACCEPT);
        configure(&c);
        m = heard(kind, proxy, CM_REP);
        ck_assert_uint_eq(m.tid, TID);
        ck_assert_uint_eq(m.local_id, info.id);
        ck_assert_uint_eq(m.remote_id, HOST_ID);
        ck_assert_uint_eq(m.qpn, STAR_DQPN);
        ck_assert_uint_eq(m.psn.v, START);
        ck_assert_mem_eq(m.private_data, c.private_data, 2);
        ck_assert(only_connection().configured);
        check_state(CM_ACCEPTED);

        m = ready_to_use(info.id);
        say(host_port(kind), host, proxy, &m);
        ck_assert_uint_eq(f->n_frames, 0);
        check_state(CM_ESTABLISHED);
        configure(NULL);
        ck_assert_uint_eq(n_connections(), 0);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(fixture_total_drops(f), 0);
    }
END_TEST

/* A node that was started again may have the connection: it does not know yet. */
START_TEST(before_configuration)
    {
        struct cm_msg req = request(star_receiver(0), star_proxy);

        f = transit_create(2);
        say(star_port(0), star_receiver(0), star_proxy, &req);
        ck_assert_uint_eq(fixture_drops(f, DROP_cm_unknown), 1);
        ck_assert_uint_eq(n_connections(), 0);
    }
END_TEST

START_TEST(rejected)
    {
        struct cm_msg req = request(star_receiver(0), star_proxy);

        make(EDGE);
        say(star_port(0), star_receiver(0), star_proxy, &req);
        struct cm_conn_config c = decided(CM_REJECT);
        c.reason = CM_REJ_SERVICE_ID;
        configure(&c);
        struct cm_msg m = heard(EDGE, star_proxy, CM_REJ);
        ck_assert_uint_eq(m.reason, CM_REJ_SERVICE_ID);
        ck_assert_mem_eq(m.private_data, c.private_data, 2);
        check_state(CM_ENDED);
    }
END_TEST

/* Each message has a PSN of its own: kernels take one PSN only once. */
START_TEST(counts_messages)
    {
        make(EDGE);
        accepted(EDGE, star_proxy);
        heard(EDGE, star_proxy, CM_REP);
        uint32_t psn = heard_psn();
        fixture_timer(f);
        heard(EDGE, star_proxy, CM_REP);
        ck_assert_uint_eq(heard_psn(), psn + 1);
    }
END_TEST

/* Who is not a host of this node, or not with its own address, connects to nothing. */
static const struct other {
    enum kind kind;
    uint16_t port;
    const char *src, *dst;
    enum drop_reason why; /* DROP_none: the packet is forwarded. */
} others[] = {
    {EDGE, PORT_A, "fd00:1::1", "fd00:ffff::1", DROP_no_route},
    {EDGE, AGENT_PORT, "fd00:1::1", "fd00:ffff::1", DROP_no_route},
    {EDGE, 2, "fd00:1::2", "fd00:ffff::1", DROP_source_guard},
    {EDGE, 2, "fe80::1234", "fd00:ffff::1", DROP_ip6_src},
    {EDGE, 2, "::", "fd00:ffff::1", DROP_ip6_src},
    {EDGE, 2, "fd00:1::1", "fd00:1::2", DROP_none},
    {EDGE, 2, "fd00:1::1", "5f00:0:100::1", DROP_not_for_us},
    {AGENT, UPLINK, "fd00:1::1", "fd00:ffff::1", DROP_not_for_us},
    {AGENT, UPLINK, "fd00:ffff::1", "fd00:1::100", DROP_resp_opcode},
    {AGENT, HOST_PORT, "fd00:1::1", "fd00:ffff::1", DROP_source_guard},
    {AGENT, HOST_PORT, "fe80::1234", "fd00:ffff::1", DROP_ip6_src},
    {AGENT, HOST_PORT, "fd00:1::100", "fd00:1::1", DROP_none},
};

START_TEST(not_looked_at)
    {
        const struct other *o = &others[_i];
        struct in6_addr src = addr_of(o->src), dst = addr_of(o->dst);
        struct cm_msg req = request(src, dst);

        make(o->kind);
        uint64_t version = f->class->connections_version(f->node);
        say(o->port, src, dst, &req);
        for (enum drop_reason why = DROP_none + 1; why < N_DROP_REASONS; why++) {
            ck_assert_msg(fixture_drops(f, why) == (why == o->why), "%s", drop_name(why));
        }
        ck_assert_uint_eq(n_connections(), 0);
        ck_assert_uint_eq(f->class->connections_version(f->node), version);
    }
END_TEST

/* A packet that is not one for the communication manager is not taken from groups; one that is, and
 * is damaged, has a reason. */
START_TEST(malformed)
    {
        struct cm_msg req = request(star_receiver(0), star_proxy);
        uint8_t bytes[PACKET_ROOM];
        size_t len = message(bytes, star_receiver(0), star_proxy, &req);

        make(EDGE);
        bytes[len - 10] ^= 1;
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_icrc), 1);
        struct in6_addr host = star_receiver(0);
        const struct roce_spec to_group = {.src = &host,
                                           .dst = &star_proxy,
                                           .dest_qp = STAR_DQPN,
                                           .opcode = UD_SEND_ONLY,
                                           .payload_len = CM_MAD_LEN};
        len = roce_build(bytes, &to_group);
        fixture_input(f, star_port(0), bytes, len);
        ck_assert_uint_eq(fixture_drops(f, DROP_resp_opcode), 1);
        ck_assert_uint_eq(fixture_total_drops(f), 2);
        ck_assert_uint_eq(f->n_frames, 0);
        ck_assert_uint_eq(n_connections(), 0);
    }
END_TEST

/* The node is to connect to the program of receiver 0. */
static struct cm_conn_config
active(void)
{
    return (struct cm_conn_config){
        .id = ACTIVE_ID,
        .role = CM_ACTIVE,
        .proxy = star_proxy,
        .host = star_receiver(0),
        .port = PORT,
        .qpn = STAR_DQPN,
        .psn = psn_make(START),
        .mtu = 1024,
        .ack_timeout = 14,
    };
}

/* ... and it has answered that its queue pair is 'qpn'; the registry has that. */
static struct cm_conn_config
answered(uint32_t qpn)
{
    struct cm_conn_config c = active();
    struct cm_msg rep = {.attribute = CM_REP,
                         .local_id = HOST_ID,
                         .remote_id = ACTIVE_ID,
                         .qpn = qpn,
                         .psn = psn_make(5)};

    configure(&c);
    struct cm_msg m = heard(EDGE, star_proxy, CM_REQ);
    ck_assert_uint_eq(m.local_id, ACTIVE_ID);
    ck_assert_uint_eq(m.service, CM_SERVICE_TCP | PORT);
    ck_assert_uint_eq(m.qpn, STAR_DQPN);
    ck_assert_uint_eq(m.psn.v, START);
    rep.tid = m.tid;
    say(star_port(0), star_receiver(0), star_proxy, &rep);
    ck_assert_uint_eq(f->n_frames, 0);
    check_state(CM_ANSWERED);
    ck_assert_uint_eq(only_connection().known->qpn, qpn);
    return decided(CM_UNDECIDED);
}

static void
check_connected(void)
{
    struct cm_msg m = heard(EDGE, star_proxy, CM_RTU);

    ck_assert_uint_eq(m.local_id, ACTIVE_ID);
    ck_assert_uint_eq(m.remote_id, HOST_ID);
    check_state(CM_ESTABLISHED);
}

/* The tree had the branch first: the registry's knowledge is what was missing. */
START_TEST(active_with_branch)
    {
        make(EDGE);
        struct cm_conn_config c = answered(star_qpn(0));
        configure(&c);
        check_connected();
    }
END_TEST

/* The program is told when the tree has a branch with its queue pair, not one before. */
START_TEST(active_before_branch)
    {
        make(EDGE);
        struct cm_conn_config c = answered(0x777);
        configure(&c);
        ck_assert_uint_eq(f->n_frames, 0);
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 0);
        check_state(CM_ANSWERED);
        f->config.trees[0].branches[0].qpn = 0x777;
        fixture_configure(f);
        check_connected();
    }
END_TEST

/* An old epoch's branch gets no copies any more. */
START_TEST(active_with_old_branch)
    {
        make(EDGE);
        fixture_add_epoch(f);
        f->config.trees[1].branches[0].qpn = 0x777;
        f->n_frames = 0;
        fixture_configure(f);
        struct cm_conn_config c = answered(star_qpn(0));
        configure(&c);
        ck_assert_uint_eq(f->n_frames, 0);
        check_state(CM_ANSWERED);
        f->config.trees[1].branches[0].qpn = star_qpn(0);
        fixture_configure(f);
        check_connected();
    }
END_TEST

/* The registry does not have the answer: a node that is started again must not have to guess it. */
START_TEST(active_not_in_registry)
    {
        make(EDGE);
        struct cm_conn_config c = answered(star_qpn(0));
        c.known.remote_id = HOST_ID + 1; /* of an earlier answer. */
        configure(&c);
        fixture_configure(f);
        ck_assert_uint_eq(f->n_frames, 0);
        check_state(CM_ANSWERED);
    }
END_TEST

/* castd knows that there is nothing to miss. */
START_TEST(active_accepted)
    {
        make(EDGE);
        struct cm_conn_config c = answered(0x777);
        c.decision = CM_ACCEPT;
        configure(&c);
        check_connected();
    }
END_TEST

/* The node is started again: neither program notices, and the end of one is heard. */
START_TEST(restarted)
    {
        make(EDGE);
        struct cm_conn_config c = accepted(EDGE, star_proxy);
        struct cm_msg rtu = ready_to_use(c.id);

        say(star_port(0), star_receiver(0), star_proxy, &rtu);
        c = decided(CM_ACCEPT);
        fixture_destroy(f);
        make(EDGE);
        configure(&c);
        ck_assert_uint_eq(f->n_frames, 0);
        check_state(CM_ESTABLISHED);
        ck_assert_uint_eq(only_connection().id, c.id);

        struct cm_msg dreq = {.attribute = CM_DREQ,
                              .tid = TID + 1,
                              .local_id = HOST_ID,
                              .remote_id = c.id,
                              .remote_qpn = STAR_DQPN};
        say(star_port(0), star_receiver(0), star_proxy, &dreq);
        heard(EDGE, star_proxy, CM_DREP);
        check_state(CM_ENDED);
        ck_assert_int_eq(only_connection().known->cause, CM_BY_DREQ);
    }
END_TEST

/* A packet of the queue pair says what a lost RTU would have; somebody else's says nothing. */
START_TEST(traffic)
    {
        static const struct {
            uint32_t qpn; /* of the tree's source. */
            bool sends;
            enum cm_state then;
        } cases[] = {
            {PROGRAM_QPN, true, CM_ESTABLISHED},
            {PROGRAM_QPN, false, CM_ACCEPTED},
            {STAR_SOURCE_QPN, true, CM_ACCEPTED},
        };

        make(AGENT);
        f->config.trees[0].source_qpn = cases[_i].qpn;
        fixture_configure(f);
        accepted(AGENT, star_proxy);
        check_state(CM_ACCEPTED);
        if (cases[_i].sends) {
            agent_write(f, START);
            ck_assert_uint_eq(f->n_frames, 1);
        }
        fixture_timer(f);
        check_state(cases[_i].then);
        ck_assert_uint_eq(f->n_frames, cases[_i].then == CM_ACCEPTED);
    }
END_TEST

static void
keep_line(void *lines, const char *text)
{
    size_t used = strlen(lines);

    snprintf((char *) lines + used, 1000 - used, "%s\n", text);
}

START_TEST(explained)
    {
        struct cm_msg req = request(star_receiver(0), star_proxy);
        char lines[1000] = "";

        make(EDGE);
        f->class->set_tracer(f->node, &(struct tracer){keep_line, lines});
        say(star_port(0), star_receiver(0), star_proxy, &req);
        ck_assert_str_eq(lines, "RDMA-CM REQ of fd00:1::1, connection 0x4d2\n");
        struct cm_conn_config c = decided(CM_ACCEPT);
        configure(&c);
        ck_assert_ptr_nonnull(strstr(lines, "RDMA-CM REP to fd00:1::1, connection 0x"));
    }
END_TEST

Suite *
node_cm_suite(void)
{
    Suite *s = suite_create("node_cm");
    TCase *tc = tcase_create("node_cm");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, passive, 0, 4);
    tcase_add_test(tc, before_configuration);
    tcase_add_test(tc, rejected);
    tcase_add_test(tc, counts_messages);
    tcase_add_loop_test(tc, not_looked_at, 0, sizeof others / sizeof *others);
    tcase_add_test(tc, malformed);
    tcase_add_test(tc, active_with_branch);
    tcase_add_test(tc, active_before_branch);
    tcase_add_test(tc, active_with_old_branch);
    tcase_add_test(tc, active_not_in_registry);
    tcase_add_test(tc, active_accepted);
    tcase_add_test(tc, restarted);
    tcase_add_loop_test(tc, traffic, 0, 3);
    tcase_add_test(tc, explained);
    suite_add_tcase(s, tc);
    return s;
}
