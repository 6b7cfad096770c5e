/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers as people read them.
 */
#include "lib/figure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/quantity.h"

enum kind { HEX, BYTES, LIVENESS, QP_TIMEOUT, RATE, USEC, PERIOD };

static const struct figure {
    const char *key;
    enum kind kind;
    const char *label; /* NULL: the key. */
} figures[] = {
    {"qpn", HEX, NULL},
    {"designated_qpn", HEX, NULL},
    {"source_qpn", HEX, NULL},
    {"rkey", HEX, NULL},
    {"designated_rkey", HEX, NULL},
    {"region_va", HEX, NULL},
    {"refused_syndrome", HEX, NULL},
    {"mtu", BYTES, NULL},
    {"len", BYTES, NULL},
    {"region_len", BYTES, NULL},
    {"liveness_ms", LIVENESS, "liveness"},
    {"qp_timeout", QP_TIMEOUT, NULL},
    {"line_rate", RATE, NULL},
    {"floor", RATE, NULL},
    {"floor_needed", RATE, NULL},
    {"interval_us", USEC, "interval"},
    {"interval_ms", PERIOD, "interval"},
    {"timeout_ms", PERIOD, "timeout"},
    {"rtt_us", USEC, "rtt"},
    {"cnp_window_us", USEC, "cnp_window"},
};

static const struct figure *
find(const char *key)
{
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (!strcmp(figures[i].key, key)) {
            return &figures[i];
        }
    }
    return NULL;
}

/* Three digits, in the unit in which there are one to three before the point. */
static void
format_nsec(uint64_t nsec, char text[FIGURE_SIZE])
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = (double) nsec;
    int unit = 0;

    while (value >= 999.5 && unit < 3) {
        value /= 1000;
        unit++;
    }
    snprintf(text, FIGURE_SIZE, value >= 999.5 ? "%.0f %s" : "%.3g %s", value, units[unit]);
}

void
figure_format_msec(uint64_t msec, char text[FIGURE_SIZE])
{
    format_nsec(msec * 1000000, text);
}

void
figure_format(const char *key, int64_t value, char text[FIGURE_SIZE])
{
    const struct figure *figure = find(key);
    char time[FIGURE_SIZE], rate[QUANTITY_SIZE];

    if (!figure || value < 0) {
        snprintf(text, FIGURE_SIZE, "%" PRId64, value);
        return;
    }
    switch (figure->kind) {
    case HEX: snprintf(text, FIGURE_SIZE, "0x%" PRIx64, value); break;
    case BYTES: snprintf(text, FIGURE_SIZE, "%" PRId64 " bytes", value); break;
    case RATE:
        quantity_format(QUANTITY_RATE, (uint64_t) value, rate, sizeof rate);
        snprintf(text, FIGURE_SIZE, "%.20s bit/s", rate);
        break;
    case USEC: format_nsec((uint64_t) value * 1000, text); break;
    case LIVENESS:
        if (value) {
            figure_format_msec((uint64_t) value, text);
        } else {
            snprintf(text, FIGURE_SIZE, "never");
        }
        break;
    case PERIOD:
        if (value) {
            figure_format_msec((uint64_t) value, text);
        } else {
            snprintf(text, FIGURE_SIZE, "off");
        }
        break;
    case QP_TIMEOUT:
        /* 4.096 us * 2^value; the field has 5 bits, and 0 is for ever. */
        format_nsec(4096ull << (value & 31), time);
        snprintf(text, FIGURE_SIZE, value ? "%" PRId64 " (%.20s)" : "%" PRId64 " (never)", value,
                 time);
        break;
    }
}

const char *
figure_label(const char *key)
{
    const struct figure *figure = find(key);

    return figure && figure->label ? figure->label : key;
}
