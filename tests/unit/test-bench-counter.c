/* SPDX-License-Identifier: Apache-2.0
 *
 * What castbench counts: lines of /proc, and a lab's processes.
 */
#include "bench/castbench/counter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/castbench/proc.h"
#include "tests/unit/suites.h"

/* As Linux 6.12 writes them. */
static const struct {
    const char *line;
    struct proc_device device;
    bool valid;
} devices[] = {
    {"    sa: 1392 12 1 2 3 4 5 6 13512 14 7 8 9 10 11 12\n", {"sa", 13512, 14}, true},
    {"fig1-r1.very-lo:18446744073709551615 1 0 0 0 0 0 0 18446744073709551615 2 0 0 0 0 0 0\n",
     {"fig1-r1.very-lo", UINT64_MAX, 2},
     true},
    {"  eth0: 1392 12 0 0 0 0 0 0 13512\n", {"", 0, 0}, false},
    {"Inter-|   Receive                                                |  Transmit\n",
     {"", 0, 0},
     false},
    {" face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n",
     {"", 0, 0},
     false},
    {"", {"", 0, 0}, false},
};

START_TEST(device_lines)
    {
        struct proc_device d;

        ck_assert_int_eq(proc_parse_device(devices[_i].line, &d), devices[_i].valid);
        if (devices[_i].valid) {
            ck_assert_str_eq(d.name, devices[_i].device.name);
            ck_assert_uint_eq(d.tx_bytes, devices[_i].device.tx_bytes);
            ck_assert_uint_eq(d.tx_packets, devices[_i].device.tx_packets);
        }
    }
END_TEST

static const struct {
    const char *line;
    struct proc_process process;
    bool valid;
} processes[] = {
    {"12937 (swedge) S 1 12937 12937 0 -1 1077936192 2297 0 7 0 70 30 5 6 20 0 1 0 5817 4079616 "
     "1021 18446744073709551615\n",
     {100, 5817},
     true},
    {"7 (a) R 9 (b) S 1 7 7 0 -1 64 0 0 0 0 1 2 3 4 20 0 1 0 99 0 0\n", {3, 99}, true},
    {"12937 (swedge) S 1 12937 12937 0 -1 1077936192 2297 0 7 0 70 30 5 6 20 0 1 0\n",
     {0, 0},
     false},
    {"12937 swedge S 1\n", {0, 0}, false},
    {"", {0, 0}, false},
};

START_TEST(process_lines)
    {
        struct proc_process p;

        ck_assert_int_eq(proc_parse_process(processes[_i].line, &p), processes[_i].valid);
        if (processes[_i].valid) {
            ck_assert_uint_eq(p.ticks, processes[_i].process.ticks);
            ck_assert_uint_eq(p.started, processes[_i].process.started);
        }
    }
END_TEST

/* user nice system idle iowait irq softirq steal guest guest_nice: idle, waiting, stolen and what
 * is in 'user' already do not count. */
START_TEST(busy_line)
    {
        uint64_t ticks;

        ck_assert(proc_parse_busy("cpu  1 20 300 4000 50000 600000 7000000 8 9 10\n", &ticks));
        ck_assert_uint_eq(ticks, 7600321);
        ck_assert(!proc_parse_busy("cpu0 1 20 300 4000 50000 600000 7000000 8 9 10\n", &ticks));
        ck_assert(!proc_parse_busy("cpu  1 20 300\n", &ticks));
        ck_assert(!proc_parse_busy("", &ticks));
    }
END_TEST

/* A lab's folder, with pid files as a test wants them. */
static char folder[64];

static void
pid_file(const char *name, long pid)
{
    char path[128];

    snprintf(path, sizeof path, "%s/lab/x/%s.pid", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fprintf(f, "%ld\n", pid);
    fclose(f);
}

static void
make_lab(void)
{
    char path[128];

    strcpy(folder, "/tmp/rocecast-unit.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "mkdir -p %s/lab/x", folder);
    ck_assert_int_eq(system(path), 0);
    setenv("ROCECAST_RUNDIR", folder, 1);
}

static void
remove_lab(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static const struct counter_options of_lab = {.lab = "x"};
static struct machine_count before, after;
static char error[256];

static void
check_error(bool ok, const char *wanted)
{
    ck_assert(!ok);
    ck_assert_str_eq(error, wanted);
}

/* An Open vSwitch counts with its switch, whose devices are those of its castfwd's node. */
START_TEST(lab_processes)
    {
        check_error(machine_count_read(&of_lab, &before, error, sizeof error),
                    "--lab x: none of its forwarders runs");
        pid_file("castd", getpid());
        pid_file("ovsdb-server", getpid());
        pid_file("n4.ovsdb", getpid());
        check_error(machine_count_read(&of_lab, &before, error, sizeof error),
                    "--lab x: none of its forwarders runs");

        pid_file("n4.vswitchd", getpid());
        ck_assert(machine_count_read(&of_lab, &before, error, sizeof error));
        ck_assert(before.has_fabric);
        ck_assert_uint_eq(before.n_forwarders, 1);
        ck_assert_str_eq(before.forwarders[0].name, "n4.vswitchd");
        ck_assert(machine_count_read(&of_lab, &after, error, sizeof error));
        ck_assert(machine_count_since(&after, &before, error, sizeof error));
        ck_assert(after.fabric_seconds >= 0 && after.busy_seconds >= 0);

        pid_file("n4.vswitchd", getppid());
        ck_assert(machine_count_read(&of_lab, &after, error, sizeof error));
        check_error(machine_count_since(&after, &before, error, sizeof error),
                    "forwarder n4.vswitchd: was started anew during the run");
        pid_file("n4.vswitchd", 0x7fffffff);
        check_error(machine_count_read(&of_lab, &after, error, sizeof error),
                    "forwarder n4.vswitchd: does not run (castlab status)");
    }
END_TEST

START_TEST(what_is_not_there)
    {
        const char *const names[] = {"lo", "no-such-device"};
        const char *const there[] = {"no-such-namespace:lo"};
        struct counter_options o = {.devices = names, .n_devices = 1};

        ck_assert(machine_count_read(&o, &before, error, sizeof error));
        ck_assert_uint_eq(before.n_devices, 1);
        ck_assert_str_eq(before.devices[0].where, "lo");
        ck_assert(!before.has_fabric);
        o.n_devices = 2;
        check_error(machine_count_read(&o, &before, error, sizeof error),
                    "--count-bytes no-such-device: no such namespace or device");
        o = (struct counter_options){.devices = there, .n_devices = 1};
        check_error(machine_count_read(&o, &before, error, sizeof error),
                    "--count-bytes no-such-namespace:lo: no such namespace or device");
        o = (struct counter_options){.lab = "no-such-lab"};
        check_error(machine_count_read(&o, &before, error, sizeof error),
                    "--lab no-such-lab: no such lab");
    }
END_TEST

static struct machine_count
one_device(const char *where, uint64_t bytes, uint64_t packets)
{
    struct machine_count m = {.n_devices = 1, .devices[0] = {"", bytes, packets}};

    strcpy(m.devices[0].where, where);
    return m;
}

/* A device that came meanwhile counts as a whole. */
START_TEST(devices_since)
    {
        before = one_device("x-sa:n1", 1000, 10);
        after = one_device("x-new:n1", 50, 1);
        after.devices[after.n_devices++] = one_device("x-sa:n1", 5000, 50).devices[0];
        ck_assert(machine_count_since(&after, &before, error, sizeof error));
        ck_assert_uint_eq(after.devices[0].tx_bytes, 50);
        ck_assert_uint_eq(after.devices[1].tx_bytes, 4000);
        ck_assert_uint_eq(after.devices[1].tx_packets, 40);

        after = one_device("x-sa:n1", 1000, 9);
        check_error(machine_count_since(&after, &before, error, sizeof error),
                    "device x-sa:n1: was made anew during the run");
        after = one_device("x-sa:n2", 1000, 10);
        check_error(machine_count_since(&after, &before, error, sizeof error),
                    "device x-sa:n1: went away during the run");
    }
END_TEST

/* Without an RDMA device there is CPU time only. */
START_TEST(host_counts)
    {
        struct host_count a = {
            .cpu_seconds = 3, .has_rdma = true, .repeated = 9, .retries = 8, .rnr_naks = 7};
        struct host_count b = {
            .cpu_seconds = 1, .has_rdma = true, .repeated = 1, .retries = 2, .rnr_naks = 3};

        host_count_since(&a, &b);
        ck_assert(a.has_rdma && a.repeated == 8 && a.retries == 6 && a.rnr_naks == 4);
        host_count_read("no-such-device", &b);
        ck_assert(!b.has_rdma && b.cpu_seconds > 0);
        host_count_since(&a, &b);
        ck_assert(!a.has_rdma && a.repeated == 0);
    }
END_TEST

Suite *
bench_counter_suite(void)
{
    Suite *suite = suite_create("bench_counter");
    TCase *lines = tcase_create("lines");
    TCase *counts = tcase_create("counts");
    TCase *lab = tcase_create("lab");

    tcase_add_loop_test(lines, device_lines, 0, sizeof devices / sizeof devices[0]);
    tcase_add_loop_test(lines, process_lines, 0, sizeof processes / sizeof processes[0]);
    tcase_add_test(lines, busy_line);
    suite_add_tcase(suite, lines);
    tcase_add_test(counts, what_is_not_there);
    tcase_add_test(counts, devices_since);
    tcase_add_test(counts, host_counts);
    suite_add_tcase(suite, counts);
    tcase_add_checked_fixture(lab, make_lab, remove_lab);
    tcase_add_test(lab, lab_processes);
    suite_add_tcase(suite, lab);
    return suite;
}
