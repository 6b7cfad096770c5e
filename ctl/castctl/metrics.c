/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl metrics: what castd, the registry and agents have counted, for programs that collect it.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/process/metrics.h"
#include "ctl/process/openmetrics.h"
#include "ctl/registry/summary.h"
#include "openvswitch/shash.h"
#include "util.h"

static bool
is_wanted(const struct ctl *ctl, const struct rrec_node *node)
{
    for (int i = 0; i < ctl->argc; i++) {
        if (!strcmp(ctl->argv[i], node->name)) {
            return true;
        }
    }
    return !ctl->argc;
}

/* What the daemons say, and without arguments the registry: null is who does not answer. */
static struct json *
collect(struct ctl *ctl, bool *partial)
{
    struct json *all = json_object_create();
    struct json *nodes = json_object_create();
    const struct rrec_node *node;

    if (!ctl->argc) {
        struct json *castd = ctl_castd_ask(ctl, METRICS_COMMAND);

        *partial |= !castd;
        json_object_put(all, "castd", castd ? castd : json_null_create());
        json_object_put(all, "registry", registry_summary(ctl->idl));
    }
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (is_wanted(ctl, node)) {
            struct json *answer = ctl_agent_ask(ctl, node, METRICS_COMMAND);

            *partial |= !answer;
            json_object_put(nodes, node->name, answer ? answer : json_null_create());
        }
    }
    json_object_put(all, "nodes", nodes);
    return all;
}

/* Nodes in the order of their names, so that one scrape is like the next. */
static char *
to_text(const struct json *all)
{
    struct openmetrics *m = metrics_create();
    const struct shash *nodes = json_object(ctl_get(all, "nodes"));
    const struct shash_node **sorted = shash_sort(nodes);
    const struct json *castd = ctl_get(all, "castd"), *registry = ctl_get(all, "registry");

    if (castd && castd->type == JSON_OBJECT) {
        metrics_add_castd(m, castd);
    }
    if (registry) {
        metrics_add_registry(m, registry);
    }
    for (size_t i = 0; i < shash_count(nodes); i++) {
        const struct json *answer = sorted[i]->data;

        if (answer->type == JSON_OBJECT) {
            metrics_add_node(m, sorted[i]->name, answer);
        }
    }
    free(sorted);
    return openmetrics_finish(m);
}

static void
metrics(struct ctl *ctl)
{
    bool partial = false;

    for (int i = 0; i < ctl->argc; i++) {
        ctl_require_node(ctl, ctl->argv[i]);
    }
    struct json *all = collect(ctl, &partial);
    if (ctl->json) {
        ctl_print(ctl, all, NULL);
    } else {
        char *text = to_text(all);

        fputs(text, stdout);
        free(text);
        json_destroy(all);
    }
    ctl_finish(partial);
}

const struct ctl_command ctl_metrics_commands[] = {
    {"metrics", "[NODE...]", 0, INT_MAX, CTL_INTENT, 0, NULL, metrics,
     "what castd, the registry and all agents, or those of some nodes, have counted, in the format "
     "of OpenMetrics"},
    {.name = NULL},
};
