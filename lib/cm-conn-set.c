/* SPDX-License-Identifier: Apache-2.0
 *
 * Which RDMA-CM connections there are.
 *
 * All that are shown are in a list; those that are remembered for late copies of their REQ only are
 * not.  Each is found by its own ID, a passive one by its REQ, and one that has not ended by the
 * program's queue pair.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/cm-conn-impl.h"

#define PASSIVE_BIT 0x80000000u

static const char *const roles[] = {[CM_PASSIVE] = "passive", [CM_ACTIVE] = "active"};
WORDS_DEFINE(cm_role, enum cm_role, roles);

static const char *const states[] = {
    [CM_REQUESTED] = "requested", [CM_ACCEPTED] = "accepted", [CM_CONNECTING] = "connecting",
    [CM_REFUSED] = "refused",     [CM_ANSWERED] = "answered", [CM_ESTABLISHED] = "established",
    [CM_CLOSING] = "closing",     [CM_ENDED] = "ended",
};
WORDS_DEFINE(cm_state, enum cm_state, states);

static const char *const causes[] = {
    [CM_NOT_ENDED] = "none",       [CM_BY_DREQ] = "dreq",       [CM_BY_REJ] = "rej",
    [CM_BY_DECISION] = "decision", [CM_BY_SILENCE] = "silence", [CM_BY_NEW_REQ] = "new-req",
};
WORDS_DEFINE(cm_cause, enum cm_cause, causes);

static const char *const decisions[] = {
    [CM_UNDECIDED] = "undecided",
    [CM_ACCEPT] = "accept",
    [CM_REJECT] = "reject",
    [CM_CLOSE] = "close",
};
WORDS_DEFINE(cm_decision, enum cm_decision, decisions);

struct cm_conns *
cm_conns_create(uint32_t first_id, cm_send_func *send, void *aux)
{
    struct cm_conns *conns = must_calloc(1, sizeof *conns);

    conns->send = send;
    conns->aux = aux;
    conns->next_id = first_id;
    return conns;
}

void
cm_conns_destroy(struct cm_conns *conns)
{
    if (!conns) {
        return;
    }
    for (size_t i = 0; i < conns->by_id.n_buckets; i++) {
        while (conns->by_id.buckets[i]) {
            cm_conn_forget(conns, conns->by_id.buckets[i]->owner);
        }
    }
    hash_index_uninit(&conns->by_id);
    hash_index_uninit(&conns->by_remote);
    hash_index_uninit(&conns->by_qp);
    for (size_t i = 0; i < conns->hosts.n_buckets; i++) {
        while (conns->hosts.buckets[i]) {
            struct cm_host *h = conns->hosts.buckets[i]->owner;

            hash_index_remove(&conns->hosts, &h->by_addr);
            free(h);
        }
    }
    hash_index_uninit(&conns->hosts);
    deadlines_uninit(&conns->deadlines);
    free(conns->list);
    free(conns);
}

/* Finding. */

/* Of a pair of addresses and a number of the host's. */
static uint64_t
hash_of(const struct in6_addr *proxy, const struct in6_addr *host, uint32_t number)
{
    return hash_number(hash_addr(hash_addr(0, proxy), host), number);
}

static bool
is_between(const struct cm_conn *c, const struct in6_addr *proxy, const struct in6_addr *host)
{
    return !memcmp(&c->config.proxy, proxy, sizeof *proxy)
           && !memcmp(&c->config.host, host, sizeof *host);
}

struct cm_conn *
cm_conn_by_id(const struct cm_conns *conns, uint32_t id)
{
    const struct hash_entry *e = hash_index_first(&conns->by_id, hash_number(0, id));

    for (; e; e = hash_index_next(e)) {
        struct cm_conn *c = e->owner;
        if (c->config.id == id) {
            return c;
        }
    }
    return NULL;
}

struct cm_conn *
cm_conn_by_req(const struct cm_conns *conns, const struct in6_addr *proxy,
               const struct in6_addr *host, uint32_t remote_id, uint64_t tid)
{
    const struct hash_entry *e =
        hash_index_first(&conns->by_remote, hash_of(proxy, host, remote_id));

    for (; e; e = hash_index_next(e)) {
        struct cm_conn *c = e->owner;
        if (is_between(c, proxy, host) && c->known.remote_id == remote_id && c->known.tid == tid) {
            return c;
        }
    }
    return NULL;
}

struct cm_conn *
cm_conn_by_remote(const struct cm_conns *conns, const struct in6_addr *proxy,
                  const struct in6_addr *host, uint32_t remote_id)
{
    const struct hash_entry *e =
        hash_index_first(&conns->by_remote, hash_of(proxy, host, remote_id));

    for (; e; e = hash_index_next(e)) {
        struct cm_conn *c = e->owner;
        if (is_between(c, proxy, host) && c->known.remote_id == remote_id
            && c->known.state != CM_ENDED) {
            return c;
        }
    }
    return NULL;
}

bool
cm_conn_has_predecessor(const struct cm_conns *conns, const struct cm_conn *c)
{
    const struct hash_entry *e =
        hash_index_first(&conns->by_remote, hash_of(&c->config.proxy, &c->config.host, 0));

    for (; e; e = hash_index_next(e)) {
        const struct cm_conn *other = e->owner;
        if (other != c && is_between(other, &c->config.proxy, &c->config.host)
            && other->config.role == CM_ACTIVE && other->config.port == c->config.port) {
            return true;
        }
    }
    return false;
}

struct cm_conn *
cm_conn_by_qp(const struct cm_conns *conns, const struct in6_addr *proxy,
              const struct in6_addr *host, uint32_t qpn)
{
    const struct hash_entry *e = hash_index_first(&conns->by_qp, hash_of(proxy, host, qpn));

    for (; e; e = hash_index_next(e)) {
        struct cm_conn *c = e->owner;
        if (is_between(c, proxy, host) && c->known.qpn == qpn) {
            return c;
        }
    }
    return NULL;
}

uint32_t
cm_conns_new_id(struct cm_conns *conns)
{
    uint32_t id;

    do {
        id = conns->next_id++ | PASSIVE_BIT;
    } while (cm_conn_by_id(conns, id));
    return id;
}

/* How many a host has. */

static struct cm_host *
find_host(const struct cm_conns *conns, const struct in6_addr *addr)
{
    const struct hash_entry *e = hash_index_first(&conns->hosts, hash_addr(0, addr));

    for (; e; e = hash_index_next(e)) {
        struct cm_host *h = e->owner;
        if (!memcmp(&h->addr, addr, sizeof *addr)) {
            return h;
        }
    }
    return NULL;
}

static struct cm_host *
make_host(struct cm_conns *conns, const struct in6_addr *addr)
{
    struct cm_host *h = must_calloc(1, sizeof *h);

    h->addr = *addr;
    hash_index_insert(&conns->hosts, &h->by_addr, hash_addr(0, addr), h);
    return h;
}

static void
count(struct cm_conns *conns, struct cm_conn *c, enum cm_counted counted)
{
    if (counted == c->counted) {
        return;
    }
    struct cm_host *h = find_host(conns, &c->config.host);
    if (!h) {
        h = make_host(conns, &c->config.host);
    }
    h->n[counted]++;
    h->n[c->counted]--;
    c->counted = counted;
}

/* Whatever the registry is about to do with it, or has not done yet, counts. */
static enum cm_counted
counts_as(const struct cm_conn *c)
{
    bool ended = c->known.state == CM_ENDED;

    return c->config.role != CM_PASSIVE                  ? CM_COUNTS_NOT
           : !c->registered                              ? ended ? CM_COUNTS_ENDED : CM_COUNTS_OPEN
           : ended || c->config.decision == CM_UNDECIDED ? CM_COUNTS_OPEN
                                                         : CM_COUNTS_NOT;
}

void
cm_conn_count(struct cm_conns *conns, struct cm_conn *c)
{
    count(conns, c, counts_as(c));
}

bool
cm_conns_may_begin(struct cm_conns *conns, const struct in6_addr *host, uint64_t now)
{
    struct cm_host *h = find_host(conns, host);

    if (!h) {
        h = make_host(conns, host);
    }
    uint64_t busy_until = (h->busy_until > now ? h->busy_until : now) + CM_REQ_USEC;
    if (h->n[CM_COUNTS_OPEN] >= CM_CONNS_PER_HOST
        || busy_until > now + (uint64_t) CM_REQS_AT_ONCE * CM_REQ_USEC) {
        return false;
    }
    h->busy_until = busy_until;
    return true;
}

bool
cm_conn_is_too_many(const struct cm_conns *conns, const struct cm_conn *c)
{
    const struct cm_host *h = find_host(conns, &c->config.host);

    return c->counted == CM_COUNTS_ENDED && h->n[CM_COUNTS_ENDED] > CM_CONNS_PER_HOST;
}

/* What is shown. */

static void
show(struct cm_conns *conns, struct cm_conn *c)
{
    if (conns->n_listed == conns->list_size) {
        size_t size = conns->list_size ? 2 * conns->list_size : 16;
        struct cm_conn **list = must_calloc(size, sizeof *list);

        for (size_t i = 0; i < conns->n_listed; i++) {
            list[i] = conns->list[i];
        }
        free(conns->list);
        conns->list = list;
        conns->list_size = size;
    }
    conns->list[conns->n_listed++] = c;
    c->list_pos = conns->n_listed;
}

void
cm_conn_hide(struct cm_conns *conns, struct cm_conn *c)
{
    if (c->list_pos) {
        struct cm_conn *last = conns->list[--conns->n_listed];

        conns->list[c->list_pos - 1] = last;
        last->list_pos = c->list_pos;
        c->list_pos = 0;
        conns->version++;
    }
}

size_t
cm_conns_n(const struct cm_conns *conns)
{
    return conns->n_listed;
}

void
cm_conns_get(const struct cm_conns *conns, size_t i, struct cm_conn_info *info)
{
    const struct cm_conn *c = conns->list[i];

    *info = (struct cm_conn_info){
        .id = c->config.id,
        .role = c->config.role,
        .proxy = c->config.proxy,
        .host = c->config.host,
        .configured = c->registered,
        .known = &c->known,
    };
}

uint64_t
cm_conns_version(const struct cm_conns *conns)
{
    return conns->version;
}

/* Coming and going. */

struct cm_conn *
cm_conn_make(struct cm_conns *conns, const struct cm_conn_config *config,
             const struct cm_known *known)
{
    struct cm_conn *c = must_calloc(1, sizeof *c);

    c->config = *config;
    c->known = *known;
    conns->n++;
    if (conns->n > conns->deadlines.allocated) {
        deadlines_reserve(&conns->deadlines, 2 * conns->n);
    }
    hash_index_insert(&conns->by_id, &c->by_id, hash_number(0, config->id), c);
    hash_index_insert(
        &conns->by_remote, &c->by_remote,
        hash_of(&config->proxy, &config->host, config->role == CM_PASSIVE ? known->remote_id : 0),
        c);
    cm_conn_changed(conns, c);
    return c;
}

void
cm_conn_changed(struct cm_conns *conns, struct cm_conn *c)
{
    hash_index_remove(&conns->by_qp, &c->by_qp);
    if (c->known.qpn && c->known.state != CM_ENDED) {
        hash_index_insert(&conns->by_qp, &c->by_qp,
                          hash_of(&c->config.proxy, &c->config.host, c->known.qpn), c);
    }
    cm_conn_count(conns, c);
    if (!c->list_pos) {
        show(conns, c);
    }
    conns->version++;
}

void
cm_conn_forget(struct cm_conns *conns, struct cm_conn *c)
{
    cm_conn_hide(conns, c);
    cm_conn_set_timer(conns, c, UINT64_MAX);
    count(conns, c, CM_COUNTS_NOT);
    hash_index_remove(&conns->by_id, &c->by_id);
    hash_index_remove(&conns->by_remote, &c->by_remote);
    hash_index_remove(&conns->by_qp, &c->by_qp);
    conns->n--;
    free(c);
}

void
cm_conn_set_timer(struct cm_conns *conns, struct cm_conn *c, uint64_t when)
{
    deadlines_set(&conns->deadlines, &c->deadline, when, c);
}
