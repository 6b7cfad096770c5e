/* SPDX-License-Identifier: Apache-2.0
 *
 * A node's configuration: its words, and ownership.
 */
#include "lib/node-config.h"

#include <stdlib.h>

#include "lib/alloc.h"

static const char *const port_roles[] = {
    [ROLE_HOST] = "host",
    [ROLE_AGENT] = "agent",
    [ROLE_FABRIC] = "fabric",
};
WORDS_DEFINE(port_role, enum port_role, port_roles);

static const char *const branch_kinds[] = {
    [BRANCH_RECEIVER] = "receiver",
    [BRANCH_NODE] = "node",
};
WORDS_DEFINE(branch_kind, enum branch_kind, branch_kinds);

static const char *const branch_joins[] = {
    [BRANCH_COUNTS] = "counts", /* the registry has an empty column. */
    [BRANCH_WAITS] = "wait",
    [BRANCH_ADMITTED] = "admit",
    [BRANCH_ASKED] = "ask",
};
WORDS_DEFINE(branch_join, enum branch_join, branch_joins);

static const char *const receivers[] = {[false] = "tlv", [true] = "provisioned"};
WORDS_DEFINE(receivers, bool, receivers);

static const char *const loss_policies[] = {[false] = "fail-group", [true] = "prune"};
WORDS_DEFINE(loss_policy, bool, loss_policies);

static const char *const slow_policies[] = {[false] = "report", [true] = "lose"};
WORDS_DEFINE(slow_policy, bool, slow_policies);

static const char *const nak_policies[] = {
    [NAK_HOLD] = "hold",
    [NAK_LITERAL] = "literal",
    [NAK_SOLICIT] = "solicit",
};
WORDS_DEFINE(nak_policy, enum reverse_nak, nak_policies);

static const char *const cnp_sources[] = {
    [CNP_AUTO] = "auto",
    [CNP_EDGE] = "edge",
    [CNP_NIC] = "nic",
    [CNP_OFF] = "off",
};
WORDS_DEFINE(cnp_source, enum cnp_source, cnp_sources);

static const char *const rate_controls[] = {
    [RATE_BY_AGENT] = "agent",
    [RATE_BY_NIC] = "nic",
    [RATE_BY_NONE] = "none",
};
WORDS_DEFINE(rate_control_by, enum rate_control_by, rate_controls);

static const char *const path_policies[] = {
    [PATH_NONE] = "none",       [PATH_FAILOVER] = "failover", [PATH_SPREAD] = "spread",
    [PATH_MESSAGE] = "message", [PATH_SPRAY] = "spray",
};
WORDS_DEFINE(path_policy, enum path_policy, path_policies);

static const char *const probe_kinds[] = {
    [PROBE_LOOP] = "loop",
    [PROBE_PEER] = "peer",
};
WORDS_DEFINE(probe_kind, enum probe_kind, probe_kinds);

static const char *const node_roles[] = {
    [NODE_SWITCH] = "switch",
    [NODE_AGENT] = "agent",
    [NODE_OVS] = "ovs",
    [NODE_ROUTER] = "router",
};
WORDS_DEFINE(node_role, enum node_role, node_roles);

bool
node_role_is_foreign(enum node_role role)
{
    switch (role) {
    case NODE_SWITCH:
    case NODE_AGENT: return false;
    case NODE_OVS:
    case NODE_ROUTER: return true;
    }
    abort();
}

bool
node_role_replicates(enum node_role role)
{
    switch (role) {
    case NODE_SWITCH:
    case NODE_OVS: return true;
    case NODE_AGENT:
    case NODE_ROUTER: return false;
    }
    abort();
}

int
address_compare(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct in6_addr));
}

int
queue_rate_compare(const void *a, const void *b)
{
    return ((const struct queue_rate *) a)->node - ((const struct queue_rate *) b)->node;
}

struct port_config *
port_config_clone(const struct port_config *src)
{
    struct port_config *port = must_copy(src, 1, sizeof *src);

    port->programs = must_copy(src->programs, src->n_programs, sizeof *src->programs);
    return port;
}

void
port_config_destroy(struct port_config *port)
{
    if (port) {
        free(port->programs);
        free(port);
    }
}

bool
tree_config_is_source(const struct tree_config *t, const struct in6_addr *node)
{
    return IN6_ARE_ADDR_EQUAL(&t->outer_source, node);
}

static struct plane_config *
planes_clone(const struct plane_config *src, size_t n)
{
    struct plane_config *planes = must_copy(src, n, sizeof *src);

    for (size_t i = 0; i < n; i++) {
        planes[i].probes = must_copy(src[i].probes, src[i].n_probes, sizeof *src[i].probes);
    }
    return planes;
}

static void
planes_free(struct plane_config *planes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(planes[i].probes);
    }
    free(planes);
}

void
tree_config_clone(struct tree_config *dst, const struct tree_config *src)
{
    *dst = *src;
    dst->branches = must_copy(src->branches, src->n_branches, sizeof *src->branches);
    dst->outer_da = must_copy(src->outer_da, src->n_outer_da, sizeof *src->outer_da);
    dst->copies = must_copy(src->copies, src->n_copies, sizeof *src->copies);
    dst->planes = planes_clone(src->planes, src->n_planes);
    dst->parent_planes = planes_clone(src->parent_planes, src->n_parent_planes);
    auth_config_clone(&dst->auth, &src->auth);
}

void
tree_config_uninit(struct tree_config *t)
{
    planes_free(t->planes, t->n_planes);
    planes_free(t->parent_planes, t->n_parent_planes);
    free(t->branches);
    free(t->outer_da);
    free(t->copies);
    auth_config_uninit(&t->auth);
    *t = (struct tree_config){0};
}

bool
tree_config_passes(const struct tree_config *t)
{
    return t->open && (!(t->auth.tlvs & AUTH_DATA) || t->auth.instance);
}

struct auth_epoch
tree_config_auth_epoch(const struct tree_config *t)
{
    return (struct auth_epoch){
        .proxy = t->proxy, .designated_qpn = t->designated_qpn, .epoch = t->epoch};
}

void
node_config_uninit(struct node_config *config)
{
    for (size_t i = 0; i < config->n_trees; i++) {
        tree_config_uninit(&config->trees[i]);
    }
    for (size_t i = 0; i < config->n_destinations; i++) {
        free(config->destinations[i].paths);
        free(config->destinations[i].pins);
    }
    for (size_t i = 0; i < config->n_ports; i++) {
        free(config->ports[i].programs);
    }
    free(config->destinations);
    free(config->probes);
    free(config->probers);
    free(config->congestion.capable);
    free(config->congestion.trusted);
    free(config->congestion.queue_rates);
    free(config->trees);
    free(config->sids);
    free(config->routes);
    free(config->ports);
    memset(config, 0, sizeof *config);
}
