/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to other nodes' probes.
 *
 * Theory of operation
 * -------------------
 *     probe -> prober (by source address) -> its rate -> way back -> session -> answer
 *
 * Sessions become known by their packets.  The table is in sets, by a hash of prober and SSID; in a full
 * set the session that was silent for longest makes room.  Who loses its session begins at 0 again, which
 * the other end takes for a restart.
 */
#include "lib/reflector.h"

#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/ecn.h"
#include "lib/hash-index.h"
#include "lib/seq-window.h"

#define SESSION_SETS     512
#define SESSION_SET_SIZE 8
#define SESSION_TABLE    (SESSION_SETS * SESSION_SET_SIZE)

#define ANSWER_GAP       (1000000 / REFLECTOR_RATE)

/* It is gone once nothing came for so many of its intervals.  Who begins to back off needs up to two, */
#define SILENT_INTERVALS 3
/* who goes on needs four times the shorter one of the last two gaps, */
#define SILENT_GAPS      5
/* and nobody needs more than 16 intervals. */
#define SILENT_MAX       (3 * 16)

struct source {
    struct in6_addr address;
    uint64_t next; /* when it may be answered again; may be REFLECTOR_BURST answers ago. */
};

struct session {
    struct in6_addr prober; /* ::: the entry is free. */
    uint16_t ssid;
    uint32_t n_answers;      /* the next one's sequence number. */
    struct seq_window asked; /* by the sequence numbers of the other end. */
    uint64_t used;           /* when the last one came, */
    uint64_t gaps[2];        /* and how long after the one before; before that, likewise. */
};

struct reflector {
    struct node_base *base;
    uint64_t posix_usec;
    size_t n;
    struct source *sources;   /* by address. */
    struct session *sessions; /* NULL: nobody was ever to be answered. */
};

struct reflector *
reflector_create(struct node_base *base, uint64_t posix_usec)
{
    struct reflector *r = must_calloc(1, sizeof *r);

    r->base = base;
    r->posix_usec = posix_usec;
    return r;
}

void
reflector_destroy(struct reflector *r)
{
    free(r->sources);
    free(r->sessions);
    free(r);
}

static struct source *
find_source(const struct reflector *r, const struct in6_addr *address)
{
    /* Its first member is the address. */
    return r->n ? bsearch(address, r->sources, r->n, sizeof *r->sources, address_compare) : NULL;
}

void
reflector_configure(struct reflector *r, const struct node_config *config)
{
    struct source *sources = must_calloc(config->n_probers, sizeof *sources);

    for (size_t i = 0; i < config->n_probers; i++) {
        const struct source *old = find_source(r, &config->probers[i]);

        sources[i] = old ? *old : (struct source){.address = config->probers[i]};
    }
    free(r->sources);
    r->sources = sources;
    r->n = config->n_probers;
    if (r->n && !r->sessions) {
        r->sessions = must_calloc(SESSION_TABLE, sizeof *r->sessions);
    }
}

static bool
may_answer(struct source *s, uint64_t now)
{
    uint64_t burst = (uint64_t) REFLECTOR_BURST * ANSWER_GAP;

    if (s->next + burst < now) {
        s->next = now - burst;
    }
    if (s->next > now) {
        return false;
    }
    s->next += ANSWER_GAP;
    return true;
}

/* Id of the node whose locator is the last uSID of the program; 0: it does not end with one. */
static uint16_t
end_of(const struct program *program)
{
    struct in6_addr last = program->containers[program->n - 1];
    uint16_t id = 0;

    for (size_t i = sizeof last; i > SID_BLOCK_PLEN / 8 && !id; i -= 2) {
        id = (uint16_t) (last.s6_addr[i - 2] << 8 | last.s6_addr[i - 1]);
    }
    return id;
}

/* Is that a way back to the prober?  All of it is uSIDs of the block, and the last one is its own. */
static bool
leads_to(const struct program *back, const struct in6_addr *prober)
{
    for (size_t i = 0; i < back->n; i++) {
        if (!address_is_sid(&back->containers[i])) {
            return false;
        }
    }
    return back->n && end_of(back) == node_id_of(prober);
}

static struct session *
session_set(const struct reflector *r, const struct in6_addr *prober, uint16_t ssid)
{
    uint64_t hash = hash_number(hash_addr(0, prober), ssid);

    return &r->sessions[hash % SESSION_SETS * SESSION_SET_SIZE];
}

static bool
is_session(const struct session *s, const struct in6_addr *prober, uint16_t ssid)
{
    return s->ssid == ssid && IN6_ARE_ADDR_EQUAL(&s->prober, prober);
}

/* Which is noted if it is new. */
static struct session *
find_session(struct reflector *r, const struct in6_addr *prober, const struct stamp *probe)
{
    struct session *set = session_set(r, prober, probe->ssid), *oldest = set;

    for (size_t i = 0; i < SESSION_SET_SIZE; i++) {
        if (is_session(&set[i], prober, probe->ssid)) {
            return &set[i];
        }
        if (set[i].used < oldest->used) {
            oldest = &set[i];
        }
    }
    *oldest = (struct session){
        .prober = *prober,
        .ssid = probe->ssid,
        .asked = {.next = probe->seq},
    };
    return oldest;
}

/* False: this packet was answered before. */
static bool
is_fresh(struct session *s, uint32_t seq)
{
    if ((int32_t) (seq - s->asked.next) >= 0) {
        seq_window_advance(&s->asked, seq);
    }
    switch (seq_window_note(&s->asked, seq)) {
    case SEQ_NEW: return true;
    case SEQ_SEEN: return false;
    case SEQ_OLD: break;
    }
    s->asked = (struct seq_window){.next = seq + 1, .seen = 1}; /* the prober was started again. */
    return true;
}

/* By the link that the first uSID names, or not at all, as uN would. */
static enum drop_reason
send_by_first(struct reflector *r, struct packet *p, const struct in6_addr *first, uint64_t now)
{
    struct l3 *l3 = r->base->l3;
    const struct in6_addr node = node_address(node_id_of(first));
    uint16_t port = l3_port_to(l3, &node);

    if (!port || !l3_port_is_up(l3, port)) {
        packet_put(p);
        return port ? DROP_usid_link_down : DROP_usid_unknown;
    }
    return l3_output_port(l3, p, port, L3_ERRORS_NONE, now);
}

enum drop_reason
reflector_input(struct reflector *r, const struct rx *rx, const struct stamp *probe, uint16_t sport)
{
    const struct ip6_hdr_wire *ip = rx_ip(rx);
    struct source *source = find_source(r, &ip->src);
    uint64_t now_nsec = (r->posix_usec + rx->now) * 1000;
    uint8_t tc = ip6_tc(ip), dscp = tc >> 2;

    if (!source) {
        return DROP_probe_prober;
    }
    if (!may_answer(source, rx->now)) {
        return DROP_probe_rate;
    }
    if (!leads_to(&probe->back, &source->address)) {
        return DROP_probe_return;
    }
    struct session *s = find_session(r, &source->address, probe);
    if (!is_fresh(s, probe->seq)) {
        return DROP_probe_replayed;
    }
    s->gaps[1] = s->gaps[0];
    s->gaps[0] = s->used ? rx->now - s->used : 0;
    s->used = rx->now;
    const struct stamp answer = {
        .is_answer = true,
        .seq = s->n_answers++,
        .sent_nsec = now_nsec,
        .ssid = probe->ssid,
        .no_checksum = probe->no_checksum, /* the answer passes the same nodes. */
        .asked_seq = probe->seq,
        .asked_nsec = probe->sent_nsec,
        .asked_hop_limit = ip->hlim,
        .came_nsec = now_nsec,
        .dscp = probe->dscp,
        .dscp_seen = dscp,
        .ecn_seen = tc & ECN_MASK,
        .tlvs = probe->tlvs,
        .tlvs_len = probe->tlvs_len,
    };
    const struct in6_addr end = node_locator(node_id_of(&source->address));
    dscp = probe->has_cos ? probe->dscp : dscp;
    struct packet *p = stamp_build(r->base->pool, &answer, &r->base->address, &probe->back, &end,
                                   (uint8_t) (dscp << 2 | ECN_ECT0), (uint32_t) probe->ssid << 8,
                                   UDP_PORT_STAMP, sport, 0);
    if (!p) {
        return DROP_pool_empty;
    }
    TRACE(&r->base->tracer, "probe %u of %s, sequence number %u: answered along %s", probe->ssid,
          TRACE_ADDR(&source->address), probe->seq, TRACE_ADDR(&probe->back.containers[0]));
    return send_by_first(r, p, &probe->back.containers[0], rx->now);
}

/* For how long a session that still sends may be silent. */
static uint64_t
longest_silence(const struct session *s, uint64_t interval)
{
    if (2 * s->gaps[0] < 3 * interval) {
        return SILENT_INTERVALS * interval;
    }
    /* The first gap after a silence is as long as that, and says nothing of what comes. */
    uint64_t gap = s->gaps[0] < s->gaps[1] ? s->gaps[0] : s->gaps[1];
    uint64_t silence = SILENT_GAPS * (gap > interval ? gap : interval);
    return silence < SILENT_MAX * interval ? silence : SILENT_MAX * interval;
}

bool
reflector_hears(const struct reflector *r, const struct in6_addr *prober, uint16_t ssid,
                uint64_t interval, uint64_t now)
{
    const struct session *set = r->sessions ? session_set(r, prober, ssid) : NULL;

    for (size_t i = 0; set && i < SESSION_SET_SIZE; i++) {
        if (is_session(&set[i], prober, ssid)) {
            return now - set[i].used <= longest_silence(&set[i], interval);
        }
    }
    return false;
}
