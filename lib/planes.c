/* SPDX-License-Identifier: Apache-2.0
 *
 * Which of several planes one end uses.
 */
#include "lib/planes.h"

#include <string.h>

#include "lib/prober.h"

/* The less the better.  A plane that is bad is worse than one that is excluded. */
static unsigned
rank(const struct plane_view *v)
{
    static const unsigned ranks[] = {
        [PATH_GOOD] = 0,       [PATH_UNKNOWN] = 0, [PATH_SUSPECT] = 1,
        [PATH_RECOVERING] = 2, [PATH_BAD] = 6,
    };

    return ranks[v->state] + (v->usable ? 0 : 3);
}

enum plane_move
plane_choose(const struct plane_view *v, size_t n, size_t used, size_t *to)
{
    size_t best = 0;

    for (size_t i = 1; i < n; i++) {
        unsigned a = rank(&v[i]), b = rank(&v[best]);

        best = a < b || (a == b && v[i].preferred) ? i : best;
    }
    *to = best;
    if (best == used || n < 2) {
        return PLANE_STAYS;
    }
    bool better = rank(&v[best]) < rank(&v[used]);

    if (v[used].state == PATH_BAD) {
        return better ? PLANE_FAILED : PLANE_STAYS;
    }
    if (!v[used].usable && better) {
        return PLANE_PLANNED;
    }
    return v[best].preferred && !rank(&v[best]) ? PLANE_PLANNED : PLANE_STAYS;
}

bool
plane_use_configure(struct plane_use *use, const struct plane_config *old, size_t n_old,
                    const struct plane_config *new, size_t n)
{
    for (size_t i = 0; i < n && use->used < n_old; i++) {
        if (!strcmp(old[use->used].name, new[i].name)) {
            use->used = i;
            return true;
        }
    }
    use->used = 0;
    return false;
}

bool
plane_is_down(const struct node_base *base, const struct plane_config *plane)
{
    return plane->port && !l3_port_is_up(base->l3, plane->port);
}

enum path_state
plane_state(const struct node_base *base, const struct plane_config *plane)
{
    enum path_state worst = plane->n_probes ? PATH_GOOD : PATH_UNKNOWN;

    for (size_t i = 0; i < plane->n_probes; i++) {
        uint16_t number = plane->probes[i];
        enum path_state state = base->way_state ? base->way_state(base->way_aux, number)
                                                : prober_state(base->prober, number);

        worst = state > worst ? state : worst;
    }
    return plane_is_down(base, plane) ? PATH_BAD : worst;
}

enum plane_move
plane_use_look(const struct plane_use *use, const struct node_base *base,
               const struct plane_config *planes, size_t n, size_t *to)
{
    struct plane_view v[PLANES_MAX];

    for (size_t i = 0; i < n; i++) {
        v[i] = (struct plane_view){planes[i].usable, planes[i].preferred,
                                   plane_state(base, &planes[i])};
    }
    return n ? plane_choose(v, n, use->used, to) : PLANE_STAYS;
}

void
plane_use_move(struct plane_use *use, size_t to, enum plane_move move, uint64_t now)
{
    use->used = to;
    use->since = now;
    *(move == PLANE_FAILED ? &use->n_failed : &use->n_planned) += 1;
}

void
plane_doubt(const struct plane_use *use, const struct node_base *base,
            const struct plane_config *planes, size_t n, uint64_t now)
{
    for (size_t i = 0; n > 1 && i < planes[use->used].n_probes; i++) {
        prober_doubt(base->prober, planes[use->used].probes[i], true, now);
    }
}

bool
planes_have_probe(const struct plane_config *planes, size_t n, uint16_t probe)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < planes[i].n_probes; j++) {
            if (planes[i].probes[j] == probe) {
                return true;
            }
        }
    }
    return false;
}

void
plane_use_info(const struct plane_use *use, const struct node_base *base,
               const struct plane_config *planes, size_t n, struct tree_info *info)
{
    info->planes = n ? planes : NULL;
    info->n_planes = n;
    for (size_t i = 0; i < n; i++) {
        info->plane_states[i] = plane_state(base, &planes[i]);
    }
    info->plane_used = use->used;
    info->plane_since = use->since;
    info->n_planes_failed = use->n_failed;
    info->n_planes_moved = use->n_planned;
}
