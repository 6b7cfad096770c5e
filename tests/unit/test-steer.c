/* SPDX-License-Identifier: Apache-2.0
 *
 * Which worker gets which frame, by lib/steer.h and by its program in the kernel.
 */
#include "lib/fast-cnp.h"
#include "lib/steer.h"

#include <string.h>

#include "lib/nd.h"
#include "lib/parse.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/suites.h"
#include "tests/unit/transit-fixture.h"

#define N_PROXIES 40

static struct packet_pool *pool;
static unsigned n_workers;

static struct in6_addr
proxy(unsigned i)
{
    struct in6_addr addr = star_proxy;

    addr.s6_addr[14] = (uint8_t) (i * 7);
    addr.s6_addr[15] = (uint8_t) i;
    return addr;
}

static void
setup(void)
{
    pool = packet_pool_create(1);
    n_workers = 3;
}

static void
teardown(void)
{
    packet_pool_destroy(pool);
}

/* What the kernel does with the program: the few instructions that it has.  'ip': from the IPv6
 * header on. */
static unsigned
run_program(const uint8_t *ip, size_t len)
{
    struct sock_filter program[STEER_PROGRAM_LEN];
    uint32_t a = 0;

    steer_program(program, n_workers);
    for (unsigned pc = 0;; pc++) {
        ck_assert_uint_lt(pc, STEER_PROGRAM_LEN);
        const struct sock_filter *f = &program[pc];
        size_t ofs = f->k - (uint32_t) SKF_NET_OFF;

        switch (f->code) {
        case BPF_LD | BPF_B | BPF_ABS:
            if (ofs + 1 > len) {
                return 0;
            }
            a = ip[ofs];
            break;
        case BPF_LD | BPF_W | BPF_ABS:
            if (ofs + 4 > len) {
                return 0;
            }
            a = (uint32_t) ip[ofs] << 24 | (uint32_t) ip[ofs + 1] << 16
                | (uint32_t) ip[ofs + 2] << 8 | ip[ofs + 3];
            break;
        case BPF_JMP | BPF_JEQ | BPF_K: pc += a == f->k ? f->jt : f->jf; break;
        case BPF_JMP | BPF_JA: pc += f->k; break;
        case BPF_ALU | BPF_MOD | BPF_K: a %= f->k; break;
        case BPF_RET | BPF_A: return a % n_workers;
        default: ck_abort_msg("instruction 0x%x", f->code);
        }
    }
}

/* Where an IPv6 packet goes, with an Ethernet header.  'by_kernel': the program says the same. */
static unsigned
steered(const uint8_t *ip, size_t len, bool by_kernel)
{
    uint8_t frame[PACKET_ROOM] = {[12] = 0x86, [13] = 0xdd};

    memcpy(frame + sizeof(struct eth_hdr), ip, len);
    struct packet *p = packet_from_bytes(pool, frame, sizeof(struct eth_hdr) + len);
    unsigned to = steer_frame(n_workers, p);
    packet_put(p);
    if (by_kernel) {
        ck_assert_uint_eq(run_program(ip, len), to);
    }
    return to;
}

static size_t
down(uint8_t *out, const struct in6_addr *group, unsigned n_receivers)
{
    struct in6_addr agent = node_address(STAR_AGENT_ID), sid = node_sid(7, SID_FUNC_END_MT);
    struct roce_spec spec = transit_write(1);
    struct srh_copy copies[4];
    struct encap_template t;

    spec.dst = group;
    for (unsigned i = 0; i < n_receivers; i++) {
        copies[i] = (struct srh_copy){node_address(STAR_EDGE_ID), star_receiver(i), star_qpn(i)};
    }
    ck_assert_int_eq(encap_template_build(&t, &agent, &sid, group, copies, n_receivers), 0);
    size_t len = roce_build(out + t.len, &spec);
    encap_template_stamp(&t, out, (uint16_t) len, 2, 0x12345);
    return t.len + len;
}

static size_t
response(uint8_t *out, const struct in6_addr *src, const struct in6_addr *dst)
{
    const struct roce_spec ack = {
        .src = src, .dst = dst, .dest_qp = STAR_DQPN, .opcode = RC_ACK, .syndrome = 0x1f};

    return roce_build(out, &ack);
}

START_TEST(groups)
    {
        unsigned n_of[3] = {0};

        for (unsigned i = 0; i < N_PROXIES; i++) {
            struct in6_addr group = proxy(i), receiver = star_receiver(0);
            unsigned worker = steer_proxy(n_workers, &group);
            uint8_t ip[PACKET_ROOM] = {0};

            ck_assert_uint_lt(worker, 3);
            n_of[worker]++;
            ck_assert_uint_eq(steered(ip, down(ip, &group, 4), true), worker);
            ck_assert_uint_eq(steered(ip, down(ip, &group, 0), true), worker);
            ck_assert_uint_eq(steered(ip, response(ip, &receiver, &group), false), worker);
            ck_assert_uint_eq(steered(ip, response(ip, &group, &receiver), true), worker);

            size_t len = response(ip + IP6_HDR_LEN, &group, &receiver);
            uint8_t inner[PACKET_ROOM];
            memcpy(inner, ip + IP6_HDR_LEN, len);
            memcpy(ip6_build(ip, node_address(5), node_sid(7, SID_FUNC_RESPONSE), IP6_NH_IPV6, len),
                   inner, len);
            ck_assert_uint_eq(steered(ip, IP6_HDR_LEN + len, true), worker);
        }
        for (unsigned i = 0; i < 3; i++) {
            ck_assert_uint_ge(n_of[i], N_PROXIES / 3 - 2);
        }
    }
END_TEST

/* A destination option in front of the SRH. */
START_TEST(other_headers)
    {
        for (unsigned i = 0; i < N_PROXIES; i++) {
            struct in6_addr group = proxy(i);
            uint8_t ip[PACKET_ROOM], more[PACKET_ROOM];
            size_t len = down(ip, &group, 2);
            struct ip6_hdr_wire *hdr = (struct ip6_hdr_wire *) more;

            memcpy(more, ip, IP6_HDR_LEN);
            memcpy(more + IP6_HDR_LEN, (uint8_t[]){hdr->nh, 0, 1, 4, 0, 0, 0, 0}, 8);
            memcpy(more + IP6_HDR_LEN + 8, ip + IP6_HDR_LEN, len - IP6_HDR_LEN);
            hdr->nh = IP6_NH_DSTOPT;
            hdr->plen = be16_put((uint16_t) (len + 8 - IP6_HDR_LEN));
            ck_assert_uint_eq(steered(more, len + 8, false), steer_proxy(n_workers, &group));
        }
    }
END_TEST

/* Fast CNPs go to the host, from any node, and concern a group or none. */
START_TEST(fast_cnps)
    {
        for (unsigned i = 0; i <= N_PROXIES; i++) {
            struct fast_cnp said = {
                .node = node_address(7),
                .sender = star_source,
                .original = i < N_PROXIES ? proxy(i) : star_receiver(0),
                .dest_qp = STAR_DQPN,
            };
            uint8_t ip[PACKET_ROOM] = {0};
            struct packet *p = fast_cnp_build(pool, &said, 0xc123);
            size_t len = packet_flatten(p, ip, sizeof ip);

            packet_put(p);
            ck_assert_uint_eq(steered(ip, len, false),
                              i < N_PROXIES ? steer_proxy(n_workers, &said.original) : 0);
        }
    }
END_TEST

START_TEST(neighbour_discovery)
    {
        uint8_t mac[6] = {2};

        for (unsigned i = 0; i < N_PROXIES; i++) {
            struct nd_msg m = {.type = ND_NS, .src = star_receiver(0), .target = proxy(i)};
            struct packet *p = packet_get(pool);

            m.dst = nd_solicited_node(&m.target);
            nd_build(p, mac, mac, &m);
            ck_assert_uint_eq(steer_frame(n_workers, p), steer_proxy(n_workers, &m.target));
            packet_put(p);

            m.target = node_address(3);
            p = packet_get(pool);
            nd_build(p, mac, mac, &m);
            ck_assert_uint_eq(steer_frame(n_workers, p), 0);
            packet_put(p);

            m = (struct nd_msg){.type = ND_NA, .src = star_receiver(0), .dst = node_address(3)};
            p = packet_get(pool);
            nd_build(p, mac, mac, &m);
            ck_assert_uint_eq(steer_frame(n_workers, p), STEER_ALL);
            packet_put(p);
        }
    }
END_TEST

/* What is no group's, or cut anywhere, is for the first worker or the group's; nothing is read
 * behind it. */
START_TEST(the_rest)
    {
        struct in6_addr group = proxy(4), a = node_address(2), b = star_receiver(1);
        uint8_t ip[PACKET_ROOM] = {0};
        size_t len = response(ip, &a, &b);

        ck_assert_uint_ne(steer_proxy(n_workers, &group), 0);
        ck_assert_uint_eq(steered(ip, len, false), 0);
        ip6_build(ip, a, b, 59, 8);
        ck_assert_uint_eq(steered(ip, IP6_HDR_LEN + 8, false), 0);
        len = down(ip, &group, 4);
        for (size_t cut = 0; cut < len; cut++) {
            unsigned to = steered(ip, cut, false);
            ck_assert(!to || to == steer_proxy(n_workers, &group));
        }
        n_workers = 1;
        ck_assert_uint_eq(steered(ip, len, true), 0);
    }
END_TEST

Suite *
steer_suite(void)
{
    Suite *s = suite_create("steer");
    TCase *tc = tcase_create("steer");
    suite_add_tcase(s, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, groups);
    tcase_add_test(tc, other_headers);
    tcase_add_test(tc, fast_cnps);
    tcase_add_test(tc, neighbour_discovery);
    tcase_add_test(tc, the_rest);
    return s;
}
