/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench's command line, the order of its runs, and what it makes of their numbers.  The runs
 * themselves are made up here.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/matrix.h"
#include "bench/castbench/options.h"

#include "tests/unit/suites.h"

static struct plan plan;
static char error[512];

/* Splits at spaces, into memory that stays until the next. */
static bool
parse(const char *line)
{
    static char copy[4096];
    char *argv[64];
    int argc = 0;

    ck_assert_uint_lt(strlen(line), sizeof copy);
    strcpy(copy, line);
    for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return options_parse(&plan, argc, argv, error, sizeof error);
}

#define WRITE "castbench write --group g --source h0 --receivers r1,r2,r3 "

START_TEST(defaults)
    {
        ck_assert_msg(parse(WRITE), "%s", error);
        ck_assert_uint_eq(plan_n_runs(&plan), 1);
        struct cell cell = plan_cell(&plan, 0);
        struct run_options o = plan_run_options(&plan, &cell);

        ck_assert_int_eq(o.scheme, SCHEME_MCAST);
        ck_assert_int_eq(o.op, OP_WRITE);
        ck_assert_int_eq(o.pattern, PATTERN_SEQ);
        ck_assert_uint_eq(o.n_receivers, 3);
        ck_assert_uint_eq(o.quorum, 2);
        ck_assert_uint_eq(o.size, 65536);
        ck_assert_uint_eq(o.count, 1000);
        ck_assert_uint_eq(o.duration, 0);
        ck_assert_uint_eq(o.qps, 1);
        ck_assert_uint_eq(o.depth, 16);
        ck_assert_int_eq(o.gid_index, -1);
        ck_assert_uint_ne(o.interval_ms, 0);
        ck_assert(!o.show_interval);
        ck_assert_str_eq(o.groups[0], "g");
        ck_assert_str_eq(o.receivers[2], "r3");
    }
END_TEST

START_TEST(values)
    {
        ck_assert_msg(parse(WRITE
                            "-D 5 --warmup 7 -t 0x20 -m 4096 -u 20 -d rxe0 -x 1 --pattern append "
                            "--rate 12.5 --chunk 4K --quorum 3 --region 4M --store s --seed 9 "
                            "--interval 0.25 --count-bytes a --count-bytes b:c --lab l --label "
                            "k=v=w --csv c -j j -s 1,0x10,2K,3m"),
                      "%s", error);
        const struct run_options *o = &plan.base;
        const uint32_t sizes[] = {1, 16, 2048, 3 << 20};

        ck_assert_uint_eq(plan.n_sizes, 4);
        ck_assert_mem_eq(plan.sizes, sizes, sizeof sizes);
        ck_assert_uint_eq(o->count, 0);
        ck_assert_uint_eq(o->duration, 5);
        ck_assert_uint_eq(o->warmup, 7);
        ck_assert_uint_eq(o->depth, 32);
        ck_assert_uint_eq(o->mtu, 4096);
        ck_assert_uint_eq(o->qp_timeout, 20);
        ck_assert_str_eq(o->ib_dev, "rxe0");
        ck_assert_int_eq(o->gid_index, 1);
        ck_assert_int_eq(o->pattern, PATTERN_APPEND);
        ck_assert_double_eq(o->rate, 12.5);
        ck_assert_uint_eq(o->chunk, 4096);
        ck_assert_uint_eq(plan.quorum, 3);
        ck_assert_uint_eq(o->region_max, 4 << 20);
        ck_assert_uint_eq(o->seed, 9);
        ck_assert_uint_eq(o->interval_ms, 250);
        ck_assert(o->show_interval);
        ck_assert_uint_eq(o->counted.n_devices, 2);
        ck_assert_str_eq(o->counted.devices[1], "b:c");
        ck_assert_str_eq(o->counted.lab, "l");
        ck_assert_uint_eq(plan.labels[0].key_len, 1);
        ck_assert_str_eq(plan.labels[0].value, "v=w");
        ck_assert_str_eq(plan.csv, "c");
        ck_assert_str_eq(plan.json, "j");
    }
END_TEST

START_TEST(rdma_cm)
    {
        ck_assert_msg(parse(WRITE), "%s", error);
        ck_assert(!plan.base.rdma_cm);
        ck_assert_msg(parse(WRITE "-R"), "%s", error);
        ck_assert(plan.base.rdma_cm);
        ck_assert_uint_eq(plan.base.port, 18515);
        ck_assert_msg(parse("castbench send --group g,h --source h0 --receivers r1 --rdma-cm "
                            "--port 65534 -E --repeat 2"),
                      "%s", error);
        ck_assert_uint_eq(plan.base.port, 65534);
    }
END_TEST

START_TEST(all_sizes)
    {
        ck_assert_msg(parse(WRITE "-a"), "%s", error);
        ck_assert_uint_eq(plan.n_sizes, 23);
        for (unsigned i = 0; i < plan.n_sizes; i++) {
            ck_assert_uint_eq(plan.sizes[i], 2u << i);
        }
        ck_assert_uint_eq(plan.sizes[22], 8 << 20);
    }
END_TEST

START_TEST(order_of_runs)
    {
        static const struct cell expected[] = {
            {SCHEME_CHAIN, 1, 4096, 0},   {SCHEME_UNICAST, 1, 4096, 0}, {SCHEME_CHAIN, 3, 4096, 0},
            {SCHEME_UNICAST, 3, 4096, 0}, {SCHEME_CHAIN, 1, 64, 0},     {SCHEME_UNICAST, 1, 64, 0},
            {SCHEME_CHAIN, 3, 64, 0},     {SCHEME_UNICAST, 3, 64, 0},   {SCHEME_CHAIN, 1, 4096, 1},
        };

        ck_assert_msg(parse("castbench send --source h0 --receivers r1,r2,r3 --scheme "
                            "chain,unicast --replicas 1,3 -s 4K,64 --repeat 2"),
                      "%s", error);
        ck_assert_uint_eq(plan_n_runs(&plan), 16);
        ck_assert_uint_eq(plan_n_cells(&plan), 8);
        for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++) {
            struct cell cell = plan_cell(&plan, i);
            ck_assert_int_eq(cell.scheme, expected[i].scheme);
            ck_assert_uint_eq(cell.n_replicas, expected[i].n_replicas);
            ck_assert_uint_eq(cell.size, expected[i].size);
            ck_assert_uint_eq(cell.repeat, expected[i].repeat);
        }
        struct cell last = plan_cell(&plan, 15);
        struct run_options o = plan_run_options(&plan, &last);
        ck_assert_uint_eq(last.repeat, 1);
        ck_assert_int_eq(o.op, OP_SEND);
        ck_assert_uint_eq(o.quorum, 2);
    }
END_TEST

START_TEST(all_schemes)
    {
        ck_assert_msg(parse(WRITE "--scheme all"), "%s", error);
        ck_assert_uint_eq(plan.n_schemes, N_SCHEMES);
        for (unsigned i = 0; i < N_SCHEMES; i++) {
            ck_assert_int_eq(plan.schemes[i], (enum scheme) i);
        }
    }
END_TEST

/* What is refused, and that what is just inside of it is not: an empty error. */
static const struct {
    const char *options;
    const char *error;
} lines[] = {
    {"-s 8M", ""},
    {"-R -p 65535", ""},
    {"-R -p 0", "-p 0: must be 1..65535"},
    {"-R -p 65536", "-p 65536: must be 1..65535"},
    {"-p 18515", "-p 18515: -R is missing"},
    {"-R -p 65535 --group h", "-p 65535: 2 groups need as many ports"},
    {"-R --scheme mcast,chain", "-R: scheme chain has no group that could be connected"},
    {"-R -x 1", "-R and -x: only one of them, RDMA-CM finds the GID"},
    {"-R -D 5 --event 1:leave:r1", "-R and --event: only one of them"},
    {"-s 9M", "-s 9M: must be 1..8388608"},
    {"-s 8388609", "-s 8388609: must be 1..8388608"},
    {"-s 1G", "-s 1G: must be 1..8388608"},
    {"-s 18014398509481985K", "-s 18014398509481985K: must be 1..8388608"},
    {"-s 0K", "-s 0K: must be 1..8388608"},
    {"-s 1KK", "-s 1KK: must be 1..8388608"},
    {"-s K", "-s K: must be 1..8388608"},
    {"-s 4,4", "-s 4: named twice"},
    {"-s 1K,1024", "-s 1024: named twice"},
    {"-s 4,,8", "-s: an entry of the list is empty"},
    {"-s 4 -a", "-a and -s: only one of them"},
    {"-s 4 -s 8", ""},
    {"-s 2M --region 2M", ""},
    {"-s 2M --region 2097151", "-s 2097152: larger than the region of 2097151 bytes"},
    {"-s 64 --region 128 --pattern append", ""},
    {"-s 65 --region 128 --pattern append",
     "-s 65: larger than the region of 128 bytes behind the log's tail"},
    {"--replicas 3,1", ""},
    {"--replicas 4", "--replicas 4: there are 3 receivers"},
    {"--replicas 2,2", "--replicas 2: named twice"},
    {"--replicas 0", "--replicas 0: must be 1..88"},
    {"--quorum 3", ""},
    {"--quorum 4", "--quorum 4: of 3 replicas"},
    {"--quorum 2 --replicas 3,1", "--quorum 2: of 1 replica"},
    {"-q 1", ""},
    {"-q 2", "-q 2: there is 1 group, and each has one QP"},
    {"-q 2 --group g2", ""},
    {"-q 3 --group g2,g3,g4", "-q 3: there are 4 groups, and each has one QP"},
    {"--group g", "--group g: named twice"},
    {"--scheme chain-pipe,mcast --chunk 1 -s 4K", ""},
    {"--scheme chain-pipe,mcast --chunk 1 -s 4097",
     "--chunk 1: a block of 4097 bytes would be 4097 chunks, more than 4096"},
    {"--chunk 1 -s 8M", ""},
    {"--scheme chain,chain,mcast", "--scheme chain: named twice"},
    {"--scheme multi",
     "--scheme multi: must be mcast, unicast, unicast-serial, primary, chain, chain-pipe, btree or "
     "all"},
    {"--scheme chain", "--group g: only scheme mcast has one (castbench --help)"},
    {"-n 1 -D 1", "-n and -D: only one of them"},
    {"-n 1 --rate 1", ""},
    {"-D 1 --rate 1", ""},
    {"--file f", ""},
    {"--file f -D 1", "--file and -D: only one of them"},
    {"--file f --pattern seq", ""},
    {"--file f --pattern random", "--file and --pattern random: a file is sent in sequence"},
    {"--store f --out d", "--store and --out: only one of them"},
    {"-j - --csv x", ""},
    {"-j - --csv -", "--json and --csv: both are -"},
    {"-j /dev/stdout --csv -", "--json and --csv: both are -"},
    {"--interval 1 -j -", "--interval: standard output is for JSON"},
    {"--interval 1 --csv /dev/stdout", "--interval: standard output is for CSV"},
    {"--interval 0", "--interval 0: must be 0.01..3600"},
    {"--rate 1e3", "--rate 1e3: must be 0.001..1000000000"},
    {"--rate 1.2.3", "--rate 1.2.3: must be 0.001..1000000000"},
    {"-D 9 --event 0:join:r1,8.999:kill:r2", ""},
    {"-D 9 --event 1:kill:r2,1:start:r2,2:kill:r2,3:start:r2,4:leave:r2,5:join:r2", ""},
    {"-D 9 --event 5:start:r2 --event 4:kill:r2", ""},
    {"-D 9 --event kill:r2",
     "--event kill:r2: must be T:EVENT:HOST, with T from 0 to 86400 seconds"},
    {"-D 9 --event -1:kill:r2", "--event -1:kill:r2: must be T:EVENT:HOST, with T from 0 to 86400 "
                                "seconds"},
    {"-D 9 --event 1:stop:r2",
     "--event 1:stop:r2: 'stop' must be join, kill, start, leave, drain or remove"},
    {"-D 9 --event 1:removing-all-of-them:r2",
     "--event 1:removing-all-of-them:r2: 'removing-all-of-them' must be join, kill, start, leave, "
     "drain or remove"},
    {"-D 9 --event 1:kill", "--event 1:kill: the host is missing: it must be T:EVENT:HOST"},
    {"-D 9 --event 1:kill:", "--event 1:kill:: the host is missing: it must be T:EVENT:HOST"},
    {"-D 9 --event 1:kill:r9", "--event 1:kill:r9: it is none of --receivers"},
    {"-D 9 --event 1:start:r1", "--event 1:start:r1: it was not killed before"},
    {"-D 9 --event 1:leave:r1,2:start:r1", "--event 2:start:r1: it was not killed before"},
    {"-D 9 --event 1:leave:r1,2:remove:r1", "--event 2:remove:r1: it is no member then"},
    {"-D 9 --event 1:kill:r1,1.5:drain:r1", "--event 1.5:drain:r1: it is no member then"},
    {"-D 9 --event 1:kill:r1,2:join:r1", "--event 2:join:r1: it was killed before: it can start"},
    {"-D 9 --event 1:kill:r1,2:start:r1,3:join:r1", "--event 3:join:r1: it is a member then"},
    {"-D 9 --event 1:join:r1,1:join:r2,1:join:r3",
     "--event: no receiver would take part from the begin"},
    {"-D 9 --event 9:kill:r2", "--event 9:kill:r2: the run lasts 9 s (-D)"},
    {"--event 1:kill:r2", "--event: -D is missing: it says how long the run lasts"},
    {"-n 5 --event 1:kill:r2", "--event: -D is missing: it says how long the run lasts"},
    {"-D 9 --event 1:kill:r2 --scheme mcast,chain",
     "--event: scheme chain has no members that come and go"},
    {"-D 9 --event 1:kill:r2 --group h", "--event: must have one group, there are 2"},
    {"-D 9 --event 1:kill:r2 --replicas 3", ""},
    {"-D 9 --event 1:kill:r2 --replicas 2", "--event and --replicas: only one of them"},
    {"-D 9 --event 1:kill:r2 --pattern random", ""},
    {"-D 9 --event 1:kill:r2 --pattern append",
     "--event and --pattern append: a member may begin between a record and its tail"},
    {"-D 9 --event 1:kill:r2 --store s", "--event and --store: only one of them"},
    {"-D 9 --event 1:kill:r2 -s 16", ""},
    {"-D 9 --event 1:kill:r2 -s 4K,15",
     "--event and -s 15: blocks of less than 16 bytes cannot be told apart"},
    {"--label k", "--label k: must be KEY=VALUE"},
    {"--label =v", "--label =v: must be KEY=VALUE"},
    {"--label k= --label l=", ""},
    {"--label k=1 --label k=2", "--label k=2: k is named twice"},
    {"--fail-if p99>1", ""},
    {"--fail-if p98>1",
     "--fail-if p98>1: unknown metric 'p98': must be p50, p90, p95, p99, p99.9, max, mean, skew, gap, "
     "throughput, messages, retransmissions, uplink, overdue"},
    {"--fail-if chain:p99>1", "--fail-if chain:p99>1: there is no run with scheme chain"},
    {"--fail-if uplink>1", "--fail-if uplink>1: --count-bytes is missing"},
    {"--fail-if uplink>1 --count-bytes d", ""},
    {"--fail-if overdue>0", "--fail-if overdue>0: --rate is missing"},
    {"--fail-if overdue>0 --rate 9", ""},
};

START_TEST(refused)
    {
        char line[1024];

        snprintf(line, sizeof line, WRITE "%s", lines[_i].options);
        bool ok = parse(line);
        ck_assert_str_eq(ok ? "" : error, lines[_i].error);
        ck_assert_int_eq(ok, !lines[_i].error[0]);
    }
END_TEST

/* A SEND goes where a receive is that was posted for it. */
START_TEST(events_of_sends)
    {
        ck_assert(parse("castbench write-imm --group g --source h0 --receivers r1,r2 -D 9 --event "
                        "1:kill:r2"));
        ck_assert(!parse("castbench send --group g --source h0 --receivers r1,r2 -D 9 --event "
                         "1:kill:r2"));
        ck_assert_msg(!strncmp(error, "--event: must be write or write-imm: ", 37), "%s", error);
    }
END_TEST

START_TEST(too_many_events)
    {
        char line[4096] = WRITE "-D 9 --event 1:leave:r1,1:join:r1";

        for (unsigned i = 2; i < MAX_EVENTS; i += 2) {
            strcat(line, ",1:leave:r1,1:join:r1");
        }
        ck_assert_msg(parse(line), "%s", error);
        ck_assert_uint_eq(plan.base.n_events, MAX_EVENTS);
        strcat(line, ",2:leave:r1");
        ck_assert(!parse(line));
        ck_assert_str_eq(error, "--event 2:leave:r1: more than 64 events");
    }
END_TEST

/* Which processes there are: those that begin with the run, by receiver, then the others, by time,
 * however the command line orders them. */
START_TEST(lives)
    {
        /* By time: 0.5 join r2, 1 leave r2, 1 drain r3, 2 kill r1, 3 join r2, 4 start r1. */
        static const uint32_t times[] = {500, 1000, 1000, 2000, 3000, 4000};
        static const struct life expected[] = {
            {0, -1, 3}, {2, -1, 2}, {1, 0, 1}, {1, 4, -1}, {0, 5, -1}};
        struct life found[MAX_LIVES];

        ck_assert_msg(parse(WRITE "-D 9 --event 2:kill:r1,1:leave:r2,0.5:join:r2 --event "
                                  "1:drain:r3,4:start:r1,3:join:r2"),
                      "%s", error);
        const struct run_options *o = &plan.base;
        ck_assert_uint_eq(o->n_events, 6);
        for (unsigned i = 0; i < 6; i++) {
            ck_assert_uint_eq(o->events[i].ms, times[i]);
        }
        ck_assert_uint_eq(lives_of(o->receivers, 3, o->events, 6, found, error, sizeof error), 5);
        for (unsigned i = 0; i < 5; i++) {
            ck_assert_uint_eq(found[i].receiver, expected[i].receiver);
            ck_assert_int_eq(found[i].begin, expected[i].begin);
            ck_assert_int_eq(found[i].end, expected[i].end);
        }
        ck_assert_uint_eq(lives_of(o->receivers, 3, o->events, 0, found, error, sizeof error), 3);
    }
END_TEST

/* Samples that end at seconds, and others that are shared between two. */
START_TEST(goodput)
    {
        struct run_result *r = run_result_new();
        static const struct sample samples[] = {{.ms = 500, .bytes = 1000000},
                                                {.ms = 1000, .bytes = 3000000},
                                                {.ms = 2500, .bytes = 3000000}};

        ck_assert(r);
        ck_assert(isnan(goodput_of_second(r, 0)));
        memcpy(r->samples, samples, sizeof samples);
        r->n_samples = 3;
        ck_assert_double_eq_tol(goodput_of_second(r, 0), 4, 1e-9);
        ck_assert_double_eq_tol(goodput_of_second(r, 1), 2, 1e-9);
        ck_assert(isnan(goodput_of_second(r, 2))); /* not over. */
        free(r);
    }
END_TEST

static const struct {
    const char *text;
    enum metric metric;
    enum comparison comparison;
    double limit;
    int scheme; /* -1: of all. */
} conditions[] = {
    {"p50>2", METRIC_P50, COMPARE_GREATER, 2, -1},
    {"p90>=2us", METRIC_P90, COMPARE_GREATER_EQUAL, 2, -1},
    {"p99>2ms", METRIC_P99, COMPARE_GREATER, 2000, -1},
    {"p99.9 < 1.5 s", METRIC_P999, COMPARE_LESS, 1.5e6, -1},
    {" max <= 500ns ", METRIC_MAX, COMPARE_LESS_EQUAL, 0.5, -1},
    {"mean>0", METRIC_MEAN, COMPARE_GREATER, 0, -1},
    {"skew>1ms", METRIC_SKEW, COMPARE_GREATER, 1000, -1},
    {"gap>0.5s", METRIC_GAP, COMPARE_GREATER, 5e5, -1},
    {"mcast:throughput<90.5", METRIC_MB_PER_S, COMPARE_LESS, 90.5, SCHEME_MCAST},
    {"chain-pipe : throughput < 90 MB/s", METRIC_MB_PER_S, COMPARE_LESS, 90, SCHEME_CHAIN_PIPE},
    {"messages<1000", METRIC_MESSAGES_PER_S, COMPARE_LESS, 1000, -1},
    {"retransmissions>0.1%", METRIC_RETRANSMISSIONS, COMPARE_GREATER, 0.1, -1},
    {"uplink>1000000", METRIC_UPLINK, COMPARE_GREATER, 1e6, -1},
    {"overdue>0", METRIC_OVERDUE, COMPARE_GREATER, 0, -1},
};

START_TEST(fail_if_understood)
    {
        struct fail_if f;

        ck_assert_msg(fail_if_parse(&f, conditions[_i].text, error, sizeof error), "%s", error);
        ck_assert_str_eq(f.text, conditions[_i].text);
        ck_assert_int_eq(f.metric, conditions[_i].metric);
        ck_assert_int_eq(f.comparison, conditions[_i].comparison);
        ck_assert_double_eq_tol(f.limit, conditions[_i].limit, 1e-9);
        ck_assert_int_eq(f.has_scheme ? (int) f.scheme : -1, conditions[_i].scheme);
    }
END_TEST

static const struct {
    const char *text, *error;
} wrong_conditions[] = {
    {"p99", "an operator must follow 'p99': >, >=, < or <="},
    {"p99=2", "an operator must follow 'p99': >, >=, < or <="},
    {"p99!=2", "an operator must follow 'p99': >, >=, < or <="},
    {"p99>", "'' is no number from 0 to 10^18"},
    {"p99>x", "'x' is no number from 0 to 10^18"},
    {"p99>-1", "'-1' is no number from 0 to 10^18"},
    {"p99>2000000000000000000", "'2000000000000000000' is no number from 0 to 10^18"},
    {"p99>1.2.3", "'1.2.3' is no number from 0 to 10^18"},
    {"p99>1m", "unknown unit 'm': must be us, ns, ms, s"},
    {"p99>1 ms x", "unknown unit 'ms x': must be us, ns, ms, s"},
    {"messages>1/s", "unknown unit '/s': this metric has none"},
    {"uplink>1K", "unknown unit 'K': must be B"},
    {"fast:p99>1", "unknown scheme 'fast'"},
    {":p99>1", "unknown scheme ''"},
    {"all:p99>1", "unknown scheme 'all'"},
};

START_TEST(fail_if_refused)
    {
        struct fail_if f;

        ck_assert(!fail_if_parse(&f, wrong_conditions[_i].text, error, sizeof error));
        ck_assert_str_eq(error, wrong_conditions[_i].error);
    }
END_TEST

START_TEST(fail_if_compares)
    {
        static const struct {
            const char *text;
            bool below, at, above;
        } rows[] = {{"p99>10", false, false, true},
                    {"p99>=10", false, true, true},
                    {"p99<10", true, false, false},
                    {"p99<=10", true, true, false}};
        struct fail_if f;

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            ck_assert(fail_if_parse(&f, rows[i].text, error, sizeof error));
            ck_assert_int_eq(fail_if_holds(&f, 9.9), rows[i].below);
            ck_assert_int_eq(fail_if_holds(&f, 10), rows[i].at);
            ck_assert_int_eq(fail_if_holds(&f, 10.1), rows[i].above);
            ck_assert(fail_if_holds(&f, NAN));
        }
    }
END_TEST

START_TEST(spreads)
    {
        struct spread s = spread_of((double[]){5, 1, 3}, 3);
        ck_assert_double_eq(s.median, 3);
        ck_assert_double_eq(s.min, 1);
        ck_assert_double_eq(s.max, 5);
        s = spread_of((double[]){8, 1, 2, 4}, 4);
        ck_assert_double_eq(s.median, 3);
        s = spread_of((double[]){NAN, 7, NAN}, 3);
        ck_assert_double_eq(s.median, 7);
        ck_assert_double_eq(s.min, 7);
        s = spread_of((double[]){NAN}, 1);
        ck_assert(isnan(s.median) && isnan(s.min) && isnan(s.max));
        s = spread_of(NULL, 0);
        ck_assert(isnan(s.median));
    }
END_TEST

/* The engine: each run takes a second longer than the one before it. */
static unsigned n_run, bad_run;
static enum outcome bad_outcome;

struct run_result *
run_result_new(void)
{
    return calloc(1, sizeof(struct run_result));
}

bool
run_check(const struct run_options *o, char *text, size_t size)
{
    snprintf(text, size, "%s", o->source);
    return strcmp(o->source, "nobody") != 0;
}

void
bench_run(const struct run_options *o, struct run_result *r)
{
    n_run++;
    r->n_replicas = o->n_receivers;
    r->complete = true;
    r->bytes = 1000000;
    r->count = 10;
    r->seconds = n_run;
    histogram_add(&r->latency[RULE_ALL], 1000 * n_run);
    if (n_run == bad_run) {
        r->outcome = bad_outcome;
    }
}

/* Who goes back sends all again that is under way: with soft-RoCE 129 packets at most. */
START_TEST(retransmissions)
    {
        static const struct {
            enum scheme scheme;
            unsigned depth, size;
            double percent; /* of 10000 packets, if two went back and one receiver was not ready. */
        } rows[] = {{SCHEME_UNICAST, 1, 4096, 0.05}, /* a receiver saw 5. */
                    {SCHEME_UNICAST, 3, 4097, 0.18},
                    {SCHEME_CHAIN, 4, 1 << 20, 3.87},
                    {SCHEME_MCAST, 1, 100, 0.12},
                    {SCHEME_MCAST, 4, 1 << 20, 15.48}};
        struct run_result *r = run_result_new();
        double of_run[N_METRICS];

        ck_assert(r);
        r->n_replicas = 4;
        r->mtu = 4096;
        r->packets = 10000;
        r->source_count.has_rdma = true;
        r->source_count.retries = 1;
        r->replicas[1].host_count =
            (struct host_count){.has_rdma = true, .repeated = 5, .retries = 1, .rnr_naks = 1};
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct run_options o = {
                .scheme = rows[i].scheme, .depth = rows[i].depth, .size = rows[i].size};

            metrics_of(&o, r, of_run);
            ck_assert_double_eq_tol(of_run[METRIC_RETRANSMISSIONS], rows[i].percent, 1e-9);
        }
        r->source_count.has_rdma = r->replicas[1].host_count.has_rdma = false;
        metrics_of(&(struct run_options){.depth = 1, .size = 1}, r, of_run);
        ck_assert(isnan(of_run[METRIC_RETRANSMISSIONS]));
        free(r);
    }
END_TEST

static void
begin(void *aux, const struct plan *p, unsigned i, const struct cell *cell)
{
    (void) aux, (void) p, (void) cell;
    ck_assert_uint_eq(i, n_run);
}

static void
end(void *aux, const struct plan *p, unsigned i, const struct row *row, const struct run_options *o,
    const struct run_result *result)
{
    unsigned *n = aux;

    (void) p;
    ck_assert_uint_eq(i + 1, n_run);
    ck_assert_uint_eq(row->cell.n_replicas, o->n_receivers);
    ck_assert_double_eq(result->seconds, n_run);
    (*n)++;
}

static unsigned
run_matrix(struct matrix *m, const char *line, unsigned bad, enum outcome outcome)
{
    unsigned n = 0;

    n_run = 0;
    bad_run = bad;
    bad_outcome = outcome;
    ck_assert_msg(parse(line), "%s", error);
    ck_assert(matrix_init(m, &plan));
    matrix_run(m, &(struct matrix_observer){.aux = &n, .begin = begin, .end = end});
    return n;
}

START_TEST(medians_of_repeats)
    {
        struct matrix m;
        struct summary s;
        struct verdict v;

        /* Cells are runs 1, 3, 5 and 2, 4, 6. */
        ck_assert_uint_eq(run_matrix(&m,
                                     WRITE "--replicas 1,2 --repeat 3 --fail-if p50>3.5 --fail-if "
                                           "skew>1",
                                     0, OUTCOME_OK),
                          6);
        ck_assert_int_eq(matrix_outcome(&m), OUTCOME_OK);
        ck_assert(matrix_summary(&m, 1, &s));
        ck_assert_uint_eq(s.cell.n_replicas, 2);
        ck_assert_uint_eq(s.n_runs, 3);
        ck_assert_double_eq_tol(s.values[METRIC_P50].median, 4, 0.1);
        ck_assert_double_eq_tol(s.values[METRIC_P50].min, 2, 0.1);
        ck_assert_double_eq_tol(s.values[METRIC_P50].max, 6, 0.1);
        ck_assert_double_eq_tol(s.values[METRIC_MB_PER_S].median, 0.25, 1e-9);
        ck_assert_double_eq_tol(s.values[METRIC_MESSAGES_PER_S].max, 5, 1e-9);
        ck_assert(isnan(s.values[METRIC_SKEW].median));
        ck_assert(matrix_verdict(&m, 0, 0, &v) && !v.holds);
        ck_assert(matrix_verdict(&m, 0, 1, &v) && v.holds);
        ck_assert_uint_eq(v.cell.n_replicas, 2);
        ck_assert(matrix_verdict(&m, 1, 0, &v) && v.holds);
        ck_assert(isnan(v.value));
        matrix_uninit(&m);
    }
END_TEST

START_TEST(stops_at_a_failure)
    {
        struct matrix m;
        struct summary s;
        struct verdict v;

        ck_assert_uint_eq(run_matrix(&m,
                                     WRITE "--scheme mcast,chain --repeat 3 --fail-if chain:p50>0",
                                     4, OUTCOME_FAILED),
                          4);
        ck_assert_int_eq(matrix_outcome(&m), OUTCOME_FAILED);
        ck_assert_str_eq(m.error,
                         "run 4 of 6, scheme chain to 3, size 65536: replicas differ from the "
                         "source");
        ck_assert(matrix_summary(&m, 0, &s));
        ck_assert_uint_eq(s.n_runs, 2);
        ck_assert(matrix_summary(&m, 1, &s));
        ck_assert_uint_eq(s.n_runs, 1);
        ck_assert(!matrix_verdict(&m, 0, 0, &v));
        ck_assert(matrix_verdict(&m, 0, 1, &v));
        matrix_uninit(&m);

        ck_assert_uint_eq(run_matrix(&m, WRITE "--repeat 2", 1, OUTCOME_FAILED), 1);
        ck_assert(!matrix_summary(&m, 0, &s));
        matrix_uninit(&m);
    }
END_TEST

START_TEST(goes_on_after_a_loss)
    {
        struct matrix m;

        ck_assert_uint_eq(run_matrix(&m, WRITE "--repeat 3", 2, OUTCOME_PARTIAL), 3);
        ck_assert_int_eq(matrix_outcome(&m), OUTCOME_PARTIAL);
        ck_assert_str_eq(m.error, "");
        matrix_uninit(&m);
    }
END_TEST

START_TEST(checked_before_the_first)
    {
        struct matrix m;

        ck_assert_uint_eq(run_matrix(&m, "castbench write --group g --source nobody --receivers r1",
                                     0, OUTCOME_OK),
                          0);
        ck_assert_uint_eq(n_run, 0);
        ck_assert_str_eq(m.error, "nobody");
        ck_assert_int_eq(matrix_outcome(&m), OUTCOME_FAILED);
        matrix_uninit(&m);
    }
END_TEST

#define N(ROWS) (int) (sizeof(ROWS) / sizeof(ROWS)[0])

Suite *
bench_cli_suite(void)
{
    Suite *suite = suite_create("bench-cli");
    TCase *tc = tcase_create("core");

    tcase_add_test(tc, defaults);
    tcase_add_test(tc, values);
    tcase_add_test(tc, rdma_cm);
    tcase_add_test(tc, all_sizes);
    tcase_add_test(tc, order_of_runs);
    tcase_add_test(tc, all_schemes);
    tcase_add_loop_test(tc, refused, 0, N(lines));
    tcase_add_test(tc, events_of_sends);
    tcase_add_test(tc, too_many_events);
    tcase_add_test(tc, lives);
    tcase_add_test(tc, goodput);
    tcase_add_loop_test(tc, fail_if_understood, 0, N(conditions));
    tcase_add_loop_test(tc, fail_if_refused, 0, N(wrong_conditions));
    tcase_add_test(tc, fail_if_compares);
    tcase_add_test(tc, spreads);
    tcase_add_test(tc, retransmissions);
    tcase_add_test(tc, medians_of_repeats);
    tcase_add_test(tc, stops_at_a_failure);
    tcase_add_test(tc, goes_on_after_a_loss);
    tcase_add_test(tc, checked_before_the_first);
    suite_add_tcase(suite, tc);
    return suite;
}
