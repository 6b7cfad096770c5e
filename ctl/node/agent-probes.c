/* SPDX-License-Identifier: Apache-2.0
 *
 * What an agent says in the registry of its node's probes.
 *
 * Each probe has two entries: how it is, and what is to be written.  The second one becomes the first
 * at most once a second, so that a way that flaps keeps nobody busy.  Level-triggered, as the rest of
 * the agent's reports: each transaction writes the difference between that and what the rows say.
 *
 * A probe that is another one than the row with its number, because the node has not been configured
 * yet, says nothing.
 */
#include <config.h>

#include "ctl/node/agent-probes.h"

#include "ctl/registry/rocecast-idl.h"
#include "hash.h"
#include "lib/node.h"
#include "util.h"

#define REPORT_MSEC 1000

struct entry {
    uint32_t name; /* a hash of the probe's kind and name; 0: there is none. */
    enum path_state state;
    bool heard;
    uint64_t raw_since; /* on the node's scale; */
    int64_t since;      /* since 1970, in milliseconds. */
};

struct agent_probes {
    struct entry now[PROBE_NUMBER_MAX + 1], said[PROBE_NUMBER_MAX + 1]; /* by number. */
    bool is_there[PROBE_NUMBER_MAX + 1];
    long long int said_at;
};

struct agent_probes *
agent_probes_create(void)
{
    return xzalloc(sizeof(struct agent_probes));
}

void
agent_probes_destroy(struct agent_probes *ap)
{
    free(ap);
}

void
agent_probes_clear(struct agent_probes *ap)
{
    memset(ap->is_there, 0, sizeof ap->is_there);
}

static uint32_t
hash_name(const char *kind, const char *name)
{
    uint32_t hash = hash_string(name, hash_string(kind, 0));

    return hash ? hash : 1;
}

void
agent_probes_add(struct agent_probes *ap, const struct probe_info *info, uint64_t now,
                 int64_t posix_msec)
{
    const struct probe_config *c = info->config;
    struct entry *e = &ap->now[c->number];
    uint32_t name = hash_name(probe_kind_name(c->kind), c->name);
    bool same =
        e->name == name && e->state == info->health.state && e->raw_since == info->health.since;

    ap->is_there[c->number] = true;
    e->heard = info->heard;
    if (!same) { /* otherwise the time would be another one with each look. */
        e->name = name;
        e->state = info->health.state;
        e->raw_since = info->health.since;
        e->since = posix_msec - (int64_t) ((now - info->health.since) / 1000);
    }
}

bool
agent_probes_news(struct agent_probes *ap, long long int now_msec)
{
    for (size_t i = 0; i < ARRAY_SIZE(ap->now); i++) {
        if (!ap->is_there[i]) {
            ap->now[i] = (struct entry){.name = 0};
        }
    }
    if ((ap->said_at && now_msec - ap->said_at < REPORT_MSEC)
        || !memcmp(ap->said, ap->now, sizeof ap->said)) {
        return false;
    }
    memcpy(ap->said, ap->now, sizeof ap->said);
    ap->said_at = now_msec;
    return true;
}

void
agent_probes_report(const struct agent_probes *ap, const struct rrec_node *node)
{
    for (size_t i = 0; i < node->n_probes; i++) {
        const struct rrec_probe *row = node->probes[i];
        const struct entry *e =
            row->number > 0 && row->number <= PROBE_NUMBER_MAX ? &ap->said[row->number] : NULL;
        const char *state = e ? path_state_name(e->state) : NULL;

        if (!e || e->name != hash_name(row->kind, row->name)) {
            continue;
        }
        if (!row->state || strcmp(row->state, state)) {
            rrec_probe_set_state(row, state);
        }
        if (row->since != e->since) {
            rrec_probe_set_since(row, e->since);
        }
        if (row->heard != e->heard) {
            rrec_probe_set_heard(row, e->heard);
        }
    }
}
