/* SPDX-License-Identifier: Apache-2.0
 *
 * castbench: measures and verifies multi-replica RDMA writes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/castbench/castctl.h"
#include "bench/castbench/interrupt.h"
#include "bench/castbench/options.h"
#include "bench/castbench/out-file.h"
#include "bench/castbench/perftest.h"
#include "bench/castbench/refuse.h"
#include "bench/castbench/remote.h"
#include "bench/castbench/report.h"
#include "lib/printable.h"

#define EXIT_USAGE   1
#define EXIT_RUN     2 /* a run failed or a replica is wrong. */
#define EXIT_FAIL_IF 3
#define EXIT_LOST    4 /* only replicas of receivers that are lost are wrong. */

/* Called at the end: a table that was cut off is no result. */
static void
check_stdout(void)
{
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "castbench: standard output: write error\n");
        _exit(EXIT_RUN);
    }
}

/* 'compare' and 'report' are a program of their own, beside this one. */
static int
exec_report(char *argv[])
{
    char path[PATH_MAX] = "castbench-report";
    int status = program_beside("castbench-report", path, sizeof path);

    if (!status) {
        argv[0] = path;
        execv(path, argv);
        status = errno;
    }
    fprintf(stderr, "castbench: %s: %s\n", path, strerror(status));
    return EXIT_RUN;
}

/* Copies the arguments.  The original goes into the report, and the copy is taken apart. */
static char **
copy_arguments(int argc, char *argv[])
{
    char **copy = calloc((size_t) argc + 1, sizeof *copy);
    bool ok = copy != NULL;

    for (int i = 0; ok && i < argc; i++) {
        copy[i] = strdup(argv[i]);
        ok = copy[i] != NULL;
    }
    if (!ok) {
        fprintf(stderr, "castbench: out of memory\n");
        exit(EXIT_RUN);
    }
    return copy;
}

static void
free_arguments(char **copy)
{
    for (char **p = copy; *p; p++) {
        free(*p);
    }
    free(copy);
}

struct reports {
    struct json_report *json; /* NULL if nobody wants it. */
    bool table;               /* the table is printed: standard output is free of files. */
};

static void
begin(void *aux, const struct plan *plan, unsigned i, const struct cell *cell)
{
    (void) aux;
    table_begin(plan, i, cell);
}

static void
end(void *aux, const struct plan *plan, unsigned i, const struct row *row,
    const struct run_options *o, const struct run_result *result)
{
    struct reports *reports = aux;

    table_end(o);
    if (reports->table) {
        table_run(plan, i, row, o, result);
    }
    if (reports->json) {
        json_report_run(reports->json, row, o, result);
    }
    if (row->outcome == OUTCOME_PARTIAL) {
        char text[sizeof((struct matrix *) NULL)->error];
        matrix_sentence(plan, i, row, text, sizeof text);
        printable_put(stderr, "castbench: ", "%s", text);
    }
}

static int
folder_check(const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) {
        return errno;
    }
    close(fd);
    return access(path, W_OK) ? errno : 0;
}

static bool
can_write(const char *option, const char *path, int check(const char *), char *error, size_t size)
{
    int why = path ? check(path) : 0;

    return !why || refuse(error, size, "%s %s: %s", option, path, strerror(why));
}

static bool
written(const char *path, int error)
{
    if (error) {
        printable_put(stderr, "castbench: ", "%s: %s", path, strerror(error));
    }
    return !error;
}

/* Prints which conditions hold. */
static bool
any_fail_if(const struct matrix *m)
{
    bool any = false;
    struct verdict v;

    for (unsigned i = 0; i < m->plan->n_fail_if; i++) {
        for (unsigned cell = 0; cell < plan_n_cells(m->plan); cell++) {
            if (matrix_verdict(m, i, cell, &v) && v.holds) {
                fprintf(stderr,
                        "castbench: --fail-if %s: scheme %s to %u, size %u: ", v.condition->text,
                        scheme_name(v.cell.scheme), v.cell.n_replicas, v.cell.size);
                if (isnan(v.value)) {
                    fprintf(stderr, "%s is not known\n", fail_if_metric(v.condition));
                } else {
                    fprintf(stderr, "%s is %.10g%s%s\n", fail_if_metric(v.condition), v.value,
                            fail_if_unit(v.condition)[0] ? " " : "", fail_if_unit(v.condition));
                }
                any = true;
            }
        }
    }
    return any;
}

/* Does it hold something, measured earlier or a file of something else? */
static bool
has_content(const char *path)
{
    struct stat st;

    return !out_file_is_stdout(path) && !stat(path, &st) && S_ISREG(st.st_mode) && st.st_size;
}

/* Says why nothing is run, in JSON too.  A wrong command line leaves a JSON file that holds
 * something as it was.  'plan' is NULL if there is none.  Returns the exit status. */
static int
end_refused(const struct plan *plan, int status, const char *json, const char *error, int argc,
            char *argv[])
{
    struct matrix m = {.plan = plan};

    printable_put(stderr, "castbench: ", "%s", error);
    snprintf(m.error, sizeof m.error, "%s", error);
    if (json && status == EXIT_USAGE && has_content(json)) {
        printable_put(stderr, "castbench: ", "%s stays as it was", json);
    } else if (json) {
        written(json, json_report_write(json_report_new(argc, argv), &m, json));
    }
    return status;
}

/* Is every file that is written a file of its own? */
static bool
files_differ(const struct plan *plan, char *error, size_t size)
{
    const struct {
        const char *option, *path;
    } files[] = {{"--json", plan->json}, {"--csv", plan->csv}, {"--file", plan->base.file}};

    for (unsigned i = 0; i < 3; i++) {
        for (unsigned j = i + 1; j < 3; j++) {
            if (files[i].path && files[j].path && out_file_is_same(files[i].path, files[j].path)) {
                return refuse(error, size, "%s %s and %s %s: one file", files[i].option,
                              files[i].path, files[j].option, files[j].path);
            }
        }
    }
    return true;
}

static int
run_plan(const struct plan *plan, int argc, char *argv[])
{
    struct reports reports = {
        .json = plan->json ? json_report_new(argc, argv) : NULL,
        .table = !(plan->json && out_file_is_stdout(plan->json))
                 && !(plan->csv && out_file_is_stdout(plan->csv)),
    };
    struct matrix matrix;

    if (!matrix_init(&matrix, plan)) {
        fprintf(stderr, "castbench: out of memory\n");
        return EXIT_RUN;
    }
    interrupt_catch();
    matrix_run(&matrix, &(struct matrix_observer){.aux = &reports, .begin = begin, .end = end});
    if (reports.table) {
        table_summary(&matrix);
        fflush(stdout);
    }
    if (matrix.error[0]) {
        printable_put(stderr, "castbench: ", "%s", matrix.error);
    }
    bool ok =
        !plan->json || written(plan->json, json_report_write(reports.json, &matrix, plan->json));
    ok = (!plan->csv || written(plan->csv, csv_write(&matrix, plan->csv))) && ok;
    bool bad_enough = any_fail_if(&matrix);
    enum outcome outcome = matrix_outcome(&matrix);
    matrix_uninit(&matrix);
    return !ok || outcome == OUTCOME_FAILED ? EXIT_RUN
           : outcome == OUTCOME_PARTIAL     ? EXIT_LOST
           : bad_enough                     ? EXIT_FAIL_IF
                                            : 0;
}

int
main(int argc, char *argv[])
{
    static struct plan plan;
    char error[512];
    int status;

    if (argc > 1 && (!strcmp(argv[1], "compare") || !strcmp(argv[1], "report"))) {
        return exec_report(argv);
    }
    atexit(check_stdout);
    if (argc > 1 && !strcmp(argv[1], "perftest")) {
        argv[1] = argv[0];
        return perftest_main(argc - 1, argv + 1);
    }
    if (argc > 1 && !strcmp(argv[1], "serve")) {
        argv[1] = argv[0];
        return serve_main(argc - 1, argv + 1);
    }
    char **arguments = copy_arguments(argc, argv);
    /* Checked first: nobody should wait for a run to hear that its results have no place. */
    if (!options_parse(&plan, argc, arguments, error, sizeof error)) {
        status = end_refused(NULL, EXIT_USAGE, plan.json, error, argc, argv);
    } else if (!files_differ(&plan, error, sizeof error)) {
        status = end_refused(&plan, EXIT_USAGE, plan.json, error, argc, argv);
    } else if (!can_write("--json", plan.json, out_file_check, error, sizeof error)) {
        status = end_refused(&plan, EXIT_RUN, NULL, error, argc, argv);
    } else if (!can_write("--csv", plan.csv, out_file_check, error, sizeof error)
               || !can_write("--out", plan.base.out, folder_check, error, sizeof error)) {
        status = end_refused(&plan, EXIT_RUN, plan.json, error, argc, argv);
    } else {
        plan.base.argc = argc;
        plan.base.argv = argv;
        status = run_plan(&plan, argc, argv);
    }
    free_arguments(arguments);
    return status;
}
