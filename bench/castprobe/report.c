/* SPDX-License-Identifier: Apache-2.0
 *
 * What is printed and written of a run (see report.h).
 */
#include "bench/castprobe/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/castprobe/probe.h"
#include "lib/printable.h"
#include "version.h"

#define REPORT_VERSION 1

static const char *const verdicts[] = {
    [VERDICT_AS_EXPECTED] = "as expected",
    [VERDICT_CANNOT_TELL] = "cannot tell",
    [VERDICT_DIFFERS] = "differs",
};

static void __attribute__((noreturn)) report_fail(const char *path, const char *why)
{
    fprintf(stderr, "castprobe: %s: %s\n", path, why);
    exit(2);
}

static const char *
text_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

void
report_head(FILE *out, json_t *hello)
{
    printable_put(out, "", "%s (%s, firmware %s) of %s, Linux %s %s", text_of(hello, "name"),
                  text_of(hello, "driver"), text_of(hello, "firmware"), text_of(hello, "address"),
                  text_of(hello, "kernel"), text_of(hello, "machine"));
    fflush(out);
}

void
report_row(FILE *out, const struct result *r)
{
    fprintf(out, "P%-3u %-11s  %s\n", r->id, verdicts[r->verdict], checks[r->id - 1].statement);
    printable_put(out, "                  ", "%s", r->observed);
    if (r->verdict != VERDICT_AS_EXPECTED) {
        printable_put(out, "        expected: ", "%s", r->expected);
        fprintf(out, "       relied on: %s\n", checks[r->id - 1].relied_on);
    }
    fflush(out);
}

static unsigned
count(const struct result *results, unsigned n, enum verdict verdict)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n; i++) {
        found += results[i].verdict == verdict;
    }
    return found;
}

enum verdict
report_end(FILE *out, const struct result *results, unsigned n)
{
    unsigned differ = count(results, n, VERDICT_DIFFERS);
    unsigned unknown = count(results, n, VERDICT_CANNOT_TELL);

    fprintf(out, "%u as expected, %u differ, %u cannot be told\n", n - differ - unknown, differ,
            unknown);
    return differ ? VERDICT_DIFFERS : unknown ? VERDICT_CANNOT_TELL : VERDICT_AS_EXPECTED;
}

FILE *
report_open(const char *path)
{
    FILE *f = strcmp(path, "-") != 0 ? fopen(path, "we") : stdout;

    if (!f) {
        report_fail(path, strerror(errno));
    }
    return f;
}

void
report_json(FILE *f, const char *path, json_t *hello, const struct probe *p,
            const struct result *results, unsigned n)
{
    char date[32];
    time_t now = time(NULL);
    struct tm tm;
    json_t *list = json_array();

    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    for (unsigned i = 0; i < n; i++) {
        const struct result *r = &results[i];
        const struct check *c = &checks[r->id - 1];
        char id[16];

        snprintf(id, sizeof id, "P%u", r->id);
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", id,
                                              "statement", c->statement, "relied_on", c->relied_on,
                                              "expected", r->expected, "observed", r->observed,
                                              "verdict", verdicts[r->verdict]));
    }
    json_t *report = json_pack("{s:i, s:s, s:s, s:O, s:i, s:i, s:o, s:i, s:i, s:i}", "castprobe",
                               REPORT_VERSION, "rocecast", ROCECAST_VERSION, "date", date, "device",
                               hello, "mtu", (int) p->mtu, "quiet_ms", (int) p->quiet_ms, "checks",
                               list, "as_expected", (int) count(results, n, VERDICT_AS_EXPECTED),
                               "differ", (int) count(results, n, VERDICT_DIFFERS), "cannot_tell",
                               (int) count(results, n, VERDICT_CANNOT_TELL));
    bool failed = !report || json_dumpf(report, f, JSON_INDENT(1)) || fputc('\n', f) == EOF;
    failed |= f == stdout ? fflush(f) : fclose(f);
    if (failed) {
        report_fail(path, errno ? strerror(errno) : "cannot be written");
    }
    json_decref(report);
}

json_t *
report_load(const char *path)
{
    FILE *f = fopen(path, "re");
    json_error_t error;

    if (!f) {
        report_fail(path, strerror(errno));
    }
    json_t *report = json_loadf(f, 0, &error);
    fclose(f);
    if (!report) {
        report_fail(path, "is not JSON");
    }
    if (json_integer_value(json_object_get(report, "castprobe")) != REPORT_VERSION) {
        report_fail(path, "is no report of this version of castprobe");
    }
    return report;
}

const char *
report_expected(json_t *report, unsigned id)
{
    json_t *list = json_object_get(report, "checks");
    char name[16];

    snprintf(name, sizeof name, "P%u", id);
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *c = json_array_get(list, i);

        if (!strcmp(text_of(c, "id"), name)) {
            return text_of(c, "observed");
        }
    }
    return "nothing";
}
