/* SPDX-License-Identifier: Apache-2.0
 *
 * IPv6 policy routing.  What one lab host sends to another leaves through the
 * sender's own device, although both addresses are local.  Who asks for a host's
 * device gets that host's routes.
 *
 * The kernel's first rule, preference 0, is 'lookup local'.  It moves to another
 * preference, so that the hosts' rules come before it.  It is added there before
 * it is deleted at 0, so that there is one at any time.
 */
#include <config.h>

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/route.h>
#include <netlink/route/rule.h>
#include <stdlib.h>
#include <string.h>

#include "testbed/castlab/netops-private.h"
#include "testbed/castlab/netops.h"
#include "util.h"

static struct rtnl_rule *
build(const struct rule *r)
{
    struct rtnl_rule *rule = rtnl_rule_alloc();
    rtnl_rule_set_family(rule, AF_INET6);
    rtnl_rule_set_prio(rule, r->pref);
    rtnl_rule_set_action(rule, FR_ACT_TO_TBL);
    rtnl_rule_set_table(rule, r->table);
    if (r->from) {
        /* Without 'iif lo' the rule would also take packets that arrive, and they would loop. */
        rtnl_rule_set_iif(rule, "lo");
        struct nl_addr *src = netops_addr(r->from, 128);
        rtnl_rule_set_src(rule, src);
        nl_addr_put(src);
        struct nl_addr *dst = netops_addr(&r->to.address, r->to.plen);
        rtnl_rule_set_dst(rule, dst);
        nl_addr_put(dst);
    }
    if (r->oif) {
        rtnl_rule_set_oif(rule, r->oif);
    }
    return rule;
}

static char *
rule_error(const struct rule *r, int nle)
{
    char *name = xasprintf("with preference %u to table %u", r->pref, r->table);
    char *error = netops_error("IPv6 rule", name, nle);
    free(name);
    return error;
}

static int
add(struct net *net, const struct rule *r, uint8_t protocol)
{
    struct rtnl_rule *rule = build(r);
    if (protocol) {
        rtnl_rule_set_protocol(rule, protocol);
    }
    int nle = rtnl_rule_add(net->sock, rule, NLM_F_CREATE | NLM_F_EXCL);
    rtnl_rule_put(rule);
    return nle;
}

char *
rule_add(struct net *net, const struct rule *r)
{
    return rule_error(r, add(net, r, 0));
}

char *
rule_delete(struct net *net, const struct rule *r)
{
    struct rtnl_rule *rule = build(r);
    int nle = rtnl_rule_delete(net->sock, rule, 0);
    rtnl_rule_put(rule);
    return nle == -NLE_OBJ_NOTFOUND ? NULL : rule_error(r, nle);
}

bool
rule_exists(struct net *net, uint32_t pref, uint32_t table)
{
    struct nl_cache *cache;
    if (rtnl_rule_alloc_cache(net->sock, AF_INET6, &cache) < 0) {
        return false;
    }
    bool found = false;
    for (struct nl_object *o = nl_cache_get_first(cache); o && !found; o = nl_cache_get_next(o)) {
        struct rtnl_rule *rule = (struct rtnl_rule *) o;
        /* libnl asks for the rules of all families, whatever it is told. */
        found = rtnl_rule_get_family(rule) == AF_INET6 && rtnl_rule_get_prio(rule) == pref
                && rtnl_rule_get_table(rule) == table;
    }
    nl_cache_free(cache);
    return found;
}

/* The table of an object in a cache of rules or routes. */
static uint32_t
table_of(struct nl_object *o, bool is_rule)
{
    return is_rule ? rtnl_rule_get_table((struct rtnl_rule *) o)
                   : rtnl_route_get_table((struct rtnl_route *) o);
}

/* The highest table in [first, first + n) that is in use; 0: none. */
static uint32_t
highest_used(struct nl_cache *cache, bool is_rule, uint32_t first, size_t n)
{
    uint32_t highest = 0;
    for (struct nl_object *o = nl_cache_get_first(cache); o; o = nl_cache_get_next(o)) {
        uint32_t table = table_of(o, is_rule);
        if (table >= first && table < first + n) {
            highest = MAX(highest, table);
        }
    }
    return highest;
}

uint32_t
free_tables(struct net *net, uint32_t start, size_t n)
{
    struct nl_cache *rules = NULL;
    struct nl_cache *routes = NULL;
    if (rtnl_rule_alloc_cache(net->sock, AF_INET6, &rules) >= 0
        && rtnl_route_alloc_cache(net->sock, AF_INET6, 0, &routes) >= 0) {
        uint32_t used;
        while ((used = MAX(highest_used(rules, true, start, n),
                           highest_used(routes, false, start, n)))) {
            start = used + 1;
        }
    }
    nl_cache_free(rules);
    nl_cache_free(routes);
    return start;
}

bool
local_rule_is_first(struct net *net)
{
    return rule_exists(net, 0, RT_TABLE_LOCAL);
}

/* 'from all lookup local', the kernel's own. */
static char *
local_rule_add(struct net *net, uint32_t pref)
{
    const struct rule rule = {.pref = pref, .table = RT_TABLE_LOCAL};
    int nle = rule_exists(net, pref, RT_TABLE_LOCAL) ? 0 : add(net, &rule, RTPROT_KERNEL);
    return rule_error(&rule, nle);
}

static char *
local_rule_delete(struct net *net, uint32_t pref)
{
    const struct rule rule = {.pref = pref, .table = RT_TABLE_LOCAL};
    return rule_delete(net, &rule);
}

char *
local_rule_move(struct net *net, uint32_t pref)
{
    char *error = local_rule_add(net, pref);
    return error ? error : local_rule_delete(net, 0);
}

char *
local_rule_restore(struct net *net, uint32_t pref)
{
    char *error = local_rule_add(net, 0);
    return error ? error : local_rule_delete(net, pref);
}
