/* SPDX-License-Identifier: Apache-2.0
 *
 * An agent's side of the registry: following the node's row, and the transactions.
 *
 * Theory of operation: a configuration is read when the generation of the row (Node.cfg) is another
 * one than that which was handed out last.  Of what the row refers to only that is read which has
 * changed since (read_changes()); the rest is taken over from the configuration before.  One that
 * makes no sense is reported, and what has changed stays so for the next one.
 *
 * What the agent says is kept by parts: of the node here, of trees in agent-trees.c, of connections
 * and probes in files of their own.  All of it is level-triggered: what is to be written is the
 * difference between what the agent reported and what the rows say, so that a lost transaction or a
 * registry that came back empty needs no handling of its own.  A refused one is tried again after a
 * while.  At most one transaction is in flight, and all parts write in the same one.
 */
#include <config.h>

#include "ctl/node/agent-registry.h"

#include <stdlib.h>

#include "ctl/node/agent-check.h"
#include "ctl/node/agent-connections.h"
#include "ctl/node/agent-monitor.h"
#include "ctl/node/agent-probes.h"
#include "ctl/node/agent-trees.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/reach.h"
#include "ctl/registry/retry.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "lib/data-auth.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(agent_registry);

static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(6, 3);

/* The server looks at each answer for each agent, and keeps what it has not told some of them yet: when all
 * answer at the same moment that is much of the time, and most of the memory (docs/scale.md). */
#define ANSWER_NSEC_PER_AGENT 2500

struct agent_registry {
    struct ovsdb_idl *idl;
    struct registry_reach reach;
    struct ovsdb_idl_txn *txn;
    char *node_name;
    unsigned int roles; /* a bit for each that the row may have. */
    char *control;
    unsigned int seqno;  /* of the IDL, when last looked at. */
    bool report;         /* there may be something to write, besides trees, */
    long long answer_at; /* from this time on. */
    bool was_connected;
    struct registry_retry retry;

    /* What was handed out last.  A Node row that was deleted and made again starts over. */
    struct uuid row_uuid;
    int64_t generation; /* 0: nothing. */
    bool of_row;        /* what was handed out is that row's. */
    bool has_read;      /* anything was, since the agent was started. */
    /* What has changed since then, besides trees; 'lists' is which trees are the node's. */
    bool lists_unread, ports_unread, sids_unread, routes_unread;

    /* What the agent reported. */
    int64_t applied; /* 0: nothing. */
    char *state;
    struct agent_trees *trees;
    struct agent_connections *connections;
    struct agent_probes *probes;
};

static const struct rrec_node *
own_row(const struct agent_registry *ar)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, ar->idl) {
        if (!strcmp(row->name, ar->node_name)) {
            return row;
        }
    }
    return NULL;
}

/* What keeps the agent from following its row; NULL: nothing. */
static const char *
obstacle(const struct agent_registry *ar)
{
    return !ovsdb_idl_is_connected(ar->idl)        ? "registry not connected"
           : !registry_reach_is_served(&ar->reach) ? "registry connected, no answer yet"
           : ovsdb_idl_is_lock_contended(ar->idl)  ? "another agent has the node"
           : !ovsdb_idl_has_lock(ar->idl)          ? "registry connected, no answer yet"
           : !own_row(ar)                          ? "the registry has no such node"
                                                   : NULL;
}

static void
status_cb(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[] OVS_UNUSED, void *ar_)
{
    const struct agent_registry *ar = ar_;
    const char *why = obstacle(ar);
    char *refusal = why ? NULL : registry_retry_text(&ar->retry);
    char *applied = xasprintf("generation %" PRId64 " is applied", ar->applied);
    const char *state = why                                       ? why
                        : ar->state[0] && strcmp(ar->state, "ok") ? ar->state
                        : ar->applied                             ? applied
                                                                  : "nothing is applied yet";
    char *reply = xasprintf("%s%s%s", state, refusal ? "; " : "", refusal ? refusal : "");

    unixctl_command_reply(conn, reply);
    free(reply);
    free(applied);
    free(refusal);
}

struct agent_registry *
agent_registry_create(const char *db, const char *node_name, unsigned int roles,
                      const char *control)
{
    struct agent_registry *ar = xzalloc(sizeof *ar);

    ar->idl = ovsdb_idl_create(db, &rrec_idl_class, false, true);
    agent_monitor(ar->idl, node_name);
    ar->connections = agent_connections_create(ar->idl, node_name);
    ar->probes = agent_probes_create();
    ar->trees = agent_trees_create();
    /* Two agents of one node would take each other's reports for changes, without end.  A lock is
     * that of one server: of a cluster's servers all agents go to the same one, the leader. */
    char *lock = xasprintf("rocecast_node_%s", node_name);
    ovsdb_idl_set_lock(ar->idl, lock);
    free(lock);
    registry_reach_init(&ar->reach, ar->idl, db);
    ar->node_name = xstrdup(node_name);
    ar->roles = roles;
    ar->control = xstrdup(control);
    ar->state = xstrdup("");
    unixctl_command_register("rocecast/status", "", 0, 0, status_cb, ar);
    return ar;
}

void
agent_registry_destroy(struct agent_registry *ar)
{
    if (ar) {
        if (ar->txn) {
            ovsdb_idl_txn_destroy(ar->txn);
        }
        registry_reach_uninit(&ar->reach);
        ovsdb_idl_destroy(ar->idl);
        free(ar->node_name);
        free(ar->control);
        free(ar->state);
        agent_trees_destroy(ar->trees);
        agent_connections_destroy(ar->connections);
        agent_probes_destroy(ar->probes);
        registry_retry_uninit(&ar->retry);
        free(ar);
    }
}

/* From what time on is there something to write?  LLONG_MAX: there may be nothing. */
static long long
news_at(const struct agent_registry *ar)
{
    long long since = agent_trees_has_news(ar->trees) ? 0 : ar->report ? ar->answer_at : LLONG_MAX;

    return ar->retry.why ? MAX(since, ar->retry.next) : since;
}

/* Is the configuration, since an earlier generation that had so many trees, about trees? */
static bool
is_about_trees(const struct node_config *cfg, uint64_t earlier, size_t n_earlier)
{
    for (size_t i = 0; i < cfg->n_trees; i++) {
        if (cfg->trees[i].generation > earlier) {
            return true;
        }
    }
    return cfg->n_trees != n_earlier;
}

/* What is not about the node's trees is news for all agents, or most: they answer one by one. */
static long long
any_moment(const struct rrec_node *row)
{
    uint64_t n_agents = row->n_next_hops + 1;
    uint64_t msec = MIN(n_agents * n_agents * ANSWER_NSEC_PER_AGENT / 1000000, 60000);

    return time_msec() + random_range((int) msec + 1);
}

/* Writes what the row does not say yet. */
static void
report(struct agent_registry *ar, const struct rrec_node *row)
{
    bool same_row = uuid_equals(&row->header_.uuid, &ar->row_uuid);
    struct ovsdb_idl_txn *txn = ovsdb_idl_txn_create(ar->idl);

    if (strcmp(row->control, ar->control)) {
        rrec_node_set_control(row, ar->control);
    }
    if (same_row && ar->state[0] && strcmp(row->state, ar->state)) {
        rrec_node_set_state(row, ar->state);
    }
    if (same_row && ar->applied && row->nb_cfg != ar->applied) {
        rrec_node_set_nb_cfg(row, ar->applied);
    }
    if (same_row && ar->applied && !row->finds_rows) {
        rrec_node_set_finds_rows(row, true);
    }
    agent_trees_report(ar->trees, ar->idl);
    agent_connections_report(ar->connections, txn);
    agent_probes_report(ar->probes, row);
    ar->report = false;
    ar->txn = txn;
}

static void
run_txn(struct agent_registry *ar)
{
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(ar->txn);

    if (status == TXN_INCOMPLETE) {
        return;
    }
    bool again = status == TXN_TRY_AGAIN || status == TXN_NOT_LOCKED || status == TXN_ERROR;
    agent_trees_reported(ar->trees, !again);
    ar->report |= again;
    if (status == TXN_ERROR) {
        registry_retry_refused(&ar->retry, ovsdb_idl_txn_get_error(ar->txn), time_msec(),
                               random_uint32());
    } else if (!again) {
        registry_retry_taken(&ar->retry);
    }
    ovsdb_idl_txn_destroy(ar->txn);
    ar->txn = NULL;
}

/* What is to be authenticated with an instance has none before castd has answered what is drawn
 * here. */
static void
check_life(struct agent_registry *ar, const struct node_config *cfg, struct tree_config *tree)
{
    struct auth_config *auth = &tree->auth;

    if (!(auth->tlvs & AUTH_DATA) && (!auth->key || tree_config_is_source(tree, &cfg->address))) {
        return;
    }
    uint64_t life = agent_trees_life(ar->trees, tree->row);
    auth->instance = data_instance(life, auth->life, auth->instance);
    auth->response_instance = data_instance(life, auth->life, auth->response_instance);
}

/* Why this agent cannot follow this row at all, malloc'd; NULL: it can. */
static char *
row_problem(const struct agent_registry *ar, const struct rrec_node *row)
{
    char *problem = registry_schema_problem(ar->idl, AGENT_TABLES);
    enum node_role role;

    if (problem) {
        char *sentence = xasprintf("the registry: %s", problem);

        free(problem);
        return sentence;
    }
    if (node_role_parse(row->role, &role) && ar->roles & 1u << role) {
        return NULL;
    }
    char *roles = words_join(&node_role_words, ar->roles, ", ", " or ");
    problem = xasprintf("the node has role %s, %s is for role %s", row->role, program_name, roles);
    free(roles);
    return problem;
}

/* All rows of the node's trees, '*n' in an array that the caller frees. */
static const struct rrec_tree_node **
all_trees(const struct agent_registry *ar, const struct rrec_node *node, size_t *n)
{
    const struct rrec_tree_node **trees = NULL, *tree;
    size_t allocated = 0;

    *n = 0;
    RREC_TREE_NODE_FOR_EACH (tree, ar->idl) {
        if (intent_is_tree_of(tree, node)) {
            if (*n == allocated) {
                trees = x2nrealloc(trees, &allocated, sizeof *trees);
            }
            trees[(*n)++] = tree;
        }
    }
    return trees;
}

static const struct rrec_location **
all_locations(const struct agent_registry *ar, size_t *n)
{
    const struct rrec_location **locations = NULL, *location;
    size_t allocated = 0;

    *n = 0;
    RREC_LOCATION_FOR_EACH (location, ar->idl) {
        if (*n == allocated) {
            locations = x2nrealloc(locations, &allocated, sizeof *locations);
        }
        locations[(*n)++] = location;
    }
    return locations;
}

static int
compare_rows(const void *a, const void *b)
{
    const struct rrec_tree_node *const *one = a, *const *other = b;

    return uuid_compare_3way(&(*one)->header_.uuid, &(*other)->header_.uuid);
}

/* What there is to read of the node's configuration: all of it, or what has changed.  In one order, so that
 * of several rows that make no sense the same one is named.  The caller frees it with free_rows(). */
static struct intent_rows
own_rows(const struct agent_registry *ar, const struct rrec_node *node, bool all)
{
    struct intent_rows rows = {.node = node};

    const struct rrec_tree_node **trees =
        all ? all_trees(ar, node, &rows.n_trees)
            : agent_trees_changed(ar->trees, ar->idl, node, &rows.n_trees);
    if (rows.n_trees) {
        qsort(trees, rows.n_trees, sizeof *trees, compare_rows);
    }
    rows.trees = trees;
    if (all || ar->routes_unread) {
        rows.locations = all_locations(ar, &rows.n_locations);
    }
    return rows;
}

static void
free_rows(struct intent_rows *rows)
{
    free(CONST_CAST(const struct rrec_tree_node **, rows->trees));
    free(CONST_CAST(const struct rrec_location **, rows->locations));
}

/* Is the configuration of the node as it was but for what was seen to change?  Trees, SIDs and routes refer to
 * ports, and some of a tree follows from what the node is.  Which trees a node lists that do not name it yet
 * is not looked at one by one. */
static bool
may_read_changes(const struct agent_registry *ar, const struct rrec_node *row,
                 const struct node_config *cfg)
{
    return ar->of_row && !ar->ports_unread && !ar->lists_unread && row->named_trees
           && cfg->id == row->id && !strcmp(node_role_name(cfg->role), row->role);
}

/* Reads what has changed since 'cfg', or all of it. */
static bool
read_config(const struct agent_registry *ar, const struct rrec_node *row, struct node_config *cfg,
            char **errp)
{
    const struct intent_before before = {
        .config = cfg,
        .sids = !ar->sids_unread,
        .routes = !ar->routes_unread,
        .tree = agent_trees_was_read,
        .aux = ar->trees,
    };
    bool all = !may_read_changes(ar, row, cfg);
    struct node_config new;
    struct intent_rows rows = own_rows(ar, row, all);
    if (all) {
        agent_trees_read_all(ar->trees, &rows);
    }
    bool good = intent_read_changes(&rows, all ? NULL : &before, &new, errp);
    free_rows(&rows);
    if (!good) {
        return false;
    }
    node_config_uninit(cfg);
    *cfg = new;
    return true;
}

/* What of a configuration is not in the rows. */
static void
complete_config(struct agent_registry *ar, struct node_config *cfg)
{
    for (size_t i = 0; i < cfg->n_trees; i++) {
        cfg->trees[i].restarted = !ar->has_read;
        check_life(ar, cfg, &cfg->trees[i]);
    }
}

/* For tests: 'cfg', or 'error' if it could not be read, is what all rows say. */
static void
check_config(struct agent_registry *ar, const struct rrec_node *row, const struct node_config *cfg,
             const char *error)
{
    struct node_config whole;
    struct intent_rows rows = own_rows(ar, row, true);
    char *whole_error;
    bool good = intent_read(&rows, &whole, &whole_error);

    free_rows(&rows);
    if (!good) {
        if (!error || strcmp(error, whole_error)) {
            VLOG_FATAL("read as changes: %s; as a whole: %s", error ? error : "good", whole_error);
        }
        free(whole_error);
        return;
    }
    if (error) {
        VLOG_FATAL("read as changes: %s; as a whole: good", error);
    }
    complete_config(ar, &whole);
    char *difference = agent_check_difference(cfg, &whole);
    if (difference) {
        VLOG_FATAL("read as changes: another %s than as a whole", difference);
    }
    node_config_uninit(&whole);
}

/* Reads a generation that was not handed out yet.  False: there is none, or it makes no sense. */
static bool
read_row(struct agent_registry *ar, const struct rrec_node *row, struct node_config *cfg)
{
    bool same_row = uuid_equals(&row->header_.uuid, &ar->row_uuid);
    uint64_t earlier = cfg->generation;
    size_t n_earlier = cfg->n_trees;
    char *error = row->cfg ? row_problem(ar, row) : NULL;

    if (!row->cfg || (!error && same_row && row->cfg == ar->generation)) {
        return false;
    }
    if (!same_row) {
        ar->row_uuid = row->header_.uuid;
        ar->applied = 0;
        ar->of_row = false;
    }
    /* A problem with the row may begin and end without another generation. */
    ar->generation = error ? 0 : row->cfg;
    bool can_read = !error;
    if (!can_read || !read_config(ar, row, cfg, &error)) {
        if (can_read && agent_check_is_wanted()) {
            check_config(ar, row, NULL, error);
        }
        VLOG_ERR_RL(&rl, "node %s: generation %" PRId64 " is invalid and not applied: %s",
                    ar->node_name, row->cfg, error);
        agent_registry_refused(ar, (uint64_t) row->cfg, error);
        free(error);
        return false;
    }
    agent_trees_keep(ar->trees, cfg);
    complete_config(ar, cfg);
    if (agent_check_is_wanted()) {
        check_config(ar, row, cfg, NULL);
    }
    ar->answer_at = is_about_trees(cfg, earlier, n_earlier) ? 0 : any_moment(row);
    ar->lists_unread = ar->ports_unread = ar->sids_unread = ar->routes_unread = false;
    ar->of_row = ar->has_read = true;
    return true;
}

/* Notes what has changed in the registry; 'row' is the node's. */
static void
read_changes(struct agent_registry *ar, const struct rrec_node *row)
{
    agent_trees_read(ar->trees, ar->idl, ar->node_name);
    ar->lists_unread |= rrec_node_is_updated(row, RREC_NODE_COL_TREES)
                        || rrec_node_is_updated(row, RREC_NODE_COL_NAMED_TREES);
    ar->ports_unread |= rrec_port_track_get_first(ar->idl) || rrec_probe_track_get_first(ar->idl)
                        || rrec_node_is_updated(row, RREC_NODE_COL_PORTS)
                        || rrec_node_is_updated(row, RREC_NODE_COL_PROBES);
    ar->sids_unread |=
        rrec_sid_track_get_first(ar->idl) || rrec_node_is_updated(row, RREC_NODE_COL_SIDS);
    ar->routes_unread |= rrec_route_track_get_first(ar->idl)
                         || rrec_location_track_get_first(ar->idl)
                         || rrec_node_is_updated(row, RREC_NODE_COL_ROUTES)
                         || rrec_node_is_updated(row, RREC_NODE_COL_NEXT_HOPS);
    ovsdb_idl_track_clear(ar->idl);
}

static void
log_connection(struct agent_registry *ar)
{
    bool connected = registry_reach_is_served(&ar->reach);

    if (ar->was_connected != connected) {
        ar->was_connected = connected;
        VLOG_INFO("registry %s", connected ? "connected" : "connection lost, trying again");
    }
}

bool
agent_registry_run(struct agent_registry *ar, struct node_config *cfg)
{
    const struct rrec_node *row;
    bool fresh = false;

    registry_reach_run(&ar->reach);
    log_connection(ar);
    if (ar->txn) {
        run_txn(ar);
    }
    if (ar->txn || !registry_reach_is_served(&ar->reach)) {
        return false;
    }
    if (!ovsdb_idl_has_lock(ar->idl)) {
        if (ovsdb_idl_is_lock_contended(ar->idl)) {
            VLOG_WARN_RL(&rl, "node %s has an agent already: waiting for its end", ar->node_name);
        }
        return false;
    }
    if (ar->seqno != ovsdb_idl_get_seqno(ar->idl)) {
        ar->seqno = ovsdb_idl_get_seqno(ar->idl);
        ar->report = true;
        row = own_row(ar);
        if (row) {
            read_changes(ar, row);
            fresh = read_row(ar, row, cfg);
            agent_connections_read(ar->connections, ar->idl);
        } else {
            VLOG_WARN_RL(&rl, "the registry has no node '%s' (castctl node add %s)", ar->node_name,
                         ar->node_name);
        }
    }
    /* A configuration just handed out is answered first, so that one transaction says it all. */
    row = !fresh && time_msec() >= news_at(ar) ? own_row(ar) : NULL;
    if (row) {
        report(ar, row);
        run_txn(ar);
    }
    return fresh;
}

void
agent_registry_wait(struct agent_registry *ar)
{
    registry_reach_wait(&ar->reach);
    if (ar->txn) {
        ovsdb_idl_txn_wait(ar->txn);
    } else if (registry_reach_is_served(&ar->reach) && ovsdb_idl_has_lock(ar->idl) && own_row(ar)) {
        poll_timer_wait_until(news_at(ar));
    }
}

static void
set_state(struct agent_registry *ar, const char *state)
{
    free(ar->state);
    ar->state = xstrdup(state);
    ar->report = true;
}

void
agent_registry_applied(struct agent_registry *ar, uint64_t generation)
{
    ar->applied = (int64_t) generation;
    set_state(ar, "ok");
}

void
agent_registry_refused(struct agent_registry *ar, uint64_t generation, const char *why)
{
    char *state = xasprintf("generation %" PRIu64 " refused: %s", generation, why);

    set_state(ar, state);
    free(state);
}

void
agent_registry_started(struct agent_registry *ar, const struct tree_config *tree)
{
    agent_trees_started(ar->trees, tree);
}

void
agent_registry_blank(struct agent_registry *ar, const struct tree_config *tree, bool blank)
{
    agent_trees_blank(ar->trees, tree, blank);
}

bool
agent_registry_note(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    enum branch_note note, uint32_t value)
{
    return agent_trees_note(ar->trees, tree, branch, note, value);
}

bool
agent_registry_lost(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    const char *why, const psn_t *una)
{
    return agent_trees_lost(ar->trees, tree, branch, why, una);
}

void
agent_registry_has_tree(struct agent_registry *ar, const struct tree_config *tree)
{
    agent_trees_has_tree(ar->trees, tree);
}

bool
agent_registry_slow(struct agent_registry *ar, const struct tree_config *tree, uint32_t branch,
                    const char *how)
{
    return agent_trees_slow(ar->trees, tree, branch, how);
}

void
agent_registry_clear_rates(struct agent_registry *ar)
{
    agent_trees_clear_rates(ar->trees);
}

void
agent_registry_rate(struct agent_registry *ar, const struct tree_config *tree, uint64_t rate,
                    enum rate_cause cause, const struct in6_addr *node)
{
    agent_trees_rate(ar->trees, tree, rate, cause, node);
}

void
agent_registry_end_rates(struct agent_registry *ar)
{
    agent_trees_end_rates(ar->trees);
}

bool
agent_registry_connections(struct agent_registry *ar, const struct cm_conn_config **connections,
                           size_t *n)
{
    return agent_connections_news(ar->connections, connections, n);
}

void
agent_registry_clear_connections(struct agent_registry *ar)
{
    agent_connections_clear(ar->connections);
    ar->report = true;
}

void
agent_registry_add_connection(struct agent_registry *ar, const struct cm_conn_info *info)
{
    agent_connections_add(ar->connections, info);
}

void
agent_registry_clear_probes(struct agent_registry *ar)
{
    agent_probes_clear(ar->probes);
}

void
agent_registry_add_probe(struct agent_registry *ar, const struct probe_info *info, uint64_t now)
{
    agent_probes_add(ar->probes, info, now, time_wall_msec());
}

void
agent_registry_end_probes(struct agent_registry *ar)
{
    ar->report |= agent_probes_news(ar->probes, time_msec());
}

bool
agent_registry_asks(struct agent_registry *ar)
{
    return agent_trees_asks(ar->trees);
}

void
agent_registry_answer(struct agent_registry *ar, const struct tree_config *tree,
                      agent_registry_find *find, const void *aux)
{
    agent_trees_answer(ar->trees, tree, find, aux);
}
