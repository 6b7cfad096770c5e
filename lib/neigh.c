/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbour cache.
 *
 *                    use                     answer
 *     (no entry) ----------> INCOMPLETE ---------------> REACHABLE
 *          ^                     | 3 unanswered           |     ^
 *          |  1 s                v                 30 s,  |     | answer
 *          +------------------ FAILED              used   v     |
 *          |                                          PROBE ----+
 *          +---------------------------------------------+
 *                         3 unanswered
 *
 * INCOMPLETE asks everybody and holds packets; FAILED refuses packets at once,
 * so that a dead next hop costs one question per second at most; PROBE asks the
 * known MAC while packets keep flowing there.  A neighbour that is not used is
 * not probed: there is no traffic without need, and what RFC 4861 calls STALE is
 * REACHABLE with its time run out.
 *
 * What packets can do to the cache is bounded.  Entries are made by what this
 * node sends (neigh_resolve) and by the port's peer (neigh_learn), are found by
 * port and address, so one port cannot touch another's, and are at most
 * NEIGH_MAX_PER_PORT per port: the least recently used one makes room, one
 * that is not resolved first (RFC 6583 section 6).  Each port's list is
 * kept in order of use; as links are point to point, the first is nearly always
 * the one looked for.
 */
#include "lib/neigh.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

enum neigh_state { NEIGH_INCOMPLETE, NEIGH_REACHABLE, NEIGH_PROBE, NEIGH_FAILED };

struct neigh {
    struct neigh *prev; /* in the port's list. */
    struct neigh *next; /* in the port's list, or in the free list. */
    struct in6_addr addr;
    uint16_t port;
    uint8_t mac[6];
    enum neigh_state state;
    unsigned n_solicits; /* questions sent in this state. */
    /* REACHABLE: verify when used after this; others: act then. */
    uint64_t deadline;
    struct packet *queue; /* oldest first, linked by packet's next. */
    struct packet **queue_end;
    unsigned n_queue;
};

struct neigh_list {
    struct neigh *first; /* most recently used. */
    struct neigh *last;
    unsigned n;
    uint64_t changes; /* of the list, its order, and of MAC, state and time of what is in it. */
};

struct neigh_table {
    struct neigh_ops ops;
    struct neigh_list ports[NEIGH_PORTS];
    struct neigh *free;
    size_t n;
    unsigned n_queued; /* packets that wait in all entries. */
    uint64_t deadline; /* not later than any entry's that has a timer. */
    struct neigh entries[NEIGH_MAX];
};

static void
list_push(struct neigh_list *list, struct neigh *e)
{
    list->changes++;
    e->prev = NULL;
    e->next = list->first;
    if (list->first) {
        list->first->prev = e;
    } else {
        list->last = e;
    }
    list->first = e;
    list->n++;
}

static void
list_remove(struct neigh_list *list, struct neigh *e)
{
    list->changes++;
    if (e->prev) {
        e->prev->next = e->next;
    } else {
        list->first = e->next;
    }
    if (e->next) {
        e->next->prev = e->prev;
    } else {
        list->last = e->prev;
    }
    list->n--;
}

static bool
is_resolved(const struct neigh *e)
{
    return e->state == NEIGH_REACHABLE || e->state == NEIGH_PROBE;
}

static struct packet *
dequeue(struct neigh_table *t, struct neigh *e)
{
    struct packet *p = e->queue;

    if (p) {
        e->queue = p->next;
        e->n_queue--;
        t->n_queued--;
        if (!e->queue) {
            e->queue_end = &e->queue;
        }
        p->next = NULL;
    }
    return p;
}

static void
enqueue(struct neigh_table *t, struct neigh *e, struct packet *p)
{
    bool full = e->n_queue == NEIGH_QUEUE_MAX || t->n_queued == NEIGH_QUEUED_MAX;

    if (full && !e->n_queue) {
        t->ops.drop(t->ops.aux, e->port, p, DROP_neigh_queue);
        return;
    }
    if (full) {
        t->ops.drop(t->ops.aux, e->port, dequeue(t, e), DROP_neigh_queue);
    }
    p->next = NULL;
    *e->queue_end = p;
    e->queue_end = &p->next;
    e->n_queue++;
    t->n_queued++;
}

static void
drop_queue(struct neigh_table *t, struct neigh *e, enum drop_reason reason)
{
    struct packet *p;

    while ((p = dequeue(t, e))) {
        t->ops.drop(t->ops.aux, e->port, p, reason);
    }
}

static void
set_timer(struct neigh_table *t, struct neigh *e, uint64_t deadline)
{
    e->deadline = deadline;
    if (deadline < t->deadline) {
        t->deadline = deadline;
    }
}

static void
solicit(struct neigh_table *t, struct neigh *e, uint64_t now)
{
    e->n_solicits++;
    set_timer(t, e, now + NEIGH_RETRANS_USEC);
    t->ops.solicit(t->ops.aux, e->port, &e->addr, e->state == NEIGH_PROBE ? e->mac : NULL);
}

static void
start_asking(struct neigh_table *t, struct neigh *e, enum neigh_state state, uint64_t now)
{
    t->ports[e->port].changes++;
    e->state = state;
    e->n_solicits = 0;
    solicit(t, e, now);
}

static void
remove_entry(struct neigh_table *t, struct neigh *e, enum drop_reason reason)
{
    drop_queue(t, e, reason);
    list_remove(&t->ports[e->port], e);
    e->next = t->free;
    t->free = e;
    t->n--;
}

/* Gives the least recently used entry of the port up, an unresolved one first.
 * There is one. */
static void
evict(struct neigh_table *t, uint16_t port)
{
    struct neigh *victim = t->ports[port].last;

    assert(victim);
    for (struct neigh *e = victim; e; e = e->prev) {
        if (!is_resolved(e)) {
            victim = e;
            break;
        }
    }
    remove_entry(t, victim, DROP_neigh_queue);
}

static struct neigh *
find(const struct neigh_table *t, uint16_t port, const struct in6_addr *addr)
{
    struct neigh *e = t->ports[port].first;

    while (e && !IN6_ARE_ADDR_EQUAL(&e->addr, addr)) {
        e = e->next;
    }
    return e;
}

/* NULL if the table is full and none of the entries is this port's. */
static struct neigh *
make(struct neigh_table *t, uint16_t port, const struct in6_addr *addr)
{
    struct neigh_list *list = &t->ports[port];

    if (list->n == NEIGH_MAX_PER_PORT || (!t->free && list->n)) {
        evict(t, port);
    }
    struct neigh *e = t->free;
    if (!e) {
        return NULL;
    }
    t->free = e->next;
    t->n++;

    *e = (struct neigh){.port = port, .addr = *addr};
    e->queue_end = &e->queue;
    list_push(list, e);
    return e;
}

struct neigh_table *
neigh_table_create(const struct neigh_ops *ops)
{
    struct neigh_table *t = must_calloc(1, sizeof *t);
    t->ops = *ops;
    t->deadline = UINT64_MAX;
    for (size_t i = NEIGH_MAX; i-- > 0;) {
        t->entries[i].next = t->free;
        t->free = &t->entries[i];
    }
    return t;
}

void
neigh_table_destroy(struct neigh_table *t)
{
    if (!t) {
        return;
    }
    for (size_t port = 0; port < NEIGH_PORTS; port++) {
        for (struct neigh *e = t->ports[port].first; e; e = e->next) {
            struct packet *p;
            while ((p = dequeue(t, e))) {
                packet_put(p);
            }
        }
    }
    free(t);
}

enum drop_reason
neigh_resolve(struct neigh_table *t, uint16_t port, const struct in6_addr *addr, struct packet *p,
              uint64_t now, const uint8_t **mac)
{
    assert(port < NEIGH_PORTS);
    struct neigh_list *list = &t->ports[port];
    struct neigh *e = find(t, port, addr);

    *mac = NULL;
    if (!e) {
        e = make(t, port, addr);
        if (!e) {
            return DROP_neigh_queue;
        }
        start_asking(t, e, NEIGH_INCOMPLETE, now);
    } else if (e != list->first) {
        list_remove(list, e);
        list_push(list, e);
    }

    switch (e->state) {
    case NEIGH_INCOMPLETE: enqueue(t, e, p); return DROP_none;
    case NEIGH_REACHABLE:
        if (now >= e->deadline) {
            start_asking(t, e, NEIGH_PROBE, now);
        }
        break;
    case NEIGH_PROBE: break;
    case NEIGH_FAILED: return DROP_no_neighbour;
    }
    *mac = e->mac;
    return DROP_none;
}

const uint64_t *
neigh_changes(const struct neigh_table *t, uint16_t port)
{
    return &t->ports[port].changes;
}

uint64_t
neigh_until(const struct neigh_table *t, uint16_t port)
{
    const struct neigh *e = t->ports[port].first;

    return e->state == NEIGH_REACHABLE ? e->deadline : UINT64_MAX;
}

void
neigh_touch(struct neigh_table *t)
{
    for (size_t port = 0; port < NEIGH_PORTS; port++) {
        t->ports[port].changes++;
    }
}

/* The neighbour is at e->mac.  Sends what waited. */
static void
resolved(struct neigh_table *t, struct neigh *e, uint64_t verify_after)
{
    struct packet *p;

    t->ports[e->port].changes++;
    e->state = NEIGH_REACHABLE;
    e->deadline = verify_after;
    while ((p = dequeue(t, e))) {
        t->ops.send(t->ops.aux, e->port, p, e->mac);
    }
}

void
neigh_answer(struct neigh_table *t, uint16_t port, const struct in6_addr *addr, const uint8_t *mac,
             bool override, uint64_t now)
{
    assert(port < NEIGH_PORTS);
    struct neigh *e = find(t, port, addr);

    if (!e || (e->state != NEIGH_INCOMPLETE && e->state != NEIGH_PROBE)) {
        return;
    }
    /* RFC 4861 section 7.2.5: an answer that names no MAC confirms the one known;
     * without the O flag it must not replace it. */
    bool known = e->state == NEIGH_PROBE;
    if (mac ? known && !override && memcmp(mac, e->mac, sizeof e->mac) != 0 : !known) {
        return;
    }
    if (mac) {
        memcpy(e->mac, mac, sizeof e->mac);
    }
    resolved(t, e, now + NEIGH_REACHABLE_USEC);
}

void
neigh_learn(struct neigh_table *t, uint16_t port, const struct in6_addr *addr, const uint8_t mac[6],
            uint64_t now)
{
    assert(port < NEIGH_PORTS);
    struct neigh *e = find(t, port, addr);

    if (!e) {
        e = make(t, port, addr);
        if (!e) {
            return;
        }
    } else if (is_resolved(e) && !memcmp(mac, e->mac, sizeof e->mac)) {
        return;
    }
    memcpy(e->mac, mac, sizeof e->mac);
    resolved(t, e, now);
}

void
neigh_flush(struct neigh_table *t, uint16_t port)
{
    assert(port < NEIGH_PORTS);
    while (t->ports[port].first) {
        remove_entry(t, t->ports[port].first, DROP_port_down);
    }
}

uint64_t
neigh_deadline(const struct neigh_table *t)
{
    return t->deadline;
}

static void
expire(struct neigh_table *t, struct neigh *e, uint64_t now)
{
    if (e->state == NEIGH_FAILED) {
        remove_entry(t, e, DROP_no_neighbour);
    } else if (e->n_solicits < NEIGH_N_SOLICITS) {
        solicit(t, e, now);
    } else if (e->state == NEIGH_PROBE) {
        remove_entry(t, e, DROP_no_neighbour);
    } else {
        drop_queue(t, e, DROP_no_neighbour);
        e->state = NEIGH_FAILED;
        set_timer(t, e, now + NEIGH_HOLD_USEC);
    }
}

void
neigh_timer(struct neigh_table *t, uint64_t now)
{
    if (now < t->deadline) {
        return;
    }
    t->deadline = UINT64_MAX;
    for (size_t port = 0; port < NEIGH_PORTS; port++) {
        struct neigh *next;
        for (struct neigh *e = t->ports[port].first; e; e = next) {
            next = e->next;
            if (e->state == NEIGH_REACHABLE) {
                continue;
            }
            if (now >= e->deadline) {
                expire(t, e, now);
            } else {
                set_timer(t, e, e->deadline);
            }
        }
    }
}

size_t
neigh_count(const struct neigh_table *t)
{
    return t->n;
}

bool
neigh_get(const struct neigh_table *t, size_t i, uint16_t *port, struct in6_addr *addr,
          const uint8_t **mac)
{
    for (size_t n = 0; n < NEIGH_PORTS; n++) {
        const struct neigh_list *list = &t->ports[n];
        if (i >= list->n) {
            i -= list->n;
            continue;
        }
        const struct neigh *e = list->first;
        while (i--) {
            e = e->next;
        }
        *port = e->port;
        *addr = e->addr;
        *mac = is_resolved(e) ? e->mac : NULL;
        return true;
    }
    return false;
}
