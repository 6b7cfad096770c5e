/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path of one group epoch at one node, with its packets.
 */
#include "lib/aggregate.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/cnp.h"
#include "lib/defect.h"
#include "lib/question.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "lib/why.h"

/* Has an earlier life of the node had the tree in an epoch that had started?  Branches wait in such
 * an epoch only, which the registry may know before it knows that a packet went down here. */
static bool
started_before(const struct tree_config *config)
{
    bool waits = false;

    for (size_t i = 0; i < config->n_branches; i++) {
        enum branch_join join = config->branches[i].join;

        waits |= join == BRANCH_WAITS || join == BRANCH_ADMITTED;
    }
    return config->started || (config->restarted && waits);
}

struct aggregate *
aggregate_create(const struct tree_config *config, uint64_t auth_seq)
{
    struct aggregate *a = must_calloc(1, sizeof *a);

    a->reverse = reverse_create(&(struct reverse_params){
        .start_psn = config->start_psn,
        .started_before = started_before(config),
        .root = config->root,
        .dup_ack_usec = REVERSE_DUP_ACK_USEC,
        .hold_usec = REVERSE_HOLD_USEC,
    });
    a->cnps = cnp_window_create();
    a->auth = response_auth_create(auth_seq);
    a->sport = response_sport(&config->proxy, config->designated_qpn);
    return a;
}

void
aggregate_destroy(struct aggregate *a)
{
    if (a) {
        reverse_destroy(a->reverse);
        addr_map_destroy(a->branches);
        cnp_window_destroy(a->cnps);
        response_auth_destroy(a->auth);
        free(a->asked);
        free(a);
    }
}

/* Does the machine know the branch? */
static bool
is_in_machine(const struct branch_config *b)
{
    return b->join != BRANCH_ASKED;
}

/* Are these, one after the other, the same branch of the machine?  Another QP or node with the same
 * id is another branch: it has confirmed nothing of what this one has.  So is one that counted and
 * is to join now: it has left meanwhile. */
static bool
is_same(const struct branch_config *old, const struct branch_config *new)
{
    return is_in_machine(old) && is_in_machine(new) && old->id == new->id && old->kind == new->kind
           && old->qpn == new->qpn && !memcmp(&old->address, &new->address, sizeof old->address)
           && (old->join != BRANCH_COUNTS || new->join == BRANCH_COUNTS);
}

/* Had 'old' this branch? */
static bool
had_branch(const struct tree_config *old, const struct branch_config *b)
{
    for (size_t i = 0; i < old->n_branches; i++) {
        if (is_same(&old->branches[i], b)) {
            return true;
        }
    }
    return false;
}

/* Does 'config' still have this branch of before? */
static bool
has_branch(const struct tree_config *config, const struct branch_config *b)
{
    for (size_t i = 0; i < config->n_branches; i++) {
        if (is_same(b, &config->branches[i])) {
            return true;
        }
    }
    return false;
}

/* The least time until an answer is overdue (R14): one fifth of the source's timeout.  That is the
 * time, 4.096 us * 2^timeout, after which the source goes back of its own accord. */
static uint64_t
presume_usec(const struct tree_config *config)
{
    uint8_t timeout = config->policy.timeout;

    return config->root && timeout ? (UINT64_C(4096) << timeout) / 5000 : 0;
}

int
aggregate_check(const struct aggregate *a, const struct tree_config *config, char **errp)
{
    struct reverse_info info = {.quiesced = true};

    if (config->n_planes > PLANES_MAX || config->n_parent_planes > PLANES_MAX) {
        say_why(errp, "group %s: more than %d planes", config->group, PLANES_MAX);
        return EINVAL;
    }

    if (a) {
        reverse_get_info(a->reverse, &info);
    }
    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *b = &config->branches[i];
        bool known = a && a->config && had_branch(a->config, b);

        if (!info.quiesced && !known && b->join == BRANCH_COUNTS) {
            say_why(errp, "group %s: %s cannot join while packets are in flight", config->group,
                    b->name);
            return EBUSY;
        }
    }
    return 0;
}

/* Adds a branch that was not there; aggregate_check() was asked. */
static void
add_branch(struct aggregate *a, const struct branch_config *b, uint64_t now)
{
    if (b->join == BRANCH_COUNTS
            ? reverse_branch_add(a->reverse, b->id, now)
            : reverse_branch_wait(a->reverse, b->id, b->kind == BRANCH_NODE, b->psn, now)) {
        abort();
    }
    if (b->late) {
        reverse_set_first(a->reverse, b->id, b->first, b->psn);
    }
}

/* Its own report, from before the node was started again, says that a branch has joined. */
static void
count_branch(struct aggregate *a, const struct branch_config *b)
{
    struct reverse_branch_info info;

    if (reverse_get_branch(a->reverse, b->id, &info) && info.waits) {
        reverse_branch_count(a->reverse, b->id);
        if (b->late) {
            reverse_set_first(a->reverse, b->id, b->first, b->psn);
        }
    }
}

static struct asked_branch *
find_asked(const struct aggregate *a, uint32_t id)
{
    for (size_t i = 0; i < a->n_asked; i++) {
        if (a->asked[i].id == id) {
            return &a->asked[i];
        }
    }
    return NULL;
}

/* Looks for where the queue pairs of those stand that 'config' wants to know of. */
static void
configure_asked(struct aggregate *a, const struct tree_config *config, uint64_t now)
{
    struct asked_branch *asked = must_calloc(config->n_branches, sizeof *asked);
    size_t n = 0;

    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *b = &config->branches[i];
        const struct asked_branch *before = find_asked(a, b->id);

        if (b->join != BRANCH_ASKED || b->found) {
            continue;
        }
        asked[n].id = b->id;
        if (before) {
            asked[n] = *before;
        } else {
            position_init(&asked[n].position, b->psn, now);
        }
        n++;
    }
    free(a->asked);
    a->asked = asked;
    a->n_asked = n;
}

/* CNPs are taken of branches that are in the machine. */
static void
configure_cnps(struct aggregate *a, const struct tree_config *config)
{
    uint32_t window = config->policy.cnp_window_usec;
    uint32_t *ids = must_calloc(config->n_branches, sizeof *ids);
    size_t n = 0;

    for (size_t i = 0; i < config->n_branches; i++) {
        if (is_in_machine(&config->branches[i])) {
            ids[n++] = config->branches[i].id;
        }
    }
    cnp_window_configure(a->cnps, window ? window : CNP_WINDOW_USEC, a->cnp_interval_usec, ids, n);
    free(ids);
}

/* Somebody wants to know whether the branch lives. */
static void
doubt_branch(struct aggregate *a, const struct tree_config *old, const struct branch_config *b,
             uint64_t now)
{
    uint32_t before = 0;

    for (size_t i = 0; i < old->n_branches; i++) {
        before = old->branches[i].id == b->id ? old->branches[i].doubt : before;
    }
    if (b->doubt && b->doubt != before) {
        reverse_doubt(a->reverse, b->id, now);
    }
}

struct reverse_out
aggregate_configure(struct aggregate *a, const struct tree_config *old,
                    const struct tree_config *config, uint64_t now)
{
    const struct group_policy *p = &config->policy;
    uint32_t *left = must_calloc(old->n_branches, sizeof *left);
    size_t n_left = 0;

    for (size_t i = 0; i < old->n_branches; i++) {
        if (is_in_machine(&old->branches[i]) && !has_branch(config, &old->branches[i])) {
            left[n_left++] = old->branches[i].id;
        }
    }
    reverse_set_policy(a->reverse, &(struct reverse_policy){
                                       .nak = p->nak,
                                       .filter = p->filter,
                                       .prune = p->prune,
                                       .liveness_usec = (uint64_t) p->liveness_msec * 1000,
                                       .min_rate = p->min_rate,
                                       .lose_slow = p->lose_slow,
                                       .presume_usec = presume_usec(config),
                                   });
    struct reverse_out result = reverse_branches_remove(a->reverse, left, n_left, now);

    free(left);
    if (!config->n_branches) {
        reverse_forget_past(a->reverse);
    }
    addr_map_destroy(a->branches);
    a->branches = addr_map_create(config->n_branches);
    a->config = config;
    a->any_joins = false;
    a->next = (struct l3_next){.until = 0};
    response_auth_configure(a->auth, &config->auth);
    plane_use_configure(&a->plane, old->parent_planes, old->n_parent_planes, config->parent_planes,
                        config->n_parent_planes);
    configure_asked(a, config, now);
    configure_cnps(a, config);
    for (size_t i = 0; i < config->n_branches; i++) {
        const struct branch_config *b = &config->branches[i];

        addr_map_insert(a->branches, &b->address, b->kind, (void *) (uintptr_t) b);
        if (!is_in_machine(b)) {
            continue;
        }
        if (!had_branch(old, b)) {
            add_branch(a, b, now);
        } else if (b->join == BRANCH_COUNTS) {
            count_branch(a, b);
        }
        a->any_joins |= b->join != BRANCH_COUNTS;
        reverse_ask_when_idle(a->reverse, b->id,
                              b->kind == BRANCH_RECEIVER && b->join != BRANCH_WAITS);
        doubt_branch(a, old, b, now);
    }
    return result;
}

/* By which plane responses go; NULL: there is one way. */
static const struct plane_config *
plane_of(const struct aggregate *a)
{
    return a->config->n_parent_planes ? &a->config->parent_planes[a->plane.used] : NULL;
}

struct reverse_out
aggregate_look_at_planes(struct aggregate *a, const struct node_base *node, uint64_t now)
{
    const struct tree_config *c = a->config;
    size_t to;
    enum plane_move move =
        plane_use_look(&a->plane, node, c->parent_planes, c->n_parent_planes, &to);

    if (move != PLANE_STAYS) {
        TRACE(&node->tracer, "group %s epoch %u: responses go by plane %s", c->group, c->epoch,
              c->parent_planes[to].name);
        plane_use_move(&a->plane, to, move, now);
        a->next = (struct l3_next){.until = 0};
    }
    return move == PLANE_FAILED ? reverse_repeat(a->reverse, now)
                                : (struct reverse_out){.send = false};
}

const struct branch_config *
aggregate_branch(const struct aggregate *a, enum branch_kind kind, const struct in6_addr *addr)
{
    return addr_map_find(a->branches, addr, kind);
}

static bool
is_cnp(const struct parsed *h)
{
    return h->bth_ofs && h->opcode == ROCE_CNP;
}

static enum drop_reason
check(const uint8_t *data, const struct parsed *h)
{
    return is_cnp(h) ? cnp_check(data, h) : response_check(data, h);
}

enum drop_reason
aggregate_check_plain(const uint8_t *data, const struct parsed *h)
{
    return h->inner.ofs ? DROP_not_for_us : check(data, h);
}

enum drop_reason
aggregate_check_tunnelled(const uint8_t *data, const struct parsed *h)
{
    bool has_srh = h->ip.n_ext == 1 && h->srh_ofs && !h->segments_left && h->data_ofs;

    if (!h->inner.ofs || (h->ip.n_ext && !has_srh)) {
        return DROP_response_outer;
    }
    return check(data, h);
}

int32_t
aggregate_shift(const struct aggregate *a, const struct branch_config *b)
{
    struct reverse_branch_info info;

    if (b->kind != BRANCH_RECEIVER || (!b->late && !a->any_joins)) {
        return 0;
    }
    bool joined = reverse_get_branch(a->reverse, b->id, &info) && info.late;
    return joined ? psn_cmp(b->psn, info.first) : 0;
}

static const struct branch_config *
find_branch(const struct tree_config *c, uint32_t id)
{
    for (size_t i = 0; i < c->n_branches; i++) {
        if (c->branches[i].id == id) {
            return &c->branches[i];
        }
    }
    return NULL;
}

/* The next question of the machine; *psn is in the receiver's numbers. */
static const struct branch_config *
next_question(struct aggregate *a, psn_t *psn)
{
    uint32_t id;

    if (!reverse_next_question(a->reverse, &id, psn)) {
        return NULL;
    }
    const struct branch_config *b = find_branch(a->config, id);
    struct reverse_branch_info info;
    bool waits = reverse_get_branch(a->reverse, id, &info) && info.waits;

    *psn = waits ? psn_add(b->psn, -1) : psn_add(*psn, aggregate_shift(a, b));
    return b;
}

/* Notes whose position has become known. */
static void
note_positions(struct aggregate *a)
{
    for (size_t i = 0; i < a->n_asked; i++) {
        struct asked_branch *asked = &a->asked[i];

        if (!asked->said && position_deadline(&asked->position) == UINT64_MAX) {
            asked->said = true;
            a->n_decided++;
        }
    }
}

/* The next question to one whose position is looked for. */
static const struct branch_config *
next_look(struct aggregate *a, uint64_t now, psn_t *psn)
{
    for (size_t i = 0; i < a->n_asked; i++) {
        if (position_timer(&a->asked[i].position, now, psn)) {
            return find_branch(a->config, a->asked[i].id);
        }
    }
    return NULL;
}

struct packet *
aggregate_question(struct aggregate *a, struct packet_pool *pool, uint64_t now,
                   const struct branch_config **to)
{
    const struct tree_config *c = a->config;
    const struct branch_config *b;
    psn_t psn;

    while ((b = next_question(a, &psn)) || (b = next_look(a, now, &psn))) {
        struct packet *p = question_build(pool, &c->proxy, &b->address, a->sport, b->qpn, psn);

        if (p) {
            *to = b;
            return p; /* Without a buffer it is asked again in the next tick. */
        }
    }
    note_positions(a);
    return NULL;
}

static uint64_t
asked_deadline(const struct aggregate *a)
{
    uint64_t first = UINT64_MAX;

    for (size_t i = 0; i < a->n_asked; i++) {
        uint64_t deadline = position_deadline(&a->asked[i].position);

        first = deadline < first ? deadline : first;
    }
    return first;
}

uint64_t
aggregate_deadline(const struct aggregate *a)
{
    uint64_t first = reverse_deadline(a->reverse);
    uint64_t asked = a->n_asked ? asked_deadline(a) : UINT64_MAX;
    uint64_t cnps = cnp_window_deadline(a->cnps);

    first = asked < first ? asked : first;
    return cnps < first ? cnps : first;
}

struct reverse_out
aggregate_timer(struct aggregate *a, uint64_t now, bool *cnp)
{
    uint32_t id;

    *cnp = cnp_window_timer(a->cnps, now, &id);
    return reverse_deadline(a->reverse) <= now ? reverse_timer(a->reverse, now)
                                               : (struct reverse_out){.send = false};
}

void
aggregate_get_info(const struct aggregate *a, struct reverse_info *info)
{
    reverse_get_info(a->reverse, info);
    info->n_decided += a->n_decided;
}

bool
aggregate_get_branch(const struct aggregate *a, uint32_t id, struct reverse_branch_info *info)
{
    static const enum reverse_loss losses[] = {
        [POSITION_LOOKING] = LOSS_NONE,      [POSITION_TESTING] = LOSS_NONE,
        [POSITION_FOUND] = LOSS_NONE,        [POSITION_HALF] = LOSS_HALF,
        [POSITION_SILENT] = LOSS_UNANSWERED,
    };
    const struct asked_branch *asked = find_asked(a, id);

    if (!asked) {
        return reverse_get_branch(a->reverse, id, info);
    }
    *info = (struct reverse_branch_info){
        .id = id,
        .waits = true,
        .found = asked->position.state == POSITION_FOUND,
        .una = asked->position.psn,
        .lost = losses[asked->position.state],
    };
    return true;
}

static psn_t
shift_back(psn_t psn, int32_t shift)
{
    bool wraps = (int32_t) psn.v - shift < 0 || (int32_t) psn.v - shift > (int32_t) PSN_MASK;

    return psn_add(psn, DEFECT(JOIN_SIGN) && wraps ? shift : -shift);
}

/* What a queue pair that has received nothing says to a duplicate (H44). */
static bool
is_fresh(psn_t psn, uint8_t syndrome, uint32_t msn)
{
    return aeth_class(syndrome) == AETH_CLASS_ACK && psn.v == PSN_MASK && !msn;
}

/* A response of a receiver that waits: it tells where its queue pair is. */
static void
take_position(struct aggregate *a, const struct branch_config *b, psn_t psn, uint8_t syndrome,
              uint32_t msn, uint64_t now)
{
    bool is_ack = aeth_class(syndrome) == AETH_CLASS_ACK;
    psn_t expected = is_ack ? psn_add(psn, 1) : psn;
    bool fatal = aeth_class(syndrome) == AETH_CLASS_NAK && syndrome != AETH_NAK_PSN_SEQ;

    reverse_heard(a->reverse, b->id);
    if (b->join != BRANCH_ADMITTED) {
        return; /* Nobody has asked. */
    }
    reverse_position(a->reverse, b->id,
                     !fatal && (is_fresh(psn, syndrome, msn) || psn_eq(expected, b->psn)), now);
}

/* A CNP of a branch (R19).  'interval_usec': one counts in this time; 0: all do. */
static enum drop_reason
note_cnp(struct aggregate *a, uint32_t id, bool own, uint32_t interval_usec, uint64_t now)
{
    struct reverse_branch_info info;

    if (reverse_get_branch(a->reverse, id, &info) && info.lost) {
        return DROP_unknown_branch;
    }
    return cnp_window_note(a->cnps, id, own, interval_usec, now);
}

void
aggregate_marked(struct aggregate *a, uint32_t id, uint64_t now)
{
    enum cnp_source by = a->config->policy.cnp;
    struct cnp_branch_stats stats;

    if (by == CNP_EDGE || (by == CNP_AUTO && cnp_window_get(a->cnps, id, &stats) && !stats.n_own)) {
        note_cnp(a, id, false, a->cnp_interval_usec, now);
    }
}

enum drop_reason
aggregate_response(struct aggregate *a, const struct branch_config *b, const uint8_t *data,
                   const struct parsed *h, uint64_t now, struct reverse_out *out)
{
    const struct bth *bth = (const void *) (data + h->bth_ofs);
    const struct aeth *aeth = (const void *) (data + h->ext_ofs);
    psn_t psn = bth_psn(bth);
    uint32_t msn = be24_get(aeth->msn);
    enum drop_reason why;

    if (is_cnp(h)) {
        uint32_t interval = b->kind == BRANCH_NODE ? 0 : a->cnp_interval_usec;

        return a->config->policy.cnp == CNP_OFF ? DROP_cnp
                                                : note_cnp(a, b->id, true, interval, now);
    }
    if (!is_in_machine(b)) {
        struct asked_branch *asked = find_asked(a, b->id);

        if (asked) {
            position_answer(&asked->position, aeth->syndrome, psn, msn, now);
            note_positions(a);
        }
        return DROP_none;
    }
    if (b->kind == BRANCH_RECEIVER) {
        struct reverse_branch_info info;

        if (b->join != BRANCH_COUNTS && reverse_get_branch(a->reverse, b->id, &info)
            && info.waits) {
            take_position(a, b, psn, aeth->syndrome, msn, now);
            return DROP_none;
        }
        bool fresh = is_fresh(psn, aeth->syndrome, msn);

        psn = shift_back(psn, aggregate_shift(a, b));
        if (fresh && reverse_may_be_fresh(a->reverse, b->id, psn) && !DEFECT(JOIN_BELOW)) {
            reverse_heard(a->reverse, b->id);
            return DROP_none;
        }
    }
    *out = reverse_response(a->reverse, b->id, psn, aeth->syndrome, msn, now, &why);
    return why;
}

enum drop_reason
aggregate_verify(struct aggregate *a, const struct in6_addr *child, const uint8_t *data,
                 const struct parsed *h)
{
    const struct ip6_hdr_wire *outer = (const void *) (data + h->ip.ofs);
    const struct auth_config *auth = &a->config->auth;
    const struct response_pair pair = {*child, outer->dst};
    struct in6_addr own = node_address(node_id_of(&pair.parent_sid));
    bool is_source = tree_config_is_source(a->config, &own);

    return auth->responses
               ? response_auth_verify(a->auth, a->config, &pair,
                                      is_source ? auth->response_instance : auth->instance, data, h)
               : DROP_none;
}

enum drop_reason
aggregate_tunnelled(struct aggregate *a, const uint8_t *data, const struct parsed *h, uint64_t now,
                    struct reverse_out *out)
{
    const struct ip6_hdr_wire *outer = (const void *) (data + h->ip.ofs);
    const struct ip6_hdr_wire *inner = (const void *) (data + h->inner.ofs);
    const struct branch_config *b = aggregate_branch(a, BRANCH_NODE, &outer->src);

    if (!b) {
        return DROP_unknown_branch;
    }
    enum drop_reason why = aggregate_verify(a, &b->address, data, h);
    if (why) {
        return why;
    }
    if (memcmp(&inner->dst, &a->config->source, sizeof inner->dst)) {
        return DROP_response_outer;
    }
    return aggregate_response(a, b, data, h, now, out);
}

/* Puts in front of a response or CNP what brings it to the parent, if this is not the node that answers
 * the source. */
static enum drop_reason
wrap(const struct aggregate *a, struct packet *p, const struct in6_addr *own)
{
    const struct tree_config *c = a->config;
    const struct plane_config *plane = plane_of(a);
    bool is_source = tree_config_is_source(c, own);
    struct response_pair pair = {*own, c->parent_sid};
    const struct in6_addr *dst = plane                                         ? &plane->program
                                 : IN6_IS_ADDR_UNSPECIFIED(&c->parent_program) ? &pair.parent_sid
                                                                               : &c->parent_program;

    if (is_source || (c->root && !c->auth.key)) {
        return DROP_none;
    }
    if (c->root) {
        pair.parent_sid = node_sid(node_id_of(&c->outer_source), SID_FUNC_RESPONSE);
        dst = &pair.parent_sid;
    }
    if (c->auth.key) {
        return response_auth_seal(a->auth, c, &pair, dst, p);
    }
    response_wrap(p, own, dst);
    return DROP_none;
}

struct packet *
aggregate_build(const struct aggregate *a, struct packet_pool *pool, const struct in6_addr *own,
                const struct reverse_out *out, enum drop_reason *why)
{
    const struct tree_config *c = a->config;
    uint32_t qpn = c->root ? c->source_qpn : c->designated_qpn;
    struct packet *p;

    if (!c->root && IN6_IS_ADDR_UNSPECIFIED(&c->parent_sid)) {
        *why = DROP_no_parent;
        return NULL;
    }
    p = out ? response_build(pool, &c->proxy, &c->source, a->sport, qpn, out->psn, out->syndrome,
                             out->msn)
            : cnp_build(pool, &c->proxy, &c->source, a->sport, qpn);
    *why = p ? wrap(a, p, own) : DROP_pool_empty;
    if (p && *why) {
        packet_put(p);
        p = NULL;
    }
    return p;
}

static bool
send_one(struct aggregate *a, struct node_base *node, const struct reverse_out *out, uint64_t now)
{
    const struct plane_config *plane = plane_of(a);
    enum drop_reason why;

    if (plane && plane_is_down(node, plane)) {
        aggregate_look_at_planes(a, node, now); /* what is said now says it all. */
        plane = plane_of(a);
    }
    struct packet *p = aggregate_build(a, node->pool, &node->address, out, &why);
    if (p) {
        why = plane && plane->port ? l3_output_port(node->l3, p, plane->port, L3_ERRORS_NONE, now)
                                   : l3_output_next(node->l3, p, &a->next, L3_ERRORS_NONE, now);
    }
    node_count_drop(node, why);
    return p != NULL;
}

void
aggregate_send_cnp(struct aggregate *a, struct node_base *node, uint64_t now)
{
    send_one(a, node, NULL, now);
}

bool
aggregate_send(struct aggregate *a, struct node_base *node, const struct reverse_out *out,
               uint64_t now)
{
    if (!out->send) {
        return false;
    }
    if (out->syndrome == AETH_NAK_PSN_SEQ) {
        /* Something was lost, there or back. */
        plane_doubt(&a->plane, node, a->config->parent_planes, a->config->n_parent_planes, now);
    }
    if (a->config->root && out->moved && out->syndrome == AETH_NAK_PSN_SEQ) {
        struct reverse_out ack = reverse_ack_before(a->reverse, out);
        send_one(a, node, &ack, now);
    }
    return send_one(a, node, out, now);
}
