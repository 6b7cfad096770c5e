/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages of real kernels.
 */
#include <stdlib.h>

#include "tests/unit/cm-check.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

/* Captures of kernels' messages; tests/vectors/README.md says what is in them. */
static const char *const captures[] = {
    "tests/vectors/cm-debian-6.1.pcap",
    "tests/vectors/cm-debian-6.12.pcap",
};
static const enum cm_attribute captured[] = {
    CM_REQ, CM_REJ, CM_REQ, CM_REJ,  CM_REQ,  CM_REP,      CM_RTU,      CM_DREQ,     CM_DREP,
    CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP, CM_SIDR_REQ, CM_SIDR_REP,
};
#define N_CAPTURED (sizeof captured / sizeof *captured)

/* What a kernel says and struct cm_msg has not. */
static void
forget(enum cm_attribute attribute, uint8_t body[CM_BODY_LEN])
{
    switch (attribute) {
    case CM_REQ: memset(body + 88, 0, 3); break; /* flow label. */
    case CM_REP: body[26] = 0; break;            /* target ACK delay. */
    case CM_SIDR_REQ: memset(body + 16, 0, 216); break;
    case CM_SIDR_REP:
        memset(body + 8, 0, 3);
        memset(body + 20, 0, 4);
        break;
    case CM_MRA:
    case CM_REJ:
    case CM_RTU:
    case CM_DREQ:
    case CM_DREP: break;
    }
}

/* Each MAD parses, and is built again as the kernel has built it. */
static void
read_capture(const char *path, struct cm_msg msgs[N_CAPTURED])
{
    struct pcap_file file;
    uint8_t *frame, built[CM_FRAME_LEN];
    uint32_t len;
    size_t n = 0;

    pcap_file_open(&file, path);
    for (; (frame = pcap_file_next(&file, &len)); n++) {
        ck_assert_uint_lt(n, N_CAPTURED);
        ck_assert_uint_eq(len, CM_FRAME_LEN);
        ck_assert_str_eq(drop_name(cm_frame_parse(frame, len, &msgs[n])), "none");
        ck_assert_str_eq(cm_attribute_name(msgs[n].attribute), cm_attribute_name(captured[n]));

        cm_frame_build(built, &msgs[n]);
        forget(captured[n], frame + CM_BODY_OFS);
        for (size_t i = 0; i < CM_BODY_LEN; i++) {
            ck_assert_msg(built[CM_BODY_OFS + i] == frame[CM_BODY_OFS + i],
                          "%s: frame %zu differs at %zu of the body", path, n + 1, i);
        }
        free(frame);
    }
    ck_assert_uint_eq(n, N_CAPTURED);
    pcap_file_close(&file);
}

static void
assert_answers(const struct cm_msg *answer, const struct cm_msg *m)
{
    ck_assert_uint_eq(answer->tid, m->tid);
    ck_assert_uint_eq(answer->remote_id, m->local_id);
}

static void
assert_rping_req(const struct cm_msg *m, unsigned port)
{
    struct in6_addr client = hex_addr("fd00::1"), server = hex_addr("fd00::2");

    ck_assert_uint_eq(m->service, CM_SERVICE_TCP + port);
    ck_assert_uint_eq(m->transport, CM_TRANSPORT_RC);
    ck_assert_uint_eq(cm_mtu_bytes(m->mtu_code), 4096);
    ck_assert_uint_eq(m->responder_resources, 1);
    ck_assert_uint_eq(m->initiator_depth, 1);
    ck_assert_uint_eq(m->retry, 7);
    ck_assert_uint_eq(m->max_cm_retries, 15);
    ck_assert_uint_ne(m->local_id, 0);
    ck_assert_uint_gt(m->qpn, CM_QPN);
    ck_assert(m->ip_header);
    ck_assert_uint_ne(m->sport, 0);
    ck_assert_mem_eq(&m->local_gid, &client, sizeof client);
    ck_assert_mem_eq(&m->ip_src, &client, sizeof client);
    ck_assert_mem_eq(&m->remote_gid, &server, sizeof server);
    ck_assert_mem_eq(&m->ip_dst, &server, sizeof server);
}

static void
assert_rejected(const struct cm_msg *m, enum cm_rej_reason reason)
{
    assert_answers(&m[1], &m[0]);
    ck_assert_int_eq(m[1].about, CM_ABOUT_REQ);
    ck_assert_uint_eq(m[1].reason, reason);
}

/* REQ, REP, RTU, DREQ, DREP. */
static void
assert_connection(const struct cm_msg *m, bool server_ends)
{
    const struct cm_msg *peer = &m[server_ends ? 0 : 1];

    assert_answers(&m[1], &m[0]);
    ck_assert_uint_gt(m[1].qpn, CM_QPN);
    ck_assert_uint_eq(m[2].tid, m[0].tid);
    ck_assert_uint_eq(m[2].local_id, m[0].local_id);
    ck_assert_uint_eq(m[2].remote_id, m[1].local_id);
    ck_assert_uint_eq(m[3].remote_id, peer->local_id);
    ck_assert_uint_eq(m[3].remote_qpn, peer->qpn);
    assert_answers(&m[4], &m[3]);
    ck_assert_uint_eq(m[4].local_id, peer->local_id);
}

START_TEST(kernels)
    {
        struct cm_msg m[N_CAPTURED];

        read_capture(captures[_i], m);
        assert_rping_req(&m[0], 7001);
        assert_rejected(&m[0], CM_REJ_SERVICE_ID);
        assert_rping_req(&m[2], 7002);
        assert_rejected(&m[2], CM_REJ_CONSUMER);
        assert_rping_req(&m[4], 7003);
        assert_connection(&m[4], false);
        assert_rping_req(&m[9], 7004);
        assert_connection(&m[9], true);
        assert_answers(&m[15], &m[14]);
        ck_assert_uint_eq(m[15].sidr_status, 1);
        assert_answers(&m[17], &m[16]);
        ck_assert_uint_eq(m[17].sidr_status, 0);
        ck_assert_uint_eq(m[17].service, m[16].service);
        ck_assert(!cm_service_is_tcp(m[16].service));
    }
END_TEST

Suite *
cm_kernels_suite(void)
{
    Suite *suite = suite_create("cm_kernels");
    TCase *tc = tcase_create("cm_kernels");

    tcase_add_loop_test(tc, kernels, 0, sizeof captures / sizeof *captures);
    suite_add_tcase(suite, tc);
    return suite;
}
