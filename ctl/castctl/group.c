/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl group and source.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/request.h"
#include "ctl/registry/values.h"
#include "lib/node-config.h"
#include "lib/wire.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

#define FLAG(OPTION)       (1ull << (OPTION))

#define DEFAULT_MTU        1024
#define DEFAULT_QP_TIMEOUT 20
#define DEFAULT_LIVENESS   10000 /* ms. */
#define MAX_LIVENESS       3600000

/*
 * Groups.
 */

static int64_t
option_mtu(const struct ctl *ctl)
{
    uint64_t mtu = ctl_option_number(ctl, OPT_MTU, 256, 4096, DEFAULT_MTU);

    if (mtu & (mtu - 1)) {
        ctl_fail(CTL_USAGE, "--mtu %s: must be 256, 512, 1024, 2048 or 4096",
                 ctl->options[OPT_MTU]);
    }
    return (int64_t) mtu;
}

static const char *
group_receivers(const struct rrec_group *group)
{
    return group->receivers ? group->receivers : receivers_name(DEFAULT_PROVISIONED);
}

/* Four times the QPs' time-out in milliseconds: a requester asks again not before that has passed, and
 * it takes some of its questions to call a receiver silent. */
static uint64_t
liveness_min(int64_t timeout)
{
    return ((4096 * 4ull << timeout) + 999999) / 1000000;
}

static int64_t
liveness_default(int64_t timeout)
{
    return (int64_t) MAX(DEFAULT_LIVENESS, liveness_min(timeout));
}

/* A wrong value ends castctl with 'code': whether it is one depends on the QPs' time-out. */
static int64_t
option_liveness(const struct ctl *ctl, int64_t timeout, enum ctl_exit code)
{
    uint64_t min = liveness_min(timeout);
    uint64_t msec = ctl_option_number(ctl, OPT_LIVENESS, 0, MAX(MAX_LIVENESS, min), 0);

    if (msec && msec < min) {
        ctl_fail(code,
                 "--liveness %" PRIu64 ": must be 0 (never) or at least %" PRIu64
                 " ms, 4 times the QPs' time-out (4.096 us * 2^%" PRId64 ")",
                 msec, min, timeout);
    }
    return (int64_t) msec;
}

static const char *
group_policy(const struct rrec_group *group)
{
    return group->policy ? group->policy : loss_policy_name(DEFAULT_PRUNE);
}

static const char *
group_nak(const struct rrec_group *group)
{
    return group->nak ? group->nak : nak_policy_name(DEFAULT_NAK);
}

static bool
option_filter(const struct ctl *ctl)
{
    return ctl_option_word(ctl, OPT_FILTER, DEFAULT_FILTER ? FILTER_ON : FILTER_OFF) == FILTER_ON;
}

static bool
group_filter(const struct rrec_group *group)
{
    return group->n_filter ? group->filter[0] : DEFAULT_FILTER;
}

static bool
same_auth(const struct rrec_group *group, const struct auth_option *auth)
{
    return auth_tlvs_parse(group->auth, group->n_auth) == auth->tlvs
           && group->n_auth_key == auth->n_key && (!auth->n_key || group->auth_key[0] == auth->key);
}

static void
set_auth(const struct rrec_group *group, const struct auth_option *auth)
{
    const char *names[2];
    size_t n = auth_tlvs_names(auth->tlvs, names);

    rrec_group_set_auth(group, names, n);
    rrec_group_set_auth_key(group, &auth->key, auth->n_key);
}

static void
group_add(struct ctl *ctl)
{
    const char *name = ctl->argv[0];
    int64_t mtu = option_mtu(ctl);
    int64_t psn = (int64_t) ctl_option_number(ctl, OPT_PSN, 0, PSN_MASK, 0);
    int64_t timeout = (int64_t) ctl_option_number(ctl, OPT_TIMEOUT, 1, 31, DEFAULT_QP_TIMEOUT);
    int64_t liveness = ctl_flag(ctl, OPT_LIVENESS) ? option_liveness(ctl, timeout, CTL_USAGE)
                                                   : liveness_default(timeout);
    const char *policy = ctl_option_text(ctl, OPT_POLICY, loss_policy_name(DEFAULT_PRUNE));
    const char *mode = ctl_option_text(ctl, OPT_MODE, tree_mode_name(DEFAULT_MODE));
    const char *receivers =
        ctl_option_text(ctl, OPT_RECEIVERS, receivers_name(DEFAULT_PROVISIONED));
    const char *nak = ctl_option_text(ctl, OPT_NAK, nak_policy_name(DEFAULT_NAK));
    bool filter = option_filter(ctl);
    size_t n_psn = ctl_flag(ctl, OPT_PSN) ? 1 : 0;
    struct auth_option auth = ctl_option_auth(ctl, NULL);
    const struct rrec_group *row;

    ctl_check_name("name", name);
    row = ctl_find_group(ctl, name);
    if (row && ctl_flag(ctl, OPT_MAY_EXIST)) {
        const char *other =
            row->mtu != mtu                                           ? "mtu"
            : row->timeout != timeout                                 ? "timeout"
            : row->n_psn != n_psn || (n_psn && row->psn[0] != psn)    ? "psn"
            : ctl_flag(ctl, OPT_MODE) && strcmp(row->mode, mode) != 0 ? "mode"
            : ctl_flag(ctl, OPT_RECEIVERS) && strcmp(group_receivers(row), receivers) != 0
                ? "receivers"
            : ctl_flag(ctl, OPT_LIVENESS) && row->liveness != liveness            ? "liveness"
            : ctl_flag(ctl, OPT_POLICY) && strcmp(group_policy(row), policy) != 0 ? "policy"
            : ctl_flag(ctl, OPT_NAK) && strcmp(group_nak(row), nak) != 0          ? "nak"
            : ctl_flag(ctl, OPT_FILTER) && group_filter(row) != filter            ? "filter"
            : auth.given && !same_auth(row, &auth)                                ? "auth or --key"
                                                                                  : NULL;

        if (other) {
            ctl_fail(CTL_REFUSED, "group add: group %s exists with another --%s", name, other);
        }
        return;
    }
    if (row) {
        ctl_fail(CTL_REFUSED, "group add: a group named '%s' exists already", name);
    }
    row = rrec_group_insert(ctl->txn);
    rrec_group_set_name(row, name);
    rrec_group_set_mode(row, mode);
    rrec_group_set_receivers(row, receivers);
    rrec_group_set_mtu(row, mtu);
    rrec_group_set_psn(row, &psn, n_psn);
    rrec_group_set_timeout(row, timeout);
    rrec_group_set_policy(row, policy);
    rrec_group_set_liveness(row, liveness);
    rrec_group_set_nak(row, nak);
    rrec_group_set_filter(row, &filter, 1);
    set_auth(row, &auth);
}

/* How packets travel is settled for an epoch with its first packet: a switch that takes its part in
 * another tree does not know what was confirmed before. */
static void
check_not_started(const struct rrec_group *group, const char *option, const char *has,
                  const char *wanted)
{
    rrec_group_verify_started(group);
    if (group->started && wanted && strcmp(has, wanted) != 0) {
        ctl_fail(CTL_REFUSED,
                 "group set: --%s %s: epoch %" PRId64
                 " of group %s has started with %s; set it after castctl group reset %s",
                 option, wanted, group->epoch, group->name, has, group->name);
    }
}

static void
group_set(struct ctl *ctl)
{
    const struct rrec_group *group;
    const char *policy = ctl->options[OPT_POLICY];
    const char *mode = ctl->options[OPT_MODE];
    const char *receivers = ctl->options[OPT_RECEIVERS];
    const char *nak = ctl->options[OPT_NAK];
    bool filter = option_filter(ctl);

    if (!policy && !mode && !receivers && !nak && !ctl_flag(ctl, OPT_LIVENESS)
        && !ctl_flag(ctl, OPT_FILTER) && !ctl_flag(ctl, OPT_AUTH) && !ctl_flag(ctl, OPT_KEY)) {
        ctl_fail(CTL_USAGE, "group set: nothing to set (castctl group set --help)");
    }
    group = ctl_require_group(ctl, ctl->argv[0]);
    check_not_started(group, "mode", group->mode, mode);
    check_not_started(group, "receivers", group_receivers(group), receivers);
    if (mode) {
        rrec_group_set_mode(group, mode);
    }
    if (receivers) {
        rrec_group_set_receivers(group, receivers);
    }
    if (ctl_flag(ctl, OPT_LIVENESS)) {
        rrec_group_set_liveness(group, option_liveness(ctl, group->timeout, CTL_REFUSED));
    }
    if (policy) {
        rrec_group_set_policy(group, policy);
    }
    if (nak) {
        rrec_group_set_nak(group, nak);
    }
    if (ctl_flag(ctl, OPT_FILTER)) {
        rrec_group_set_filter(group, &filter, 1);
    }
    struct auth_option auth = ctl_option_auth(ctl, group);
    if (auth.given) {
        set_auth(group, &auth);
    }
}

static void
group_del(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_find_group(ctl, ctl->argv[0]);
    const struct rrec_source *source;
    const struct rrec_member *member, *next;

    if (!group && ctl_flag(ctl, OPT_IF_EXISTS)) {
        return;
    }
    group = ctl_require_group(ctl, ctl->argv[0]);
    source = ctl_find_source(ctl, group);
    if (source) {
        rrec_source_delete(source);
    }
    RREC_MEMBER_FOR_EACH_SAFE (member, next, ctl->idl) {
        if (member->group == group) {
            rrec_member_delete(member);
        }
    }
    rrec_group_delete(group);
}

static void
group_reset(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);

    rrec_group_verify_resets(group);
    rrec_group_set_resets(group, group->resets + 1);
}

static struct json *
source_to_json(const struct rrec_source *source)
{
    struct json *o;

    if (!source) {
        return json_null_create();
    }
    o = json_object_create();
    json_object_put_string(o, "host", source->host);
    ctl_put_int(o, "qpn", source->qpn);
    ctl_put_int(o, "epoch", source->epoch);
    return o;
}

struct json *
ctl_members_to_json(const struct ctl *ctl, const struct rrec_group *group)
{
    struct json *array = json_array_create_empty();
    const struct rrec_member *m;

    RREC_MEMBER_FOR_EACH (m, ctl->idl) {
        struct json *o;

        if (m->group != group) {
            continue;
        }
        o = json_object_create();
        json_object_put_string(o, "host", m->host);
        ctl_put_int(o, "qpn", m->qpn);
        if (m->n_rkey) {
            ctl_put_int(o, "rkey", m->rkey[0]);
            json_object_put_string(o, "va", m->va);
        } else {
            json_object_put(o, "rkey", json_null_create());
            json_object_put(o, "va", json_null_create());
        }
        ctl_put_int(o, "len", m->len);
        ctl_put_int(o, "epoch", m->epoch);
        json_object_put_string(o, "want", m->want);
        json_object_put_string(o, "state", m->state);
        json_object_put_string(o, "status", m->status);
        json_array_add(array, o);
    }
    ctl_sort_by(array, "host");
    return array;
}

/* The keys that a node has for a tree, in order. */
static struct json *
key_ids(const struct rrec_tree_node *tree)
{
    struct ds s = DS_EMPTY_INITIALIZER;
    int64_t last = 0;

    for (size_t n = 0; n < tree->n_keys; n++) {
        int64_t next = INT64_MAX;

        for (size_t i = 0; i < tree->n_keys; i++) {
            int64_t id = tree->keys[i]->id;

            next = id > last ? MIN(next, id) : next;
        }
        ds_put_format(&s, "%s%" PRId64, n ? " " : "", next);
        last = next;
    }
    return json_string_create_nocopy(ds_steal_cstr(&s));
}

/* The nodes that have a tree of the group's epoch. */
static struct json *
nodes_to_json(const struct ctl *ctl, const struct rrec_group *group)
{
    struct json *array = json_array_create_empty();
    const struct rrec_node *node;

    RREC_NODE_FOR_EACH (node, ctl->idl) {
        for (size_t i = 0; i < node->n_trees; i++) {
            const struct rrec_tree_node *tree = node->trees[i];

            if (tree->epoch == group->epoch && !strcmp(tree->proxy, group->proxy)) {
                struct json *o = json_object_create();

                json_object_put_string(o, "node", node->name);
                ctl_put_int(o, "wanted", tree->generation);
                ctl_put_int(o, "applied", node->nb_cfg);
                json_object_put(o, "keys", key_ids(tree));
                json_array_add(array, o);
            }
        }
    }
    ctl_sort_by(array, "node");
    return array;
}

static struct json *
group_to_json(const struct rrec_group *g)
{
    struct json *o = json_object_create();

    json_object_put_string(o, "name", g->name);
    json_object_put_string(o, "mode", g->mode);
    json_object_put_string(o, "receivers", group_receivers(g));
    ctl_put_int(o, "mtu", g->mtu);
    ctl_put_int(o, "epoch", g->epoch);
    json_object_put_string(o, "proxy", g->proxy);
    ctl_put_int(o, "designated_qpn", g->designated_qpn);
    ctl_put_int(o, "start_psn", g->start_psn);
    ctl_put_int(o, "designated_rkey", g->designated_rkey);
    ctl_put_int(o, "region_va", 0);
    ctl_put_int(o, "region_len", g->region_len);
    ctl_put_int(o, "qp_timeout", g->timeout);
    json_object_put_string(o, "policy", group_policy(g));
    ctl_put_int(o, "liveness", g->liveness);
    json_object_put_string(o, "nak", group_nak(g));
    json_object_put(o, "filter", json_boolean_create(group_filter(g)));
    json_object_put_string(o, "auth", ctl_auth_text(g->auth, g->n_auth));
    json_object_put(o, "key",
                    g->n_auth_key ? json_integer_create(g->auth_key[0]) : json_null_create());
    ctl_put_int(o, "generation", g->generation);
    json_object_put(o, "started", json_boolean_create(g->started));
    json_object_put_string(o, "state", g->state);
    json_object_put_string(o, "status", g->status);
    return o;
}

static const char *const group_keys[] = {
    "name",       "mode",
    "receivers",  "mtu",
    "proxy",      "designated_qpn",
    "start_psn",  "designated_rkey",
    "region_va",  "region_len",
    "qp_timeout", "policy",
    "liveness",   "nak",
    "filter",     "auth",
    "key",        "host",
    "qpn",        "rkey",
    "va",         "len",
    "epoch",      "generation",
    "started",    "node",
    "wanted",     "applied",
    "keys",       "state",
    "status",     "source",
    "members",    "nodes",
    NULL,
};

static void
group_show(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    struct json *o = group_to_json(group);

    json_object_put(o, "source", source_to_json(ctl_find_source(ctl, group)));
    json_object_put(o, "members", ctl_members_to_json(ctl, group));
    json_object_put(o, "nodes", nodes_to_json(ctl, group));
    ctl_print(ctl, o, group_keys);
}

static void
group_list(struct ctl *ctl)
{
    static const char *const keys[] = {"name",     "mode",   "mtu",   "policy",
                                       "liveness", "epoch",  "proxy", "designated_qpn",
                                       "state",    "status", NULL};
    struct json *array = json_array_create_empty();
    const struct rrec_group *group;

    RREC_GROUP_FOR_EACH (group, ctl->idl) {
        json_array_add(array, group_to_json(group));
    }
    ctl_sort_by(array, "name");
    ctl_print(ctl, array, keys);
}

/* What an application needs to know about the epoch that it has just started. */
static void
print_epoch(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_find_group(ctl, ctl->argv[0]);

    if (group && !ctl->json) {
        printf("group %s: epoch %" PRId64 ", Designated QPN 0x%" PRIx64 ", start PSN %" PRId64 "\n",
               group->name, group->epoch, group->designated_qpn, group->start_psn);
    } else if (group) {
        ctl_print(ctl, group_to_json(group), group_keys);
    }
}

static void
group_wait(struct ctl *ctl)
{
    uint64_t want = ctl_option_number(ctl, OPT_MEMBERS, 1, UINT32_MAX, 1);
    int64_t epoch = (int64_t) ctl_option_number(ctl, OPT_EPOCH, 1, UINT32_MAX, 0);

    for (;;) {
        char *why;
        int error = request_group_ready(ctl->idl, ctl->argv[0], epoch, want, &why);

        if (!error) {
            return;
        }
        if (error != EAGAIN) {
            ctl_fail(CTL_REFUSED, "group wait: %s", why);
        }
        char *standing =
            xasprintf("group %s not ready after %d s: %s", ctl->argv[0], ctl->timeout, why);
        ctl_wait_for_change(ctl, standing);
        free(standing);
        free(why);
    }
}

/*
 * Sources.
 */

static void
source_set(struct ctl *ctl)
{
    const struct request_source request = {
        .group = ctl->argv[0],
        .host = ctl->options[OPT_HOST],
        .qpn = (int64_t) ctl_option_number(ctl, OPT_QPN, QPN_MIN, QPN_MAX, 0),
        .epoch = (int64_t) ctl_option_number(ctl, OPT_EPOCH, 1, UINT32_MAX, 0),
        .may_exist = ctl_flag(ctl, OPT_MAY_EXIST),
    };
    char *why;

    if (request_source_set(ctl->idl, ctl->txn, &request, &why)) {
        ctl_fail(CTL_REFUSED, "source set: %s", why);
    }
}

static void
source_del(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    const struct rrec_source *source = ctl_find_source(ctl, group);

    if (source) {
        rrec_source_delete(source);
    } else if (!ctl_flag(ctl, OPT_IF_EXISTS)) {
        ctl_fail(CTL_REFUSED, "source del: group %s has no source", group->name);
    }
}

static void
source_show(struct ctl *ctl)
{
    const struct rrec_group *group = ctl_require_group(ctl, ctl->argv[0]);
    const struct rrec_source *source = ctl_find_source(ctl, group);

    if (!source) {
        ctl_fail(CTL_REFUSED, "source show: group %s has no source", group->name);
    }
    ctl_print(ctl, source_to_json(source), group_keys);
}

const struct ctl_command ctl_group_commands[] = {
    {"group add", "GROUP", 1, 1,
     FLAG(OPT_MODE) | FLAG(OPT_RECEIVERS) | FLAG(OPT_MTU) | FLAG(OPT_PSN) | FLAG(OPT_TIMEOUT)
         | FLAG(OPT_POLICY) | FLAG(OPT_LIVENESS) | FLAG(OPT_NAK) | FLAG(OPT_FILTER) | FLAG(OPT_AUTH)
         | FLAG(OPT_KEY) | FLAG(OPT_MAY_EXIST),
     0, group_add, NULL,
     "add a group: how packets get to the edges, replicate (default), mcast or ingress; how an edge\n"
     "        knows for whom a packet is, tlv (default: the packet says so) or provisioned (for all\n"
     "        that castd told it of); path MTU (default 1024), start PSN (default random in each epoch), the QPs'\n"
     "        recommended time-out 1..31 (default 20; 4.096 us * 2^T); what becomes of the group\n"
     "        when a member is lost: fail-group (default) or prune, which goes on without it; after\n"
     "        how many ms of silence a member is lost, 0: never (default 10000, or 4 time-outs if\n"
     "        that is more); what becomes of a NAK while other members have confirmed less: hold\n"
     "        (default), literal or solicit; and whether switches spare members what they have\n"
     "        confirmed when it is sent again (default on); TLVs that authenticate packets: none\n"
     "        (default), mt-auth, hmac or both, and the key for them"},
    {"group set", "GROUP", 1, 1,
     FLAG(OPT_MODE) | FLAG(OPT_RECEIVERS) | FLAG(OPT_POLICY) | FLAG(OPT_LIVENESS) | FLAG(OPT_NAK)
         | FLAG(OPT_FILTER) | FLAG(OPT_AUTH) | FLAG(OPT_KEY),
     0, group_set, NULL,
     "change what becomes of lost members, of NAKs and of what is sent again, also of a group in\n"
     "        use; how packets are authenticated: with --key nodes go over to another key, without\n"
     "        loss; or how packets travel, before an epoch's first packet"},
    {"group del", "GROUP", 1, 1, FLAG(OPT_IF_EXISTS), 0, group_del, NULL,
     "delete a group with its source and members"},
    {"group list", "", 0, 0, 0, 0, NULL, group_list, "list groups"},
    {"group show", "GROUP", 1, 1, 0, 0, NULL, group_show,
     "show a group, its source, members and nodes"},
    {"group reset", "GROUP", 1, 1, 0, 0, group_reset, print_epoch,
     "start a new epoch: source and members register again"},
    {"group wait", "GROUP", 1, 1, FLAG(OPT_MEMBERS) | FLAG(OPT_EPOCH), 0, NULL, group_wait,
     "wait until the group is ready with at least N (default 1) active members"},
    {"source set", "GROUP", 1, 1,
     FLAG(OPT_HOST) | FLAG(OPT_QPN) | FLAG(OPT_EPOCH) | FLAG(OPT_MAY_EXIST),
     FLAG(OPT_HOST) | FLAG(OPT_QPN), source_set, print_epoch,
     "register the source's QP; the second in an epoch starts a new one (refused with --epoch)"},
    {"source show", "GROUP", 1, 1, 0, 0, NULL, source_show, "show a group's source"},
    {"source del", "GROUP", 1, 1, FLAG(OPT_IF_EXISTS), 0, source_del, NULL,
     "delete a group's source; the epoch is over for it"},
    {.name = NULL},
};
