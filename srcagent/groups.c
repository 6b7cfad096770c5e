/* SPDX-License-Identifier: Apache-2.0
 *
 * Group state of the agent, made from the configuration: the encapsulation is
 * built here, once, and only stamped on packets.  A new epoch starts from
 * nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/response.h"
#include "srcagent/srcagent.h"

static void
tree_destroy(struct tree *t)
{
    while (t->head) {
        struct packet *p = t->head;
        t->head = p->next;
        packet_put(p);
    }
    tree_config_uninit(&t->config);
    free(t);
}

void
srcagent_trees_uninit(struct trees *trees)
{
    for (size_t i = 0; i < trees->n; i++) {
        tree_destroy(trees->v[i]);
    }
    free(trees->v);
    addr_map_destroy(trees->by_proxy);
    *trees = (struct trees){0};
}

/* The encapsulation of an open group. */
static int
build_encap(const struct srcagent *sa, const struct tree_config *config,
            struct encap_template *encap, char **errp)
{
    int error = EINVAL;

    *encap = (struct encap_template){0};
    if (!config->open) {
        return 0;
    }
    if (config->n_outer_da == 1 && config->n_copies) {
        struct srh_copy *copies = calloc(config->n_copies, sizeof *copies);
        if (!copies) {
            abort();
        }
        for (size_t i = 0; i < config->n_copies; i++) {
            const struct branch_config *b = &config->copies[i];
            copies[i] = (struct srh_copy){b->edge, b->address, b->qpn};
        }
        error = encap_template_build(encap, &sa->address, &config->outer_da[0], &config->proxy,
                                     copies, config->n_copies);
        free(copies);
    }
    if (error
        && asprintf(errp, "group %s: %zu outer destinations, SRH for %zu receivers: %s",
                    config->group, config->n_outer_da, config->n_copies, strerror(error))
               < 0) {
        abort();
    }
    return error;
}

/* The tree of this epoch, or NULL. */
static struct tree *
find_epoch(const struct trees *trees, const struct tree_config *config)
{
    struct tree *t = addr_map_find(trees->by_proxy, &config->proxy);

    return t && t->config.epoch == config->epoch
                   && t->config.designated_qpn == config->designated_qpn
               ? t
               : NULL;
}

int
srcagent_trees_configure(struct srcagent *sa, const struct node_config *config, uint64_t now,
                         char **errp)
{
    struct trees *trees = &sa->trees;
    size_t n = config->n_trees;
    struct encap_template *encaps = calloc(n + 1, sizeof *encaps);
    struct trees new = {.v = calloc(n + 1, sizeof *new.v), .n = n};
    if (!encaps || !new.v) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        int error = build_encap(sa, &config->trees[i], &encaps[i], errp);
        if (error) {
            free(encaps);
            free(new.v);
            return error;
        }
    }

    new.by_proxy = addr_map_create(n);
    for (size_t i = 0; i < n; i++) {
        const struct tree_config *tc = &config->trees[i];
        struct tree *t = find_epoch(trees, tc);
        if (!t) {
            t = calloc(1, sizeof *t);
            if (!t) {
                abort();
            }
        }
        struct tree_config old = t->config;
        tree_config_clone(&t->config, tc);
        tree_config_uninit(&old);
        t->encap = encaps[i];
        t->sport = response_sport(&tc->proxy, tc->designated_qpn);
        new.v[i] = t;
        addr_map_insert(new.by_proxy, &tc->proxy, t);
    }
    for (size_t i = 0; i < trees->n; i++) {
        if (addr_map_find(new.by_proxy, &trees->v[i]->config.proxy) != trees->v[i]) {
            tree_destroy(trees->v[i]);
        }
    }
    free(encaps);
    free(trees->v);
    addr_map_destroy(trees->by_proxy);
    *trees = new;
    for (size_t i = 0; i < n; i++) {
        down_release(sa, trees->v[i], now);
    }
    return 0;
}
