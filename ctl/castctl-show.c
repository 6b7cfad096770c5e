/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl tree and stats: the registry's intent beside what the agents' control
 * sockets say.  An agent that cannot be reached leaves its part blank, and the
 * command ends with CTL_PARTIAL.
 */
#include <config.h>

#include "ctl/castctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "jsonrpc.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

/*
 * Agents.
 */

/* How long one agent may take, so that a stopped one leaves time for the others. */
#define AGENT_MSEC 2000

/* Sends 'command' with -j and waits for what is answered: 0 with the reply, or an errno value. */
static int
transact(struct jsonrpc *client, const char *command, long long int deadline,
         struct jsonrpc_msg **replyp)
{
    struct json *params = json_array_create_1(json_string_create("-j"));
    int error = jsonrpc_send(client, jsonrpc_create_request(command, params, NULL));

    while (!error && (error = jsonrpc_recv(client, replyp)) == EAGAIN) {
        if (time_msec() >= deadline) {
            return ETIMEDOUT;
        }
        error = 0;
        jsonrpc_run(client);
        jsonrpc_wait(client);
        jsonrpc_recv_wait(client);
        poll_timer_wait_until(deadline);
        poll_block();
    }
    return error;
}

/* The JSON in a reply; NULL: it is an error or something else. */
static struct json *
parse_reply(const struct jsonrpc_msg *reply)
{
    struct json *json = reply->type == JSONRPC_REPLY && reply->result->type == JSON_STRING
                            ? json_from_string(json_string(reply->result))
                            : NULL;

    if (json && json->type == JSON_STRING) { /* what json_from_string() says of bad JSON. */
        json_destroy(json);
        json = NULL;
    }
    return json;
}

/* Runs 'command' with -j at a node's agent.  NULL, after a line on standard error, if there is none
 * or it does not answer with JSON in time. */
static struct json *
ask_agent(const struct ctl *ctl, const struct rrec_node *node, const char *command)
{
    struct jsonrpc_msg *reply = NULL;
    struct jsonrpc *client = NULL;
    struct json *json;
    int error;

    if (!node->control[0]) {
        fprintf(stderr, "%s: node %s: no agent has connected yet\n", program_name, node->name);
        return NULL;
    }
    error = unixctl_client_create(node->control, &client);
    if (!error) {
        error = transact(client, command, MIN(time_msec() + AGENT_MSEC, ctl->deadline), &reply);
    }
    json = error ? NULL : parse_reply(reply);
    if (!json) {
        fprintf(stderr, "%s: node %s: %s: %s\n", program_name, node->name, node->control,
                error ? ovs_retval_to_string(error) : "answered no JSON");
    }
    jsonrpc_msg_destroy(reply);
    jsonrpc_close(client);
    return json;
}

/* The agent's state of one group epoch out of its answer to rocecast/groups; NULL: it has none. */
static const struct json *
find_live_group(const struct json *groups, const struct rrec_tree_node *tree)
{
    for (size_t i = 0; groups && groups->type == JSON_ARRAY && i < groups->array.n; i++) {
        const struct json *o = groups->array.elems[i];
        const struct json *qpn, *proxy;

        if (o->type != JSON_OBJECT) {
            continue;
        }
        qpn = shash_find_data(json_object(o), "designated_qpn");
        proxy = shash_find_data(json_object(o), "proxy");
        if (qpn && qpn->type == JSON_INTEGER && qpn->integer == tree->designated_qpn && proxy
            && proxy->type == JSON_STRING && !strcmp(json_string(proxy), tree->proxy)) {
            return o;
        }
    }
    return NULL;
}

/* The live state of one branch; NULL: none. */
static const struct json *
find_live_branch(const struct json *group, int64_t id)
{
    const struct json *branches = group ? shash_find_data(json_object(group), "branches") : NULL;

    for (size_t i = 0; branches && branches->type == JSON_ARRAY && i < branches->array.n; i++) {
        const struct json *o = branches->array.elems[i];
        const struct json *value =
            o->type == JSON_OBJECT ? shash_find_data(json_object(o), "id") : NULL;

        if (value && value->type == JSON_INTEGER && value->integer == id) {
            return o;
        }
    }
    return NULL;
}

/*
 * tree show.
 */

static struct json *
branches_to_json(struct rrec_branch *const *rows, size_t n, const struct json *live)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < n; i++) {
        const struct json *state = find_live_branch(live, rows[i]->id);
        struct json *o = json_object_create();

        ctl_put_int(o, "id", rows[i]->id);
        json_object_put_string(o, "name", rows[i]->name);
        json_object_put_string(o, "address", rows[i]->address);
        json_object_put_string(o, "kind", rows[i]->kind);
        ctl_put_int(o, "qpn", rows[i]->qpn);
        json_object_put(o, "live", state ? json_deep_clone(state) : json_null_create());
        json_array_add(array, o);
    }
    ctl_sort_by(array, "name");
    return array;
}

static struct json *
tree_node_to_json(const struct ctl *ctl, const struct rrec_node *node,
                  const struct rrec_tree_node *tree, bool *partial)
{
    struct json *groups = ask_agent(ctl, node, "rocecast/groups");
    const struct json *live = find_live_group(groups, tree);
    bool agent = !strcmp(node->role, "agent");
    struct json *o = json_object_create();

    json_object_put_string(o, "node", node->name);
    json_object_put_string(o, "role", node->role);
    json_object_put(o, "root", json_boolean_create(tree->root));
    json_object_put(o, "open", json_boolean_create(tree->open));
    ctl_put_int(o, "wanted", tree->generation);
    ctl_put_int(o, "applied", node->nb_cfg);
    json_object_put(o, "reachable", json_boolean_create(groups != NULL));
    json_object_put(o, "live", live ? json_deep_clone(live) : json_null_create());
    json_object_put(o, "branches",
                    agent ? branches_to_json(tree->copies, tree->n_copies, live)
                          : branches_to_json(tree->branches, tree->n_branches, live));
    *partial |= !groups;
    json_destroy(groups);
    return o;
}

static struct json *
tree_to_json(const struct ctl *ctl, const struct rrec_group *group, bool *partial)
{
    const struct rrec_source *source = ctl_find_source(ctl, group);
    struct json *o = json_object_create();
    struct json *nodes = json_array_create_empty();
    const struct rrec_node *node;

    json_object_put_string(o, "group", group->name);
    ctl_put_int(o, "epoch", group->epoch);
    json_object_put_string(o, "proxy", group->proxy);
    ctl_put_int(o, "designated_qpn", group->designated_qpn);
    json_object_put_string(o, "state", group->state);
    json_object_put_string(o, "status", group->status);
    json_object_put(o, "source", source ? json_string_create(source->host) : json_null_create());
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        for (size_t i = 0; i < node->n_trees; i++) {
            if (node->trees[i]->epoch == group->epoch
                && !strcmp(node->trees[i]->proxy, group->proxy)) {
                json_array_add(nodes, tree_node_to_json(ctl, node, node->trees[i], partial));
            }
        }
    }
    ctl_sort_by(nodes, "node");
    json_object_put(o, "nodes", nodes);
    return o;
}

static const char *
string_of(const struct json *object, const char *key)
{
    const struct json *value =
        object->type == JSON_OBJECT ? shash_find_data(json_object(object), key) : NULL;

    return value && value->type == JSON_STRING ? json_string(value) : "";
}

static long long int
int_of(const struct json *object, const char *key)
{
    const struct json *value =
        object->type == JSON_OBJECT ? shash_find_data(json_object(object), key) : NULL;

    return value && value->type == JSON_INTEGER ? value->integer : 0;
}

static bool
is_true(const struct json *object, const char *key)
{
    const struct json *value = shash_find_data(json_object(object), key);

    return value && value->type == JSON_TRUE;
}

/* One line about a node, with its part in the flow of PSNs if its agent was reached. */
static void
draw_node(const struct json *node, int indent)
{
    const struct json *live = shash_find_data(json_object(node), "live");
    bool agent = !strcmp(string_of(node, "role"), "agent");

    printf("%*s`- %s  %s  generation %lld, applied %lld", indent, "", string_of(node, "node"),
           agent ? is_true(node, "open") ? "source agent, open" : "source agent, closed"
           : is_true(node, "root") ? "root, edge"
                                   : "edge",
           int_of(node, "wanted"), int_of(node, "applied"));
    if (!is_true(node, "reachable")) {
        printf("  (not reachable)");
    } else if (live->type == JSON_OBJECT) {
        printf("  sent %lld, confirmed %lld", int_of(live, "h"), int_of(live, "m"));
    }
    putchar('\n');
}

static void
draw_branches(const struct json *node, int indent)
{
    const struct json *branches = shash_find_data(json_object(node), "branches");

    for (size_t i = 0; i < branches->array.n; i++) {
        const struct json *b = branches->array.elems[i];
        const struct json *live = shash_find_data(json_object(b), "live");

        printf("%*s%c- %s  %s  QPN %lld", indent, "", i + 1 < branches->array.n ? '|' : '`',
               string_of(b, "name"), string_of(b, "address"), int_of(b, "qpn"));
        if (live->type == JSON_OBJECT) {
            printf("  una %lld  cond %s", int_of(live, "una"), string_of(live, "cond"));
        }
        putchar('\n');
    }
}

/* Source, source agents, then edges with their receivers. */
static void
draw_tree(const struct json *tree)
{
    const struct json *nodes = shash_find_data(json_object(tree), "nodes");
    const char *source = string_of(tree, "source");
    int indent = 0;

    printf("group %s  epoch %lld  Proxy %s  Designated QPN 0x%llx  %s%s%s\n",
           string_of(tree, "group"), int_of(tree, "epoch"), string_of(tree, "proxy"),
           int_of(tree, "designated_qpn"), string_of(tree, "state"),
           string_of(tree, "status")[0] ? ": " : "", string_of(tree, "status"));
    printf("%s\n", source[0] ? source : "(no source)");
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < nodes->array.n; i++) {
            const struct json *node = nodes->array.elems[i];
            bool agent = !strcmp(string_of(node, "role"), "agent");

            if (agent == (pass == 0)) {
                draw_node(node, indent);
                if (!agent) {
                    draw_branches(node, indent + 3);
                }
            }
        }
        indent += 3;
    }
}

static void
finish(bool partial)
{
    if (partial) {
        fflush(stdout);
        exit(CTL_PARTIAL);
    }
}

static void
tree_show(struct ctl *ctl)
{
    static const char *const keys[] = {NULL};
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    bool partial = false;
    struct json *tree = tree_to_json(ctl, group, &partial);

    if (ctl->json) {
        ctl_print(ctl, tree, keys);
    } else {
        draw_tree(tree);
        json_destroy(tree);
    }
    finish(partial);
}

/*
 * stats.
 */

/* Adds node's counters to 'all', or notes that they are missing. */
static void
add_stats(const struct ctl *ctl, const struct rrec_node *node, struct json *all, bool *partial)
{
    struct json *counters = ask_agent(ctl, node, "rocecast/counters");

    *partial |= !counters;
    json_object_put(all, node->name, counters ? counters : json_null_create());
}

static bool
has_tree_of(const struct rrec_node *node, const struct rrec_group *group)
{
    for (size_t i = 0; i < node->n_trees; i++) {
        if (!strcmp(node->trees[i]->proxy, group->proxy)) {
            return true;
        }
    }
    return false;
}

/* Nested objects as indented lines; counters that are zero are left out. */
static void
print_counters(const struct json *object, int indent)
{
    const struct shash_node **nodes = shash_sort(json_object(object));

    for (size_t i = 0; i < shash_count(json_object(object)); i++) {
        const struct json *value = nodes[i]->data;

        if (value->type == JSON_OBJECT) {
            printf("%*s%s\n", indent, "", nodes[i]->name);
            print_counters(value, indent + 2);
        } else if (value->type == JSON_NULL) {
            printf("%*s%s (not reachable)\n", indent, "", nodes[i]->name);
        } else if (value->type != JSON_INTEGER || value->integer) {
            char *s = json_to_string(value, 0);

            printf("%*s%-16s %s\n", indent, "", nodes[i]->name, s);
            free(s);
        }
    }
    free(nodes);
}

static void
stats(struct ctl *ctl)
{
    static const char *const keys[] = {NULL};
    const struct rrec_node *one = ctl->argc ? ctl_find_node(ctl, ctl->argv[0]) : NULL;
    const struct rrec_group *group = ctl->argc && !one ? ctl_find_group(ctl, ctl->argv[0]) : NULL;
    struct json *all = json_object_create();
    const struct rrec_node *node;
    bool partial = false;

    if (ctl->argc && !one && !group) {
        ctl_fail(CTL_REFUSED, "stats: no node or group named '%s'", ctl->argv[0]);
    }
    RREC_NODE_FOR_EACH (node, ctl->idl) {
        if (one ? node == one : !group || has_tree_of(node, group)) {
            add_stats(ctl, node, all, &partial);
        }
    }
    if (ctl->json) {
        ctl_print(ctl, all, keys);
    } else {
        print_counters(all, 0);
        json_destroy(all);
    }
    finish(partial);
}

const struct ctl_command ctl_show_commands[] = {
    {"tree show", "GROUP", 1, 1, 0, 0, NULL, tree_show,
     "draw a group's tree with each branch's live state"},
    {"stats", "[NODE|GROUP]", 0, 1, 0, 0, NULL, stats,
     "counters of all nodes, of one, or of those in a group's tree"},
    {.name = NULL},
};
