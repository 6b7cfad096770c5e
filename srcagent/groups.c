/* SPDX-License-Identifier: Apache-2.0
 *
 * Group state of the agent, made from the configuration.  The encapsulation is built here once,
 * and then only stamped on packets.  A new epoch starts from nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/why.h"
#include "srcagent/srcagent.h"

static void
encaps_uninit(struct encaps *encaps)
{
    free(encaps->v);
    data_key_destroy(encaps->data);
    *encaps = (struct encaps){0};
}

static void
source_destroy(struct srcagent *sa, struct source *t)
{
    deadlines_set(&sa->deadlines, &t->deadline, UINT64_MAX, t);
    sa->data_seq = t->data_seq > sa->data_seq ? t->data_seq : sa->data_seq;
    rate_tree_remove(sa, t);
    aggregate_destroy(t->aggregate);
    messages_destroy(t->messages);
    tree_config_uninit(&t->config);
    encaps_uninit(&t->encaps);
    free(t);
}

bool
source_may_answer(const struct srcagent *sa, const struct source *t)
{
    return addr_map_find(sa->sources.by_source, &t->config.proxy, t->config.source_qpn) == t;
}

void
sources_uninit(struct srcagent *sa)
{
    struct sources *sources = &sa->sources;

    for (size_t i = 0; i < sources->n; i++) {
        source_destroy(sa, sources->v[i]);
    }
    deadlines_uninit(&sa->deadlines);
    free(sources->v);
    addr_map_destroy(sources->by_key);
    addr_map_destroy(sources->by_source);
    *sources = (struct sources){0};
}

/* Is this a SID of the node with that address? */
static bool
is_sid_of(const struct in6_addr *sid, const struct in6_addr *node)
{
    return !memcmp(sid, node, NODE_LOCATOR_LEN);
}

/* What packets to 'dst' are sent to: with a path its program. */
static const struct in6_addr *
on_path(const struct tree_config *config, const struct in6_addr *dst)
{
    const struct tree_mode_row *mode = tree_mode(config->mode);

    return mode->packet_per_edge || mode->addressed_to_group
                   || IN6_IS_ADDR_UNSPECIFIED(&config->outer_program)
               ? dst
               : &config->outer_program;
}

/* Builds the encapsulation of copies for 'dst': for all receivers, or for those of the edge that has
 * this SID.  Builds none if there are no receivers.  Adds their number to *n_named. */
static int
add_encap(const struct in6_addr *own, const struct tree_config *config, const struct in6_addr *dst,
          struct encaps *encaps, size_t *n_named)
{
    bool per_edge = tree_mode(config->mode)->packet_per_edge;
    struct encap *encap = &encaps->v[encaps->n];
    struct srh_copy *named = must_calloc(config->n_copies, sizeof *named);
    struct auth_epoch epoch = tree_config_auth_epoch(config);
    size_t n = 0;

    encap->branch = FANOUT_SHARED;
    for (size_t i = 0; i < config->n_copies; i++) {
        const struct branch_config *b = &config->copies[i];
        if (!per_edge || is_sid_of(dst, &b->edge)) {
            named[n++] = (struct srh_copy){b->edge, b->address, b->qpn};
        }
    }
    for (size_t i = 0; i < config->n_branches && per_edge; i++) {
        if (is_sid_of(dst, &config->branches[i].address)) {
            encap->branch = config->branches[i].id;
        }
    }
    int error = 0;
    if (n) {
        error = encap_template_build(&encap->template, own, dst, &config->proxy, named,
                                     config->provisioned ? 0 : n);
        if (!error) {
            error = auth_sign(&encap->template, &config->auth, &epoch);
        }
        if (!error && config->policy.trace_slots) {
            encap_template_add_trace(&encap->template, config->policy.trace_slots);
        }
        encaps->n++;
    }
    free(named);
    *n_named += n;
    return error;
}

/* One for each plane, all of them for all receivers. */
static int
add_planes(const struct in6_addr *own, const struct tree_config *config, struct encaps *encaps,
           size_t *n_named)
{
    int error = 0;

    for (size_t i = 0; i < config->n_planes && !error; i++) {
        *n_named = 0;
        error = add_encap(own, config, &config->planes[i].program, encaps, n_named);
        encaps->v[i].port = config->planes[i].port;
    }
    return error;
}

/* Builds the encapsulations of an open group.  On an error *encaps has those that were made. */
static int
build_encaps(const struct in6_addr *own, const struct tree_config *config, struct encaps *encaps,
             char **errp)
{
    size_t n_named = 0;
    int error = 0;

    *encaps = (struct encaps){0};
    if (!tree_config_passes(config)) {
        return 0;
    }
    if (config->policy.trace_slots > IOAM_MAX_SLOTS) {
        say_why(errp, "group %s: a trace of %u slots, and %d is the most", config->group,
                config->policy.trace_slots, IOAM_MAX_SLOTS);
        return EINVAL;
    }
    encaps->v = must_calloc(config->n_outer_da + config->n_planes, sizeof *encaps->v);
    if (config->n_planes) {
        error = add_planes(own, config, encaps, &n_named);
    }
    for (size_t i = 0; i < config->n_outer_da && !config->n_planes && !error; i++) {
        error = add_encap(own, config,
                          tree_mode(config->mode)->addressed_to_group
                              ? &config->mcast_group
                              : on_path(config, &config->outer_da[i]),
                          encaps, &n_named);
    }
    if (!error && (!n_named || n_named != config->n_copies)) {
        error = EINVAL; /* no receiver is named, or one is not named exactly once. */
    }
    if (!error && config->auth.tlvs & AUTH_DATA) {
        struct auth_epoch epoch = tree_config_auth_epoch(config);

        encaps->data = data_key_create(auth_find_key(&config->auth, config->auth.key), &epoch);
        error = encaps->data ? 0 : EIO;
    }
    if (error == ENOKEY) {
        say_why(errp, "group %s: no key %u to authenticate its packets with", config->group,
                config->auth.key);
    } else if (error) {
        say_why(errp, "group %s: %zu outer destinations, SRH for %zu receivers: %s", config->group,
                config->n_outer_da, config->n_copies, strerror(error));
    }
    return error;
}

int
sources_prepare(const struct sources *sources, const struct node_config *config,
                struct encaps **encaps, char **errp)
{
    int error = 0;

    *encaps = must_calloc(config->n_trees, sizeof **encaps);
    for (size_t i = 0; !error && i < config->n_trees; i++) {
        const struct tree_config *tc = &config->trees[i];
        const struct source *t = addr_map_find(sources->by_key, &tc->proxy, tc->designated_qpn);

        if (!tree_config_is_source(tc, &config->address)) {
            continue;
        }
        error = aggregate_check(t ? t->aggregate : NULL, tc, errp);
        if (!error) {
            error = build_encaps(&config->address, tc, &(*encaps)[i], errp);
        }
    }
    if (error) {
        for (size_t i = 0; i < config->n_trees; i++) {
            encaps_uninit(&(*encaps)[i]);
        }
        free(*encaps);
    }
    return error;
}

/* Gives 't' its configuration and 'encaps'.  Returns what to send to the host. */
static struct reverse_out
source_configure(const struct srcagent *sa, struct source *t, const struct tree_config *config,
                 const struct encaps *encaps, uint64_t now)
{
    struct tree_config old = t->config;

    tree_config_clone(&t->config, config);
    struct reverse_out out = aggregate_configure(t->aggregate, &old, &t->config, now);
    if (!plane_use_configure(&t->plane, old.planes, old.n_planes, config->planes,
                             config->n_planes)) {
        t->drain = (struct drain){.on = false};
    }
    tree_config_uninit(&old);
    for (size_t i = 0; i < config->n_branches; i++) {
        reverse_share(t->aggregate->reverse, config->branches[i].id,
                      !tree_mode(config->mode)->packet_per_edge);
    }
    encaps_uninit(&t->encaps);
    t->encaps = *encaps;
    t->uplink = tree_mode(config->mode)->addressed_to_group && config->n_outer_da
                    ? l3_port_to(sa->base.l3, &config->outer_da[0])
                    : 0;
    return out;
}

static int
newest_first(const void *a_, const void *b_)
{
    const struct source *const *a = a_;
    const struct source *const *b = b_;
    return ((*a)->config.epoch < (*b)->config.epoch) - ((*a)->config.epoch > (*b)->config.epoch);
}

void
sources_configure(struct srcagent *sa, const struct node_config *config, struct encaps *encaps,
                  uint64_t now)
{
    struct sources *sources = &sa->sources;
    size_t n = config->n_trees;
    struct sources new = {
        .v = must_calloc(n, sizeof *new.v),
        .by_key = addr_map_create(n),
        .by_source = addr_map_create(n),
    };
    struct reverse_out *outs = must_calloc(n, sizeof *outs);
    deadlines_reserve(&sa->deadlines, sources->n + n);
    for (size_t i = 0; i < n; i++) {
        const struct tree_config *tc = &config->trees[i];
        if (!tree_config_is_source(tc, &config->address)) {
            continue;
        }
        struct source *t = addr_map_find(sources->by_key, &tc->proxy, tc->designated_qpn);
        if (!t) {
            t = must_calloc(1, sizeof *t);
            t->aggregate = aggregate_create(tc, 0);
            t->messages = messages_create(tc->start_psn, !tc->started);
            t->data_seq = sa->data_seq;
        }
        t->aggregate->cnp_interval_usec = config->congestion.interval_usec;
        outs[i] = source_configure(sa, t, tc, &encaps[i], now);
        new.v[new.n++] = t;
        addr_map_insert(new.by_key, &tc->proxy, tc->designated_qpn, t);
    }
    /* Epochs may share a source QPN: the newest has it. */
    qsort(new.v, new.n, sizeof(struct source *), newest_first);
    for (size_t i = 0; i < new.n; i++) {
        const struct tree_config *tc = &new.v[i]->config;
        addr_map_insert(new.by_source, &tc->proxy, tc->source_qpn, new.v[i]);
    }
    for (size_t i = 0; i < sources->n; i++) {
        struct source *t = sources->v[i];
        if (!addr_map_find(new.by_key, &t->config.proxy, t->config.designated_qpn)) {
            source_destroy(sa, t);
        }
    }
    free(encaps);
    free(sources->v);
    addr_map_destroy(sources->by_key);
    addr_map_destroy(sources->by_source);
    *sources = new;
    for (size_t i = 0; i < n; i++) {
        const struct tree_config *tc = &config->trees[i];
        struct source *t = addr_map_find(new.by_key, &tc->proxy, tc->designated_qpn);
        if (t) {
            up_send(sa, t, &outs[i], now);
        }
    }
    free(outs);
    for (size_t i = 0; i < new.n; i++) {
        rate_tree_configure(sa, sources->v[i], now);
        source_look_at_planes(sa, sources->v[i], now);
    }
    rate_timer(sa, now);
}
