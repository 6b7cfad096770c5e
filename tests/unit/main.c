/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs all unit tests; libcheck's CK_RUN_SUITE and CK_FORK work as usual.  To
 * be started in the repository's root, since tests read tests/vectors.
 *
 * With --suites each suite has a process, and its tests none: a process, and the memory that each of them asks for
 * anew, cost many times what most tests do.
 */
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"

static const struct {
    const char *name;
    Suite *(*create)(void);
} suites[] = {
#define SUITE(NAME) {#NAME, NAME##_suite},
    SUITES(SUITE)
#undef SUITE
};
#define N_SUITES (sizeof suites / sizeof suites[0])

struct count {
    int n_run, n_failed;
};

static int
run_all(void)
{
    SRunner *runner = srunner_create(NULL);

    for (size_t i = 0; i < N_SUITES; i++) {
        srunner_add_suite(runner, suites[i].create());
    }
    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* In a process of its own. */
static void
run_suite(size_t i, struct count *count)
{
    /* Memory is not given back between tests. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    SRunner *runner = srunner_create(suites[i].create());

    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    *count = (struct count){srunner_ntests_run(runner), srunner_ntests_failed(runner)};
    srunner_free(runner);
    exit(EXIT_SUCCESS);
}

/* What libcheck has to say of each test, of all suites one after the other. */
static void
append_tap(FILE *to, const char *from)
{
    char line[4096];
    FILE *f = fopen(from, "r");

    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, "1..", 3) != 0) {
            fputs(line, to);
        }
    }
    if (f) {
        fclose(f);
        unlink(from);
    }
}

/* A process that does not end well is one test that has failed. */
static int
run_suites(void)
{
    struct count *count =
        mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const char *tap_name = getenv("CK_TAP_LOG_FILE_NAME");
    FILE *tap = fopen(tap_name ? tap_name : "/dev/null", "w");
    struct count sum = {0, 0};
    char part[4096];

    if (count == MAP_FAILED || !tap) {
        perror(tap ? "mmap" : tap_name);
        return EXIT_FAILURE;
    }
    if (tap_name) {
        snprintf(part, sizeof part, "%s.part", tap_name);
        setenv("CK_TAP_LOG_FILE_NAME", part, 1);
    }
    for (size_t i = 0; i < N_SUITES; i++) {
        int status;

        *count = (struct count){0, 0};
        fflush(NULL);
        pid_t pid = fork();
        if (!pid) {
            run_suite(i, count);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0) {
            perror("fork");
            return EXIT_FAILURE;
        }
        if (status) {
            printf("FAIL suite %s: %s %d\n", suites[i].name,
                   WIFSIGNALED(status) ? "signal" : "exit status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            count->n_failed++;
            count->n_run++;
        }
        if (tap_name) {
            append_tap(tap, part);
        }
        sum.n_run += count->n_run;
        sum.n_failed += count->n_failed;
    }
    fclose(tap);
    munmap(count, sizeof *count);
    printf("%d passed, %d failed\n", sum.n_run - sum.n_failed, sum.n_failed);
    return sum.n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int
main(int argc, char **argv)
{
    bool each = argc == 2 && !strcmp(argv[1], "--suites");

    if (argc > 1 && !each) {
        fprintf(stderr, "usage: %s [--suites]\n", argv[0]);
        return EXIT_FAILURE;
    }
    /* Against a test that hangs; how fast the machine is must not matter. */
    setenv("CK_DEFAULT_TIMEOUT", "900", 0);
    return each ? run_suites() : run_all();
}
