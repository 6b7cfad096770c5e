/* SPDX-License-Identifier: Apache-2.0
 *
 * CSV of runs (see report.h): RFC 4180, with a header.  An unknown value is empty.
 */
#include "bench/castbench/report.h"

#include <inttypes.h>
#include <math.h>

#include "bench/castbench/out-file.h"

/* Writes a field, with quotes if it needs them. */
static void
put_text(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++) {
        if (*s == '"') {
            fputc('"', f);
        }
        fputc(*s, f);
    }
    fputc('"', f);
}

int
csv_write(const struct matrix *m, const char *path)
{
    const struct run_options *base = &m->plan->base;
    struct out_file file;
    int error = out_file_open(&file, path);
    FILE *f = file.stream;

    if (error) {
        return error;
    }
    fputs("test,scheme,replicas,size,repeat,started_ms,ok,count,depth,qps", f);
    for (unsigned i = 0; i < N_METRICS; i++) {
        fprintf(f, ",%s", metric_name((enum metric) i));
    }
    fputs(",error\r\n", f);
    for (unsigned i = 0; i < m->n_rows; i++) {
        const struct row *row = &m->rows[i];

        fprintf(f, "%s,%s,%u,%" PRIu32 ",%u,%lu,%d,%" PRIu64 ",%u,%u", operation_name(base->op),
                scheme_name(row->cell.scheme), row->cell.n_replicas, row->cell.size,
                row->cell.repeat, row->started_ms, row->outcome == OUTCOME_OK, row->count,
                base->depth, base->qps);
        for (unsigned metric = 0; metric < N_METRICS; metric++) {
            fputc(',', f);
            if (isfinite(row->values[metric])) {
                fprintf(f, "%.12g", row->values[metric]);
            }
        }
        fputc(',', f);
        if (row->error[0]) {
            put_text(f, row->error);
        }
        fputs("\r\n", f);
    }
    return out_file_close(&file);
}
