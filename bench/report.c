/* SPDX-License-Identifier: Apache-2.0
 *
 * The outcome of a run (see report.h).  The JSON has a version: a field may be
 * added, but none changes its meaning without a new one.
 */
#include "bench/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define JSON_VERSION 1

static const char *
scheme_name(enum write_scheme scheme)
{
    return scheme == SCHEME_UNICAST ? "unicast" : "replicate";
}

/* MB are 10^6 bytes, counted once however many replicas there are. */
static double
mb_per_s(const struct write_result *r)
{
    return r->seconds > 0 ? (double) r->bytes / 1e6 / r->seconds : 0;
}

static void
table_counted(const struct write_options *o, const struct write_result *r)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < o->n_counted; i++) {
        sum += r->tx_bytes[i];
    }
    if (o->n_counted == 1) {
        printf(" %s sent", o->counted[0]);
    } else {
        printf(" %u devices sent together", o->n_counted);
    }
    printf(" %" PRIu64 " bytes, %.3f of the %" PRIu64 " bytes written\n", sum,
           (double) sum / (double) r->bytes, r->bytes);
}

void
report_table(const struct write_options *o, const struct write_result *r,
             enum write_outcome outcome)
{
    if (!r->complete) {
        fprintf(stderr, "castbench: %s\n", r->error);
        return;
    }
    printf(" scheme     replicas    #bytes  #iterations  depth   mtu   seconds       MB/s\n");
    printf(" %-9s  %8u  %8" PRIu32 "  %11" PRIu64 "  %5u  %4" PRIu32 "  %8.3f  %9.2f\n",
           scheme_name(o->scheme), r->n_replicas, o->size, r->count, o->depth, r->mtu, r->seconds,
           mb_per_s(r));
    if (o->n_counted) {
        table_counted(o, r);
    }
    for (unsigned i = 0; i < r->n_replicas; i++) {
        const struct write_replica *replica = &r->replicas[i];

        if (replica->bytes_ok == r->region_len) {
            printf(" %s: all %zu bytes right\n", replica->host, r->region_len);
        } else {
            printf(" %s: %s%zu of %zu bytes right, first difference at offset %zu\n", replica->host,
                   write_find_lost(r, replica->host) ? "lost, " : "", replica->bytes_ok,
                   r->region_len, replica->first_bad);
        }
    }
    if (outcome != WRITE_OK) {
        fflush(stdout);
        fprintf(stderr, "castbench: replicas differ from the source%s\n",
                outcome == WRITE_PARTIAL ? ", only of receivers that are lost" : "");
    }
}

static void
json_string(FILE *f, const char *key, const char *value, const char *end)
{
    fprintf(f, "\"%s\": \"", key);
    for (const char *p = value; *p; p++) {
        unsigned char c = (unsigned char) *p;

        if (c == '"' || c == '\\') {
            fprintf(f, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(f, "\\u%04x", c);
        } else {
            fputc(c, f);
        }
    }
    fprintf(f, "\"%s", end);
}

static void
json_replicas(FILE *f, const struct write_result *r)
{
    fprintf(f, "  \"replicas\": [");
    for (unsigned i = 0; i < r->n_replicas; i++) {
        const struct write_replica *replica = &r->replicas[i];

        fprintf(f, "%s\n    {", i ? "," : "");
        json_string(f, "host", replica->host, ", ");
        fprintf(f, "\"bytes_ok\": %zu, \"first_bad\": ", replica->bytes_ok);
        if (!r->complete || replica->bytes_ok == r->region_len) {
            fprintf(f, "null}");
        } else {
            fprintf(f, "%zu}", replica->first_bad);
        }
    }
    fprintf(f, "\n  ]");
}

static void
json_lost(FILE *f, const struct write_result *r)
{
    fprintf(f, "  \"lost\": [");
    for (unsigned i = 0; i < r->n_lost; i++) {
        fprintf(f, "%s\n    {", i ? "," : "");
        json_string(f, "host", r->lost[i].host, ", ");
        json_string(f, "why", r->lost[i].why, ", ");
        fprintf(f, "\"after_ms\": %lu}", r->lost[i].after_ms);
    }
    fprintf(f, "%s],\n", r->n_lost ? "\n  " : "");
}

/* 'uplink' is the first device: older than the list. */
static void
json_counted(FILE *f, const struct write_options *o, const struct write_result *r)
{
    fprintf(f, "  \"uplink\": {");
    json_string(f, "device", o->counted[0], ", ");
    fprintf(f, "\"tx_bytes\": %" PRIu64 "},\n  \"counted\": [", r->tx_bytes[0]);
    for (unsigned i = 0; i < o->n_counted; i++) {
        fprintf(f, "%s\n    {", i ? "," : "");
        json_string(f, "device", o->counted[i], ", ");
        fprintf(f, "\"tx_bytes\": %" PRIu64 "}", r->tx_bytes[i]);
    }
    fprintf(f, "\n  ],\n");
}

int
report_json_check(const char *path)
{
    char folder[4096];
    int fd;

    if (!strcmp(path, "-")) {
        return 0;
    }
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno != ENOENT || !path[0]) {
        return errno;
    }
    snprintf(folder, sizeof folder, "%s", path);
    return access(dirname(folder), W_OK) ? errno : 0;
}

int
report_json(const struct write_options *o, const struct write_result *r, enum write_outcome outcome,
            const char *path)
{
    bool to_stdout = !strcmp(path, "-");
    FILE *f = to_stdout ? stdout : fopen(path, "we");

    if (!f) {
        return errno;
    }
    fprintf(f, "{\n  \"castbench\": %d,\n", JSON_VERSION);
    fprintf(f, "  \"test\": \"write\",\n");
    fprintf(f, "  \"ok\": %s,\n  ", outcome == WRITE_OK ? "true" : "false");
    if (!r->complete) {
        json_string(f, "error", r->error, ",\n  ");
    }
    json_string(f, "scheme", scheme_name(o->scheme), ",\n  ");
    if (o->scheme == SCHEME_REPLICATE) {
        json_string(f, "group", o->group, ",\n  ");
        fprintf(f, "\"epoch\": %" PRIu32 ",\n  ", r->epoch);
    }
    json_string(f, "source", o->source, ",\n");
    fprintf(f, "  \"size\": %" PRIu32 ",\n  \"count\": %" PRIu64 ",\n  \"depth\": %u,\n", o->size,
            r->count, o->depth);
    fprintf(f, "  \"mtu\": %" PRIu32 ",\n  \"bytes\": %" PRIu64 ",\n  \"region_len\": %zu,\n",
            r->mtu, r->bytes, r->region_len);
    fprintf(f, "  \"seconds\": %.6f,\n  \"mb_per_s\": %.3f,\n", r->seconds, mb_per_s(r));
    if (o->n_counted) {
        json_counted(f, o, r);
    }
    json_lost(f, r);
    json_replicas(f, r);
    fprintf(f, "\n}\n");

    bool bad = ferror(f) != 0;
    bad = (to_stdout ? fflush(f) : fclose(f)) != 0 || bad;
    return bad ? EIO : 0;
}
