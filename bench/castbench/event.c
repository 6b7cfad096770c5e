/* SPDX-License-Identifier: Apache-2.0
 *
 * Events of members (see event.h).
 */
#include "bench/castbench/event.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/refuse.h"
#include "bench/castbench/values.h"

#define MAX_SECONDS 86400

static const char *const kinds[N_EVENT_KINDS] = {
    [EVENT_JOIN] = "join",   [EVENT_KILL] = "kill",   [EVENT_START] = "start",
    [EVENT_LEAVE] = "leave", [EVENT_DRAIN] = "drain", [EVENT_REMOVE] = "remove",
};

WORDS_DEFINE(event_kind, enum event_kind, kinds);

bool
event_begins(enum event_kind kind)
{
    return kind == EVENT_JOIN || kind == EVENT_START;
}

bool
event_parse(struct event *e, const char *text, char *error, size_t size)
{
    const char *word;
    char name[16];
    double seconds;

    if (!value_decimal(text, 0, MAX_SECONDS, &seconds, &word) || *word != ':') {
        return refuse(error, size, "must be T:EVENT:HOST, with T from 0 to %d seconds",
                      MAX_SECONDS);
    }
    word++;
    size_t len = strcspn(word, ":");
    snprintf(name, sizeof name, "%.*s", (int) (len < sizeof name ? len : 0), word);
    if (!event_kind_parse(name, &e->kind)) {
        char *known = words_join(&event_kind_words, WORDS_ALL, ", ", " or ");

        refuse(error, size, "'%.*s' must be %s", (int) len, word, known);
        free(known);
        return false;
    }
    if (word[len] != ':' || !word[len + 1]) {
        return refuse(error, size, "the host is missing: it must be T:EVENT:HOST");
    }
    e->ms = (uint32_t) (seconds * 1000 + 0.5);
    e->host = word + len + 1;
    return true;
}

/* The last of a receiver's lives so far; NULL: it has none. */
static struct life *
last_life(struct life lives[], unsigned n, unsigned receiver)
{
    while (n--) {
        if (lives[n].receiver == receiver) {
            return &lives[n];
        }
    }
    return NULL;
}

/* Why the event cannot happen to a host that had this life, or none; NULL: it can. */
static const char *
problem(const struct event *e, const struct life *last, const struct event events[])
{
    bool is_there = last && last->end < 0;
    bool is_killed = last && last->end >= 0 && events[last->end].kind == EVENT_KILL;

    switch (e->kind) {
    case EVENT_JOIN:
        return is_there    ? "it is a member then"
               : is_killed ? "it was killed before: it can start"
                           : NULL;
    case EVENT_START: return is_killed ? NULL : "it was not killed before";
    case EVENT_KILL:
    case EVENT_LEAVE:
    case EVENT_DRAIN:
    case EVENT_REMOVE: return is_there ? NULL : "it is no member then";
    case N_EVENT_KINDS: break;
    }
    return "there is no such event";
}

/* Index of the first of the events that is about the host; 'n': none is. */
static unsigned
first_event(const struct event events[], unsigned n, const char *host)
{
    unsigned i = 0;

    while (i < n && strcmp(events[i].host, host) != 0) {
        i++;
    }
    return i;
}

unsigned
lives_of(const char *const receivers[], unsigned n_receivers, const struct event events[],
         unsigned n_events, struct life lives[MAX_LIVES], char *error, size_t size)
{
    unsigned n = 0;

    for (unsigned i = 0; i < n_receivers; i++) {
        unsigned k = first_event(events, n_events, receivers[i]);

        if (k == n_events || events[k].kind != EVENT_JOIN) {
            lives[n++] = (struct life){.receiver = i, .begin = -1, .end = -1};
        }
    }
    if (!n) {
        refuse(error, size, ": no receiver would take part from the begin");
        return 0;
    }
    for (unsigned k = 0; k < n_events; k++) {
        const struct event *e = &events[k];
        unsigned i = 0;

        while (i < n_receivers && strcmp(receivers[i], e->host) != 0) {
            i++;
        }
        struct life *last = last_life(lives, n, i);
        const char *why = i == n_receivers ? "it is none of --receivers" : problem(e, last, events);
        if (why) {
            refuse(error, size, " %g:%s:%s: %s", e->ms / 1e3, event_kind_name(e->kind), e->host,
                   why);
            return 0;
        }
        if (event_begins(e->kind)) {
            lives[n++] = (struct life){.receiver = i, .begin = (int) k, .end = -1};
        } else {
            last->end = (int) k;
        }
    }
    return n;
}
