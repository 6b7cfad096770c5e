/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs all unit tests; libcheck's CK_RUN_SUITE and CK_FORK work as usual.  To
 * be started in the repository's root, since tests read tests/vectors.
 *
 * With --suites each suite has a process, and its tests none: with AddressSanitizer a process costs a
 * hundred times what most tests do.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suites.h"

static Suite *(*const suites[])(void) = {
#define SUITE(NAME) NAME##_suite,
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
        srunner_add_suite(runner, suites[i]());
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
    SRunner *runner = srunner_create(suites[i]());

    srunner_set_fork_status(runner, CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    *count = (struct count){srunner_ntests_run(runner), srunner_ntests_failed(runner)};
    srunner_free(runner);
    exit(EXIT_SUCCESS);
}

/* A process that does not end well is one test that has failed. */
static int
run_suites(void)
{
    struct count *count =
        mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct count sum = {0, 0};

    if (count == MAP_FAILED) {
        perror("mmap");
        return EXIT_FAILURE;
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
            printf("FAIL suite %zu: %s %d\n", i, WIFSIGNALED(status) ? "signal" : "exit status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            count->n_failed++;
            count->n_run++;
        }
        sum.n_run += count->n_run;
        sum.n_failed += count->n_failed;
    }
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
