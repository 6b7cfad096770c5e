/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people read them.
 */
#include <check.h>
#include <stdint.h>

#include "lib/figure.h"
#include "tests/unit/suites.h"

static const struct {
    const char *key;
    int64_t value;
    const char *label, *text;
} figures[] = {
    {"qpn", 0x11, "qpn", "0x11"},
    {"designated_rkey", UINT32_MAX, "designated_rkey", "0xffffffff"},
    {"region_va", 0, "region_va", "0x0"},
    {"psn", 100, "psn", "100"},
    {"epoch", 16, "epoch", "16"},
    {"mtu", 1024, "mtu", "1024 bytes"},
    {"liveness_ms", 0, "liveness", "never"},
    {"liveness_ms", 1, "liveness", "1 ms"},
    {"liveness_ms", 999, "liveness", "999 ms"},
    {"liveness_ms", 1000, "liveness", "1 s"},
    {"liveness_ms", 17180, "liveness", "17.2 s"},
    {"liveness_ms", 99960, "liveness", "100 s"},
    {"liveness_ms", 999500, "liveness", "1000 s"},
    {"liveness_ms", 35184373, "liveness", "35184 s"},
    {"liveness_ms", -1, "liveness", "-1"},
    {"qp_timeout", 0, "qp_timeout", "0 (never)"},
    {"qp_timeout", 1, "qp_timeout", "1 (8.19 us)"},
    {"qp_timeout", 14, "qp_timeout", "14 (67.1 ms)"},
    {"qp_timeout", 31, "qp_timeout", "31 (8796 s)"},
    {"line_rate", 1000000000, "line_rate", "1G bit/s"},
    {"floor", 0, "floor", "0 bit/s"},
    {"interval_us", 10000, "interval", "10 ms"},
    {"interval_ms", 100, "interval", "100 ms"},
    {"timeout_ms", 0, "timeout", "off"},
    {"rtt_us", 412, "rtt", "412 us"},
};

START_TEST(figure)
    {
        char text[FIGURE_SIZE];

        figure_format(figures[_i].key, figures[_i].value, text);
        ck_assert_str_eq(text, figures[_i].text);
        ck_assert_str_eq(figure_label(figures[_i].key), figures[_i].label);
    }
END_TEST

Suite *
figure_suite(void)
{
    Suite *s = suite_create("figure");
    TCase *tc = tcase_create("figures");

    tcase_add_loop_test(tc, figure, 0, sizeof figures / sizeof figures[0]);
    suite_add_tcase(s, tc);
    return s;
}
