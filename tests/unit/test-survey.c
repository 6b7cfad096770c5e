/* SPDX-License-Identifier: Apache-2.0
 *
 * A survey (lib/survey.h) by itself: answers that come twice, late, in another order or to nobody, and
 * sequence numbers that wrap.  What probers make of it is in test-prober.c.
 */
#include "lib/survey.h"
#include "tests/unit/suites.h"

#define FIRST   (UINT32_MAX - 7) /* sequence number: they wrap within the survey. */
#define GAP     1000
#define TIMEOUT 5000
#define BEGIN   UINT64_C(100000)

/* A survey all of whose packets were sent, each GAP after the one before. */
static struct survey
sent_survey(void)
{
    struct survey s = {.on = false};

    ck_assert(survey_deadline(&s, TIMEOUT) == UINT64_MAX);
    survey_begin(&s, BEGIN);
    for (uint32_t i = 0; i < SURVEY_PACKETS; i++) {
        ck_assert(!survey_is_due(&s, BEGIN + i * GAP - 1));
        ck_assert(survey_is_due(&s, BEGIN + i * GAP));
        survey_sent(&s, FIRST + i, GAP, BEGIN + i * GAP);
    }
    ck_assert(!survey_is_due(&s, UINT64_MAX));
    survey_begin(&s, BEGIN + 1); /* one is under way: it stays. */
    ck_assert_uint_eq(s.n_sent, SURVEY_PACKETS);
    return s;
}

/* Each counts once, in whatever order; others do not. */
START_TEST(answers)
    {
        struct survey s = sent_survey();

        ck_assert(!survey_came_back(&s, FIRST - 1, BEGIN));
        ck_assert(!survey_came_back(&s, FIRST + SURVEY_PACKETS, BEGIN));
        for (uint32_t i = SURVEY_PACKETS; i-- > 1;) {
            ck_assert(survey_came_back(&s, FIRST + i, BEGIN));
            ck_assert(!survey_came_back(&s, FIRST + i, BEGIN));
        }
        ck_assert(s.on);
        ck_assert(survey_came_back(&s, FIRST, BEGIN));
        ck_assert(!s.on); /* nothing was lost. */
        ck_assert(!survey_came_back(&s, FIRST, BEGIN));
        ck_assert(survey_deadline(&s, TIMEOUT) == UINT64_MAX);
    }
END_TEST

/* What does not come back is lost at its time, the first one first, and does not come back later. */
START_TEST(losses)
    {
        struct survey s = sent_survey();

        for (uint32_t i = 2; i < SURVEY_PACKETS; i++) {
            ck_assert(survey_came_back(&s, FIRST + i, BEGIN));
        }
        ck_assert(survey_deadline(&s, TIMEOUT) == BEGIN + TIMEOUT);
        ck_assert(!survey_take_lost(&s, TIMEOUT, BEGIN + TIMEOUT - 1));
        ck_assert(survey_take_lost(&s, TIMEOUT, BEGIN + TIMEOUT));
        ck_assert(!survey_came_back(&s, FIRST, BEGIN + TIMEOUT));
        ck_assert(!survey_take_lost(&s, TIMEOUT, BEGIN + TIMEOUT));
        ck_assert(survey_deadline(&s, TIMEOUT) == BEGIN + GAP + TIMEOUT);
        /* The second one that is lost: another survey begins. */
        ck_assert(survey_take_lost(&s, TIMEOUT, BEGIN + GAP + TIMEOUT));
        ck_assert(s.on && !s.n_sent && !s.n_lost);
        ck_assert(survey_is_due(&s, BEGIN + GAP + TIMEOUT));
        ck_assert(!survey_take_lost(&s, TIMEOUT, UINT64_MAX));
        ck_assert(!survey_came_back(&s, FIRST + 2, BEGIN));
    }
END_TEST

/* A single loss is followed by none. */
START_TEST(one_loss)
    {
        struct survey s = sent_survey();

        for (uint32_t i = 1; i < SURVEY_PACKETS; i++) {
            ck_assert(survey_came_back(&s, FIRST + i, BEGIN));
        }
        ck_assert(survey_take_lost(&s, TIMEOUT, BEGIN + TIMEOUT));
        ck_assert(!s.on);
    }
END_TEST

Suite *
survey_suite(void)
{
    Suite *s = suite_create("survey");
    TCase *tc = tcase_create("survey");

    tcase_add_test(tc, answers);
    tcase_add_test(tc, losses);
    tcase_add_test(tc, one_loss);
    suite_add_tcase(s, tc);
    return s;
}
