/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/reverse-fixture.h"

struct reverse *r;
uint32_t n_ids;
uint64_t now;

void
setup_life(uint32_t n, uint32_t start_psn, bool started_before)
{
    const struct reverse_params params = {
        .start_psn = psn_make(start_psn),
        .started_before = started_before,
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
    };
    now = 1000000;
    n_ids = n;
    r = reverse_create(&params);
    for (uint32_t id = 1; id <= n; id++) {
        ck_assert_int_eq(reverse_branch_add(r, id, now), 0);
    }
}

void
setup_group(uint32_t n, uint32_t start_psn)
{
    setup_life(n, start_psn, false);
}

void
setup_policy(uint32_t n, struct reverse_policy policy)
{
    setup_group(n, START);
    reverse_set_policy(r, &policy);
}

void
teardown(void)
{
    reverse_destroy(r);
    r = NULL;
}

void
expect_nothing(struct reverse_out out)
{
    ck_assert_msg(!out.send, "unexpected response: syndrome %#x, PSN %u", out.syndrome, out.psn.v);
}

void
expect(struct reverse_out out, uint8_t syndrome, uint32_t psn)
{
    ck_assert_msg(out.send, "nothing sent, expected syndrome %#x, PSN %u", syndrome, psn);
    ck_assert_uint_eq(out.syndrome, syndrome);
    ck_assert_uint_eq(out.psn.v, psn_make(psn).v);
}

struct reverse_out
respond_msn(uint32_t id, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    enum drop_reason why;
    struct reverse_out out = reverse_response(r, id, psn_make(psn), syndrome, msn, now, &why);
    ck_assert_str_eq(drop_name(why), drop_name(DROP_none));
    return out;
}

struct reverse_out
respond(uint32_t id, uint8_t syndrome, uint32_t psn)
{
    return respond_msn(id, syndrome, psn, 0);
}

struct reverse_out
ack(uint32_t id, uint32_t psn)
{
    return respond(id, AETH_ACK_UNLIMITED, psn);
}

struct reverse_out
nak(uint32_t id, uint32_t psn)
{
    return respond(id, AETH_NAK_PSN_SEQ, psn);
}

struct reverse_out
leave(uint32_t id)
{
    return reverse_branches_remove(r, &id, 1, now);
}

void
expect_refused(uint32_t id, uint8_t syndrome, uint32_t psn, enum drop_reason expected)
{
    enum drop_reason why;
    expect_nothing(reverse_response(r, id, psn_make(psn), syndrome, 0, now, &why));
    ck_assert_str_eq(drop_name(why), drop_name(expected));
}

void
down_only(uint32_t q)
{
    expect_nothing(reverse_down(r, psn_make(q), false, now));
}

void
down(uint32_t first, uint32_t last)
{
    for (uint32_t q = first; q != last + 1; q++) {
        down_only(q);
        for (uint32_t id = 1; id <= n_ids; id++) {
            ck_assert(!reverse_filters(r, id, psn_make(q)));
            reverse_copied(r, id, psn_make(q), true);
        }
    }
}

struct reverse_branch_info
branch(uint32_t id)
{
    struct reverse_branch_info info;
    ck_assert(reverse_get_branch(r, id, &info));
    return info;
}

struct reverse_info
info(void)
{
    struct reverse_info i;
    reverse_get_info(r, &i);
    return i;
}
