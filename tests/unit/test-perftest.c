/* SPDX-License-Identifier: Apache-2.0
 *
 * What castbench knows of perftest: its messages about queue pairs, and its command line.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "bench/castbench/perftest-args.h"
#include "bench/castbench/perftest-keys.h"

#include "tests/unit/suites.h"

/* As ib_write_bw 6.06 (perftest 4.5+0.17-1) has sent it: its format is KEY_PRINT_FMT_GID. */
static const char sent[PERFTEST_KEYS_LEN] =
    "0000:0001:000011:9ab92c:00000369:0000560d663bb000:"
    "fd:00:00:01:00:00:00:00:00:00:00:00:00:00:01:00:00000000:";

START_TEST(keys_read)
    {
        struct perftest_keys k;
        struct in6_addr gid;
        char again[PERFTEST_KEYS_LEN];

        ck_assert(perftest_keys_parse(&k, sent, sizeof sent));
        ck_assert_uint_eq(k.lid, 0);
        ck_assert_uint_eq(k.out_reads, 1);
        ck_assert_uint_eq(k.qpn, 0x11);
        ck_assert_uint_eq(k.psn, 0x9ab92c);
        ck_assert_uint_eq(k.rkey, 0x369);
        ck_assert_uint_eq(k.va, 0x560d663bb000);
        ck_assert_uint_eq(k.srqn, 0);
        inet_pton(AF_INET6, "fd00:1::100", &gid);
        ck_assert_mem_eq(&k.gid, &gid, sizeof gid);
        perftest_keys_format(&k, again);
        ck_assert_mem_eq(again, sent, sizeof sent);
    }
END_TEST

START_TEST(keys_limits)
    {
        struct perftest_keys k, l;
        char text[PERFTEST_KEYS_LEN];

        memset(&k, 0xff, sizeof k);
        k.lid = k.out_reads = 0xffff;
        k.qpn = k.psn = 0xffffff;
        perftest_keys_format(&k, text);
        ck_assert_uint_eq(strlen(text), PERFTEST_KEYS_LEN - 1);
        ck_assert(perftest_keys_parse(&l, text, sizeof text));
        ck_assert_uint_eq(l.qpn, 0xffffff);
        ck_assert_uint_eq(l.rkey, UINT32_MAX);
        ck_assert_uint_eq(l.va, UINT64_MAX);
        ck_assert_uint_eq(l.srqn, UINT32_MAX);
    }
END_TEST

/* Any other length, and any character that is not what belongs there. */
START_TEST(keys_wrong)
    {
        struct perftest_keys k;

        for (size_t len = 0; len < sizeof sent; len++) {
            ck_assert_msg(!perftest_keys_parse(&k, sent, len), "length %zu", len);
        }
        for (size_t i = 0; i < sizeof sent; i++) {
            char text[PERFTEST_KEYS_LEN];

            memcpy(text, sent, sizeof text);
            text[i] = 'g';
            ck_assert_msg(!perftest_keys_parse(&k, text, sizeof text), "character %zu", i);
        }
    }
END_TEST

static bool
parse(struct perftest_args *a, const char *line, char *error, size_t size)
{
    static char copy[512];
    static char *words[32];
    int n = 0;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        words[n++] = word;
    }
    words[n] = NULL;
    return perftest_args_parse(a, n, words, error, size);
}

START_TEST(args_read)
    {
        static const struct {
            const char *line;
            bool is_send;
            uint32_t size;
            unsigned qp_timeout, n_keys;
        } cases[] = {
            {"ib_write_bw", false, 65536, 0, 4},
            {"/usr/bin/ib_write_bw -s 100 -u 18", false, 100, 18, 4},
            {"ib_write_bw -Fs100 --qp-timeout=18 -n 5", false, 100, 18, 4},
            {"ib_write_bw -a", false, 8388608, 0, 4},
            {"ib_send_bw --size 1", true, 1, 0, 5},
            {"ib_send_bw --all", true, 8388608, 0, 50},
            {"ib_send_bw -q 1 -c RC -D 10 -l 4 --tclass 2 --report_gbits", true, 65536, 0, 5},
        };
        char error[256];

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct perftest_args a;

            ck_assert_msg(parse(&a, cases[i].line, error, sizeof error), "%s: %s", cases[i].line,
                          error);
            ck_assert_int_eq(a.is_send, cases[i].is_send);
            ck_assert_uint_eq(a.size, cases[i].size);
            ck_assert_uint_eq(a.qp_timeout, cases[i].qp_timeout);
            ck_assert_uint_eq(a.n_keys, cases[i].n_keys);
        }
    }
END_TEST

/* The sentences are in tests/bad-input; here: an option's value is taken for no option. */
START_TEST(args_refused)
    {
        static const char *const bad[] = {
            "ib_read_bw",
            "ib_write_bwx",
            "ib_write_bw -ab",
            "ib_write_bw -n 5 -q 2",
            "ib_write_bw --bidirectional",
            "ib_write_bw host",
            "ib_write_bw -s 0",
        };
        struct perftest_args a;
        char error[256];

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            error[0] = '\0';
            ck_assert_msg(!parse(&a, bad[i], error, sizeof error), "%s", bad[i]);
            ck_assert_msg(error[0], "%s: no reason", bad[i]);
        }
        ck_assert_msg(parse(&a, "ib_write_bw -D -b", error, sizeof error), "%s", error);
    }
END_TEST

/* Servers do not write where the client writes its results. */
START_TEST(args_of_server)
    {
        static char words[][24] = {"ib_send_bw", "--out_json",        "-s", "5", "--out_json_file",
                                   "x",          "--out_json_file=x", "-F"};
        char *argv[9] = {NULL}, *to[9];

        for (unsigned i = 0; i < 8; i++) {
            argv[i] = words[i];
        }
        ck_assert_int_eq(perftest_args_of_server(argv, to), 4);
        ck_assert_str_eq(to[0], "ib_send_bw");
        ck_assert_str_eq(to[1], "-s");
        ck_assert_str_eq(to[2], "5");
        ck_assert_str_eq(to[3], "-F");
    }
END_TEST

Suite *
perftest_suite(void)
{
    Suite *s = suite_create("perftest");
    TCase *t = tcase_create("perftest");

    tcase_add_test(t, keys_read);
    tcase_add_test(t, keys_limits);
    tcase_add_test(t, keys_wrong);
    tcase_add_test(t, args_read);
    tcase_add_test(t, args_refused);
    tcase_add_test(t, args_of_server);
    suite_add_tcase(s, t);
    return s;
}
