/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path: how many branches an event looks at.
 */
#include "lib/reverse-impl.h"

#include <check.h>

#include "tests/unit/reverse-fixture.h"
#include "tests/unit/suites.h"

struct cost {
    uint64_t most; /* branches that one event looked at. */
    uint64_t before;
};

static void
begin(struct cost *c)
{
    c->before = reverse_n_visits;
}

static void
end(struct cost *c)
{
    uint64_t n = reverse_n_visits - c->before;
    c->most = n > c->most ? n : c->most;
}

static uint32_t
pick(uint64_t *random, uint32_t limit)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t) ((*random >> 33) * limit >> 31);
}

static void
costly_copies(struct cost *c, uint32_t n, uint32_t q)
{
    begin(c);
    reverse_down(r, psn_make(q), q % 8 == 0, now);
    end(c);
    for (uint32_t id = 1; id <= n; id++) {
        begin(c);
        if (!reverse_filters(r, id, psn_make(q))) {
            reverse_asks(r, id);
            reverse_copied(r, id, psn_make(q), true);
        }
        reverse_is_pruned(r, id);
        end(c);
    }
}

static void
costly_responses(struct cost *c, uint32_t n, uint32_t h, uint64_t *random)
{
    static const uint8_t syndromes[] = {
        AETH_ACK_UNLIMITED, AETH_ACK_UNLIMITED, AETH_ACK_UNLIMITED,
        AETH_NAK_PSN_SEQ,   AETH_RNR | 7,       AETH_NAK_REM_OP,
    };

    for (uint32_t i = 0; i < 2 * n; i++) {
        /* One after the other, then whoever it may be, some fatally. */
        uint32_t id = i < n ? i + 1 : 1 + pick(random, n);
        uint32_t kind = i < n ? 0 : pick(random, pick(random, 50) ? 5 : 6);
        uint32_t psn = i < n ? h - 3 : h - 1 - pick(random, 8);
        enum drop_reason why;

        begin(c);
        reverse_response(r, id, psn_make(psn), syndromes[kind], 0, now, &why);
        end(c);
        now += pick(random, 100);
        begin(c);
        if (reverse_deadline(r) <= now) {
            reverse_timer(r, now);
        }
        end(c);
    }
}

/* Each event, and each copy, looks at no more branches than some times log2 n, whatever happens and
 * however many there are: events are as many as branches, so anything linear would be their
 * square. */
START_TEST(cost_grows_with_log_n)
    {
        static const uint32_t sizes[] = {10, 100, 1000, 4000};
        const struct reverse_policy policy = {
            .nak = (enum reverse_nak)(_i % 3),
            .filter = _i / 3 % 2,
            .prune = _i / 6,
            .presume_usec = 4000,
        };

        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            uint32_t n = sizes[k], log2_n = 32 - (uint32_t) __builtin_clz(n);
            uint64_t random = k;
            struct cost c = {0};

            setup_policy(n, policy);
            for (uint32_t q = START; q < START + 24; q += 8) {
                for (uint32_t i = 0; i < 8; i++) {
                    costly_copies(&c, n, q + i);
                }
                costly_responses(&c, n, q + 8, &random);
                for (uint32_t i = 4; i < 8; i++) {
                    costly_copies(&c, n, q + i);
                }
            }
            ck_assert_uint_gt(c.most, 0);
            ck_assert_msg(c.most <= 6 * log2_n, "%u branches: %u looked at", n, (unsigned) c.most);
            teardown();
        }
    }
END_TEST

/* Branches that share copies are not looked at for a PSN that comes next, and all of them once when
 * one is sent again or when a NAK is held that they are to be asked for. */
START_TEST(cost_of_shared_copies)
    {
        enum { N = 1000 };
        struct cost c = {0};

        setup_policy(N, (struct reverse_policy){.nak = NAK_SOLICIT, .liveness_usec = 32000});
        for (uint32_t id = 1; id <= N; id++) {
            reverse_share(r, id, true);
        }
        for (uint32_t q = 100; q < 200; q++) {
            begin(&c);
            reverse_down(r, psn_make(q), q % 8 == 0, now);
            ck_assert(!reverse_asks_shared(r));
            reverse_copied_shared(r, psn_make(q), true);
            end(&c);
        }
        ck_assert_uint_eq(c.most, 0);

        nak(N, 150);
        reverse_down(r, psn_make(200), false, now);
        ck_assert(reverse_asks_shared(r));
        reverse_copied_shared(r, psn_make(200), true);
        begin(&c);
        reverse_down(r, psn_make(201), false, now);
        ck_assert(!reverse_asks_shared(r));
        reverse_copied_shared(r, psn_make(201), true);
        end(&c);
        ck_assert_uint_eq(c.most, 0);

        begin(&c);
        reverse_down(r, psn_make(150), false, now);
        reverse_copied_shared(r, psn_make(150), true);
        end(&c);
        ck_assert_uint_ge(c.most, N);
        ck_assert_uint_le(c.most, 2 * N);
    }
END_TEST

/* A tick of the liveness time looks at each branch once, and takes out many at a time. */
START_TEST(cost_of_a_tick)
    {
        enum { N = 1000 };

        setup_policy(N, (struct reverse_policy){.prune = true, .liveness_usec = 32000});
        down(100, 100);
        ack(N, 100);
        for (int i = 0; i < 40; i++) {
            uint64_t before = reverse_n_visits;
            struct reverse_info info;

            now += 1000;
            reverse_timer(r, now);
            reverse_get_info(r, &info);
            ck_assert_uint_le(reverse_n_visits - before, info.n_lost ? 50 * N : 2 * N);
            for (uint32_t id = 1; id < N; id++) {
                reverse_copied(r, id, psn_make(100), true);
            }
        }
        struct reverse_info info;
        reverse_get_info(r, &info);
        ck_assert_uint_eq(info.n_lost, N - 1);
        ck_assert_uint_eq(info.f.v, 101);
    }
END_TEST

Suite *
reverse_cost_suite(void)
{
    Suite *s = suite_create("reverse_cost");
    TCase *tc = tcase_create("cost");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, cost_grows_with_log_n, 0, 12);
    tcase_add_test(tc, cost_of_shared_copies);
    tcase_add_test(tc, cost_of_a_tick);
    suite_add_tcase(s, tc);
    return s;
}
