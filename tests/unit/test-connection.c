/* SPDX-License-Identifier: Apache-2.0
 *
 * A connection's row as plain data: good ones of both roles, and every column spoiled in turn.
 */
#include <config.h>

#include "ctl/registry/connection.h"

#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "tests/unit/suites.h"
#include "util.h"

static struct rrec_connection row;
static int64_t qpn, psn, mtu, reason, remote_id, peer_mtu, peer_reason;

#define STR(S) CONST_CAST(char *, S)

static void
setup(void)
{
    qpn = 0xfffffe;
    psn = 0xffffff;
    mtu = 4096;
    reason = 0xffff;
    remote_id = UINT32_MAX;
    peer_mtu = 256;
    peer_reason = 28;
    row = (struct rrec_connection){
        .node = STR("n1"),
        .number = UINT32_MAX,
        .role = STR("passive"),
        .proxy = STR("fd00:ffff::7"),
        .address = STR("fd00:1::1"),
        .port = 7174,
        .decision = STR("accept"),
        .qpn = &qpn,
        .n_qpn = 1,
        .psn = &psn,
        .n_psn = 1,
        .mtu = &mtu,
        .n_mtu = 1,
        .timeout = 31,
        .keepalive = UINT32_MAX,
        .reason = &reason,
        .n_reason = 1,
        .answer = STR("cafe"),
        .state = STR("ended"),
        .cause = STR("new-req"),
        .remote_id = &remote_id,
        .n_remote_id = 1,
        .transaction = STR("ffffffffffffffff"),
        .peer_qpn = 0xffffff,
        .peer_psn = 0xffffff,
        .peer_mtu = &peer_mtu,
        .n_peer_mtu = 1,
        .peer_reason = &peer_reason,
        .n_peer_reason = 1,
        .peer_data = STR("0102"),
    };
}

START_TEST(passive)
    {
        struct cm_conn_config c;
        char *error;

        ck_assert(connection_read(&row, &c, &error));
        ck_assert_ptr_null(error);
        ck_assert_uint_eq(c.id, UINT32_MAX);
        ck_assert_int_eq(c.role, CM_PASSIVE);
        ck_assert_str_eq(ip6_text(&c.proxy), "fd00:ffff::7");
        ck_assert_str_eq(ip6_text(&c.host), "fd00:1::1");
        ck_assert_int_eq(c.decision, CM_ACCEPT);
        ck_assert_uint_eq(c.port, 7174);
        ck_assert_uint_eq(c.qpn, 0xfffffe);
        ck_assert_uint_eq(c.psn.v, 0xffffff);
        ck_assert_uint_eq(c.mtu, 4096);
        ck_assert_uint_eq(c.ack_timeout, 31);
        ck_assert_uint_eq(c.keepalive_msec, UINT32_MAX);
        ck_assert_uint_eq(c.reason, 0xffff);
        ck_assert_uint_eq(c.private_len, 2);
        ck_assert_mem_eq(c.private_data, "\xca\xfe", 3);
        ck_assert(!c.ready); /* the node's to say. */
        ck_assert_int_eq(c.known.state, CM_ENDED);
        ck_assert_int_eq(c.known.cause, CM_BY_NEW_REQ);
        ck_assert_uint_eq(c.known.remote_id, UINT32_MAX);
        ck_assert_uint_eq(c.known.tid, UINT64_MAX);
        ck_assert_uint_eq(c.known.qpn, 0xffffff);
        ck_assert_uint_eq(c.known.psn.v, 0xffffff);
        ck_assert_uint_eq(cm_mtu_bytes(c.known.mtu_code), 256);
        ck_assert_uint_eq(c.known.port, 7174);
        ck_assert_uint_eq(c.known.reason, 28);
        ck_assert_uint_eq(c.known.private_len, 2);
        ck_assert_mem_eq(c.known.private_data, "\1\2", 3);
    }
END_TEST

/* As castd makes it: nothing is known. */
START_TEST(active)
    {
        struct cm_conn_config c;
        char *error;

        row.role = STR("active");
        row.number = INT32_MAX;
        row.decision = row.state = row.cause = NULL;
        row.transaction = row.peer_data = row.answer = STR("");
        row.n_reason = row.n_remote_id = row.n_peer_mtu = row.n_peer_reason = 0;
        row.peer_qpn = row.peer_psn = 0;
        ck_assert(connection_read(&row, &c, &error));
        ck_assert_uint_eq(c.id, INT32_MAX);
        ck_assert_int_eq(c.role, CM_ACTIVE);
        ck_assert_int_eq(c.decision, CM_UNDECIDED);
        ck_assert_uint_eq(c.reason, 0);
        ck_assert_uint_eq(c.private_len, 0);
        ck_assert_uint_eq(c.known.remote_id, 0);
        ck_assert_uint_eq(c.known.tid, 0);
        ck_assert_uint_eq(c.known.mtu_code, 0);
        ck_assert_int_eq(c.known.cause, CM_NOT_ENDED);
    }
END_TEST

/* What a row is not needed for may be empty. */
START_TEST(undecided)
    {
        struct cm_conn_config c;
        char *error;

        row.decision = NULL;
        row.n_qpn = row.n_psn = row.n_mtu = 0;
        ck_assert(connection_read(&row, &c, &error));
        ck_assert_uint_eq(c.qpn, 0);
    }
END_TEST

/* As much private data as the message has room for. */
START_TEST(answers)
    {
        static const struct {
            const char *role, *decision;
            size_t max;
        } cases[] = {
            {"passive", "accept", CM_REP_PRIVATE_LEN},
            {"passive", "reject", CM_REJ_PRIVATE_LEN},
            {"passive", "close", CM_REP_PRIVATE_LEN},
            {"active", NULL, CM_REQ_PRIVATE_LEN},
        };
        struct cm_conn_config c;
        static char digits[2 * CM_PRIVATE_SIZE + 3];
        char *error;

        row.role = STR(cases[_i].role);
        row.number = _i == 3 ? 1 : UINT32_MAX;
        row.decision = STR(cases[_i].decision);
        memset(digits, '7', sizeof digits);
        digits[2 * cases[_i].max] = '\0';
        row.answer = digits;
        ck_assert(connection_read(&row, &c, &error));
        ck_assert_uint_eq(c.private_len, cases[_i].max);
        ck_assert_uint_eq(c.private_data[c.private_len - 1], 0x77);
        digits[2 * cases[_i].max] = '7';
        digits[2 * cases[_i].max + 2] = '\0';
        ck_assert(!connection_read(&row, &c, &error));
        ck_assert_ptr_nonnull(strstr(error, "Connection.answer"));
        free(error);
    }
END_TEST

/* Spoils one column; returns its name. */
static const char *
spoil(int i)
{
    switch (i) {
    case 0: row.role = STR("listener"); return "role \"listener\"";
    case 1: row.decision = STR("accepted"); return "decision \"accepted\"";
    case 2: row.proxy = STR("fd00:1::7"); return "proxy \"fd00:1::7\"";
    case 3: row.address = STR("r1"); return "address \"r1\"";
    case 4: row.number = INT32_MAX; return "number \"2147483647\"";
    case 5: row.role = STR("active"); return "number \"4294967295\"";
    case 6: row.port = 65536; return "port";
    case 7: qpn = 1; return "qpn \"1\"";
    case 8: row.n_qpn = 0; return "qpn \"\": must not be empty";
    case 9: psn = 1 << 24; return "psn \"16777216\"";
    case 10: row.n_psn = 0; return "psn \"\": must not be empty";
    case 11: mtu = 128; return "mtu \"128\"";
    case 12: row.timeout = 32; return "timeout";
    case 13: row.keepalive = -1; return "keepalive";
    case 14: reason = 65536; return "reason";
    case 15: row.answer = STR("caf"); return "answer \"caf\"";
    case 16: row.state = STR("open"); return "state \"open\"";
    case 17: row.cause = STR("crash"); return "cause \"crash\"";
    case 18: remote_id = 0; return "remote_id";
    case 19: row.transaction = STR("0x1"); return "transaction \"0x1\"";
    case 20: row.transaction = STR("11111111111111111"); return "transaction";
    case 21: row.peer_qpn = 1 << 24; return "peer_qpn";
    case 22: row.peer_psn = -1; return "peer_psn";
    case 23: peer_mtu = 8192; return "peer_mtu";
    case 24: peer_reason = -1; return "peer_reason";
    case 25: row.peer_data = STR("zz"); return "peer_data";
    case 26:
        row.role = STR("active");
        row.number = 1;
        mtu = 1000;
        return "mtu \"1000\"";
    case 27:
        row.role = STR("active");
        row.number = 1;
        row.port = 0;
        return "port \"0\"";
    default: return NULL;
    }
}
#define N_SPOILS 28

START_TEST(spoiled)
    {
        struct cm_conn_config c;
        char *error;

        char *wanted = xasprintf("Connection.%s", spoil(_i));
        ck_assert(!connection_read(&row, &c, &error));
        ck_assert_msg(!strncmp(error, wanted, strlen(wanted)), "%s", error);
        free(error);
        free(wanted);
    }
END_TEST

Suite *
connection_suite(void)
{
    Suite *s = suite_create("connection");
    TCase *tc = tcase_create("connection");

    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_test(tc, passive);
    tcase_add_test(tc, active);
    tcase_add_test(tc, undecided);
    tcase_add_loop_test(tc, answers, 0, 4);
    tcase_add_loop_test(tc, spoiled, 0, N_SPOILS);
    suite_add_tcase(s, tc);
    return s;
}
