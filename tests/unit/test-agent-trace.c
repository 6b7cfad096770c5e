/* SPDX-License-Identifier: Apache-2.0
 *
 * srcagent: IOAM traces in what it sends.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/ioam.h"
#include "lib/roce.h"
#include "srcagent/srcagent.h"
#include "tests/unit/agent-fixture.h"
#include "tests/unit/suites.h"

/* Room for so many elements is behind the outer IPv6 header, and nothing else changes. */
START_TEST(room_for_a_trace)
    {
        unsigned slots = (unsigned) _i;
        struct fixture *f = agent_create(2);
        uint8_t without[PACKET_ROOM], hbh[IOAM_HBH_LEN(IOAM_MAX_SLOTS)], trace_len;

        agent_write(f, START);
        size_t len = f->frames[0].len;
        memcpy(without, f->frames[0].bytes, len);
        const size_t outer = f->frames[0].h.ip.ofs + IP6_HDR_LEN;

        f->config.trees[0].policy.trace_slots = (uint8_t) slots;
        fixture_configure(f);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        struct frame *frame = &f->frames[0];
        struct ip6_hdr_wire *ip = (void *) (frame->bytes + frame->h.ip.ofs);
        size_t more = IOAM_HBH_LEN(slots);
        ck_assert_uint_eq(frame->len, len + more);
        ck_assert_uint_eq(ip->nh, IP6_NH_HOPOPT);
        ck_assert_uint_eq(be16_get(ip->plen), frame->len - outer);
        ioam_build(hbh, IP6_NH_ROUTING, slots);
        ck_assert_mem_eq(frame->bytes + outer, hbh, more);
        ck_assert_mem_eq(frame->bytes + outer + more, without + outer, len - outer);
        ck_assert_uint_eq(frame->h.srh_ofs, outer + more);
        ck_assert_uint_ne(frame->h.bth_ofs, 0);
        ck_assert_ptr_eq(
            ioam_find((uint8_t *) ip, (uint32_t) (frame->len - frame->h.ip.ofs), &trace_len),
            frame->bytes + outer + 8);
        ck_assert_uint_eq(trace_len, IOAM_TRACE_HDR_LEN + slots * IOAM_ELEMENT_LEN);
        fixture_destroy(f);
    }
END_TEST

/* An edge's check of authenticity is of what the agent has signed, trace or not. */
START_TEST(authentic_with_a_trace)
    {
        struct fixture *f = agent_create(2);
        struct auth_config *auth = &f->config.trees[0].auth;
        struct auth_epoch epoch = tree_config_auth_epoch(&f->config.trees[0]);
        struct auth_verifier *v = auth_verifier_create(&epoch);

        *auth = (struct auth_config){.tlvs = AUTH_MT | AUTH_HMAC, .key = 1, .n_keys = 1};
        auth->keys = must_calloc(1, sizeof *auth->keys);
        auth->keys[0] = (struct auth_key){.id = 1, .len = AUTH_SECRET_MIN, .secret = "secret"};
        f->config.trees[0].policy.trace_slots = 4;
        fixture_configure(f);
        auth_verifier_configure(v, auth, f->now);
        agent_write(f, START);
        const struct frame *frame = &f->frames[0];
        ck_assert_uint_ne(frame->h.auth_ofs, 0);
        ck_assert_uint_ne(frame->h.hmac_ofs, 0);
        ck_assert_int_eq(auth_verify(v, frame->bytes, &frame->h, f->now).why, DROP_none);
        auth_verifier_destroy(v);
        fixture_destroy(f);
    }
END_TEST

/* More slots than a Fast CNP has room for are refused, and the agent stays as it was. */
START_TEST(too_many_slots)
    {
        struct fixture *f = agent_create(2);
        char *error = NULL;

        f->config.trees[0].policy.trace_slots = IOAM_MAX_SLOTS + 1;
        ck_assert_int_eq(srcagent_class.configure(f->node, &f->config, f->now, &error), EINVAL);
        ck_assert_str_eq(error, "group g: a trace of 12 slots, and 11 is the most");
        free(error);
        agent_write(f, START);
        ck_assert_uint_eq(f->n_frames, 1);
        fixture_destroy(f);
    }
END_TEST

Suite *
agent_trace_suite(void)
{
    Suite *s = suite_create("agent_trace");
    TCase *tc = tcase_create("agent_trace");

    tcase_add_loop_test(tc, room_for_a_trace, 1, IOAM_MAX_SLOTS + 1);
    tcase_add_test(tc, authentic_with_a_trace);
    tcase_add_test(tc, too_many_slots);
    suite_add_tcase(s, tc);
    return s;
}
