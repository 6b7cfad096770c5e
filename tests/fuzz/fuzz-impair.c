/* SPDX-License-Identifier: Apache-2.0
 *
 * Bad links: parameters as text, and the machine that such parameters make.
 * The input is a line of text, then pairs of bytes: time that passes, and a frame
 * that comes or a look at what has left.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/impair.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

#define POOL 48

/* Reads the text; what is written of it must be read as the same. */
static bool
parse(const char *text, struct impair_params *params)
{
    char canonical[IMPAIR_TEXT_SIZE], again[IMPAIR_TEXT_SIZE];
    struct impair_params same;
    char *error = NULL;

    if (!impair_parse(text, params, &error)) {
        REQUIRE(error && *error);
        free(error);
        return false;
    }
    REQUIRE(!error);
    impair_format(params, canonical);
    REQUIRE(strlen(canonical) < sizeof canonical);
    REQUIRE(impair_parse(canonical, &same, &error));
    REQUIRE(impair_is_none(params) == impair_is_none(&same));
    REQUIRE(!canonical[0] || impair_same(params, &same));
    impair_format(&same, again);
    REQUIRE(!strcmp(canonical, again));
    return true;
}

struct run {
    struct impair *im;
    const struct impair_params *params;
    struct packet_pool *pool;
    uint64_t now;
    uint64_t last; /* number of the last frame that came out in order. */
    uint64_t n_in, n_out;
};

static void
check_counts(const struct run *run)
{
    struct impair_stats s;

    impair_get_stats(run->im, &s);
    REQUIRE(s.n_frames == run->n_in);
    /* A frame of which only the second copy found no packet counts as no_buffer, too. */
    uint64_t gone = s.n_queue_full + s.n_lost;
    REQUIRE(gone + s.n_no_buffer <= s.n_frames + s.n_duplicated);
    REQUIRE(run->n_out + impair_n_held(run->im) <= s.n_frames - gone + s.n_duplicated);
    REQUIRE(run->n_out + impair_n_held(run->im) + s.n_no_buffer
            >= s.n_frames - gone + s.n_duplicated);
    REQUIRE(packet_pool_n_free(run->pool) + impair_n_held(run->im) == POOL);
    REQUIRE((impair_n_held(run->im) == 0) == (impair_deadline(run->im) == UINT64_MAX));
}

static void
input(struct run *run, size_t len)
{
    uint8_t bytes[512] = {0};

    len += sizeof run->n_in;
    memcpy(bytes, &run->n_in, sizeof run->n_in);
    struct packet *p = packet_from_bytes(run->pool, bytes, len);
    if (p) {
        impair_input(run->im, run->pool, p, run->now);
        packet_put(p);
        run->n_in++;
    }
}

/* Nothing leaves before it came, and, unless some are late, in order. */
static void
output(struct run *run)
{
    struct packet *p;

    while ((p = impair_output(run->im, run->now))) {
        uint64_t number;

        REQUIRE(p->len >= sizeof number);
        memcpy(&number, p->data, sizeof number); /* in front of what may be corrupted. */
        REQUIRE(number < run->n_in);
        REQUIRE(run->params->reorder || number >= run->last);
        run->last = number;
        run->n_out++;
        packet_put(p);
    }
    REQUIRE(impair_deadline(run->im) > run->now);
}

static void
run_machine(const struct impair_params *params, struct fuzz_input *in)
{
    struct run run = {.params = params, .pool = packet_pool_create(POOL)};

    run.im = impair_create(params, fuzz_byte(in));
    while (in->n) {
        uint8_t time = fuzz_byte(in), what = fuzz_byte(in);

        run.now += time & 0x80 ? UINT64_C(1) << (time & 31) : time;
        if (what & 1) {
            input(&run, what);
        } else {
            output(&run);
        }
        check_counts(&run);
    }
    run.now = UINT64_MAX - 1;
    output(&run);
    check_counts(&run);
    REQUIRE(!impair_n_held(run.im));
    input(&run, 1);
    impair_destroy(run.im);
    REQUIRE(packet_pool_n_free(run.pool) == POOL);
    packet_pool_destroy(run.pool);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *newline = size ? memchr(data, '\n', size) : NULL;
    size_t text_len = newline ? (size_t) (newline - data) : size;
    struct fuzz_input line = {data, text_len};
    struct fuzz_input rest = {data + text_len, size - text_len};
    char *text = fuzz_text(&line);
    struct impair_params params;

    if (parse(text, &params)) {
        fuzz_byte(&rest); /* the newline. */
        run_machine(&params, &rest);
    }
    free(text);
    return 0;
}
