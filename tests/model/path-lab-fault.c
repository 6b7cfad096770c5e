/* SPDX-License-Identifier: Apache-2.0
 *
 * What happens in a lab of paths: things break and heal, operators want other paths, and somebody makes
 * answers to probes.
 *
 * One thing happens at a time.  Between two of them there is little time, so ways may still recover from
 * the first when the second begins.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"
#include "lib/in-flight.h"
#include "lib/prober.h"
#include "tests/model/path-lab-impl.h"

#define LOSSY       2000  /* of 10000. */
#define ALL         10000 /* likewise. */
#define SLOW_RATE   2000000
#define KMAX        2
#define QUEUE       200
#define DETECTION   3 /* intervals. */
#define AGENT_PAUSE 20000
#define LOSSY_TIME  3000000

static const char *const fault_names[N_FAULT_KINDS] = {
    [FAULT_SILENT] = "silent",
    [FAULT_DEAD] = "dead",
    [FAULT_ONE_WAY] = "one-way",
    [FAULT_SLOW] = "slow",
    [FAULT_RESTART] = "restart",
    [FAULT_LOSSY] = "lossy",
    [FAULT_LOSSY_WAY] = "lossy one-way",
    [FAULT_AGENT] = "agent",
    [FAULT_CONGESTED] = "congested",
    [FAULT_EXCLUDE] = "exclude",
    [FAULT_PIN] = "pin",
};

static struct path_lab *
lab_of(void *clos)
{
    return ((struct clos *) clos)->ops.aux;
}

static uint32_t
intervals(struct path_lab *lab, uint32_t least, uint32_t most)
{
    return (uint32_t) lab->interval * least
           + path_lab_random(lab, (uint32_t) lab->interval * (most - least));
}

static void
trace(const struct path_lab *lab, const char *what)
{
    const struct fault_now *f = &lab->now;
    const struct fabric_link *l = &lab->clos->fabric.links[f->link];

    if (lab->trace && f->on_link) {
        fprintf(stderr, "%10" PRIu64 " %s %s: %s-%s, end %u\n", lab->clos->fabric.now,
                fault_names[f->kind], what, clos_name(lab->clos, l->ends[0].station),
                clos_name(lab->clos, l->ends[1].station), f->side);
    } else if (lab->trace) {
        fprintf(stderr, "%10" PRIu64 " %s %s: %s\n", lab->clos->fabric.now, fault_names[f->kind],
                what, clos_name(lab->clos, f->node));
    }
}

/*
 * Links and nodes.
 */

static void
lose(struct path_lab *lab, uint32_t there, uint32_t back)
{
    struct fabric_quality *q = lab->clos->fabric.links[lab->now.link].quality;

    q[lab->now.side].loss = there;
    q[!lab->now.side].loss = back;
}

static void
delay(struct path_lab *lab, bool later)
{
    struct fabric_quality *q = lab->clos->fabric.links[lab->now.link].quality;

    for (unsigned i = 0; i < 2; i++) {
        q[i].delay = (uint32_t) (later ? q[i].delay + lab->interval : q[i].delay - lab->interval);
    }
}

static void
congest(struct path_lab *lab, bool congested)
{
    const struct impair_params params = {
        .rate = congested ? SLOW_RATE : 0, .queue = QUEUE, .kmax = KMAX, .pmax = EGRESS_PPM};

    clos_set_rate(lab->clos, lab->now.link, lab->now.side, &params);
}

static void
restart(struct path_lab *lab, bool down)
{
    if (down) {
        clos_stop_node(lab->clos, lab->now.node);
    } else {
        clos_start_node(lab->clos, lab->now.node);
    }
}

static void
restart_agent(struct path_lab *lab, bool down)
{
    struct agent_seen *seen = &lab->agents[lab->now.node];

    seen->n_failed = seen->n_planned = 0;
    restart(lab, down);
}

static void
silence(struct path_lab *lab, bool silent)
{
    struct clos_node *n = &lab->clos->nodes[lab->now.node];

    n->silent = silent;
    n->deadline = silent ? UINT64_MAX : n->class->deadline(n->node);
}

/*
 * What operators want.
 */

static void
exclude(struct path_lab *lab, bool excluded)
{
    struct plan_topology *t = &lab->clos->topology;
    const struct fabric_link *l = &lab->clos->fabric.links[lab->now.link];
    const char *a = clos_name(lab->clos, l->ends[0].station);
    const char *b = clos_name(lab->clos, l->ends[1].station);

    for (size_t i = 0; lab->now.on_link && i < t->n_links; i++) {
        if ((!strcmp(t->links[i].a, a) && !strcmp(t->links[i].b, b))
            || (!strcmp(t->links[i].a, b) && !strcmp(t->links[i].b, a))) {
            t->links[i].excluded = excluded;
        }
    }
    if (!lab->now.on_link) {
        t->nodes[lab->now.node].excluded = excluded;
    }
    lab->denied_at = lab->clos->fabric.now;
    clos_replan(lab->clos);
}

/* 'node' is the agent whose host's packets to the next host are to take a path. */
static void
pin(struct path_lab *lab, bool pinned)
{
    struct clos *c = lab->clos;
    struct plan_topology *t = &c->topology;
    const struct node_config *config = &c->nodes[lab->now.node].config;
    unsigned to = (lab->now.node + 1) % c->n_agents;

    free(t->path_rules);
    t->path_rules = NULL;
    t->n_path_rules = 0;
    for (size_t i = 0; pinned && i < config->n_destinations; i++) {
        const struct destination_config *d = &config->destinations[i];

        if (IN6_ARE_ADDR_EQUAL(&d->address, &clos_host(c, to)->address)) {
            t->path_rules = must_calloc(1, sizeof *t->path_rules);
            t->n_path_rules = 1;
            t->path_rules[0].kind = PATH_PIN;
            snprintf(t->path_rules[0].from, sizeof t->path_rules[0].from, "%s",
                     clos_host(c, lab->now.node)->name);
            snprintf(t->path_rules[0].to, sizeof t->path_rules[0].to, "%s", clos_host(c, to)->name);
            snprintf(t->path_rules[0].path, sizeof t->path_rules[0].path, "%s",
                     d->paths[path_lab_random(lab, (uint32_t) d->n_paths)].name);
        }
    }
    lab->denied_at = c->fabric.now;
    clos_replan(c);
}

/*
 * When.
 */

static void
change(struct path_lab *lab, bool broken)
{
    switch (lab->now.kind) {
    case FAULT_SILENT: silence(lab, broken); break;
    case FAULT_DEAD: lose(lab, broken ? ALL : 0, broken ? ALL : 0); break;
    case FAULT_ONE_WAY: lose(lab, broken ? ALL : 0, 0); break;
    case FAULT_SLOW: delay(lab, broken); break;
    case FAULT_RESTART: restart(lab, broken); break;
    case FAULT_LOSSY: lose(lab, broken ? LOSSY : 0, broken ? LOSSY : 0); break;
    case FAULT_LOSSY_WAY: lose(lab, broken ? LOSSY : 0, 0); break;
    case FAULT_CONGESTED: congest(lab, broken); break;
    case FAULT_AGENT: restart_agent(lab, broken); break;
    case FAULT_EXCLUDE: exclude(lab, broken); break;
    case FAULT_PIN: pin(lab, broken); break;
    case N_FAULT_KINDS: abort();
    }
}

static void
choose(struct path_lab *lab)
{
    static const unsigned ranges[N_RUN_KINDS][2] = {
        [RUN_SEEN] = {FAULT_SILENT, FAULT_RESTART},
        [RUN_PLANNED] = {FAULT_EXCLUDE, FAULT_PIN},
        [RUN_MIXED] = {FAULT_SILENT, FAULT_PIN},
        [RUN_LOSSY] = {FAULT_LOSSY, FAULT_LOSSY_WAY},
    };
    const struct clos *c = lab->clos;
    const unsigned *range = ranges[lab->kind];
    unsigned n_switches = c->n_nodes - c->n_agents;
    enum fault_kind kind =
        (enum fault_kind)(range[0] + path_lab_random(lab, range[1] - range[0] + 1));

    lab->now = (struct fault_now){
        .kind = kind,
        .on_link = kind == FAULT_DEAD || kind == FAULT_ONE_WAY || kind == FAULT_SLOW
                   || kind == FAULT_LOSSY || kind == FAULT_LOSSY_WAY || kind == FAULT_CONGESTED
                   || (kind == FAULT_EXCLUDE && path_lab_random(lab, 2)),
        .node = kind == FAULT_AGENT || kind == FAULT_PIN
                    ? path_lab_random(lab, c->n_agents)
                    : c->n_agents + path_lab_random(lab, n_switches),
        .link = path_lab_random(lab, clos_n_links(c)),
        .side = path_lab_random(lab, 2),
        .begun = c->fabric.now,
    };
}

static void begin(void *, unsigned, unsigned);

static void
heal(void *clos, unsigned unused, unsigned unused2)
{
    struct path_lab *lab = lab_of(clos);

    (void) unused, (void) unused2;
    trace(lab, "ends");
    change(lab, false);
    lab->broken = false;
    uint64_t next = lab->clos->fabric.now + intervals(lab, 2, path_lab_random(lab, 2) ? 6 : 20);
    if (--lab->n_faults) {
        path_lab_at(lab, next, begin, 0);
    } else {
        lab->over_at = next;
    }
}

static void
look(void *clos, unsigned unused, unsigned unused2)
{
    (void) unused, (void) unused2;
    path_lab_check_seen(lab_of(clos));
}

static void
begin(void *clos, unsigned unused, unsigned unused2)
{
    struct path_lab *lab = lab_of(clos);
    uint64_t now = lab->clos->fabric.now;

    (void) unused, (void) unused2;
    choose(lab);
    bool way_out = path_lab_has_way_out(lab);
    if ((lab->kind == RUN_SEEN && !way_out)
        || (lab->kind == RUN_LOSSY && (!way_out || !path_lab_hits_flow(lab)))) {
        path_lab_at(lab, now + intervals(lab, 1, 4), begin, 0); /* not yet. */
        return;
    }
    trace(lab, "begins");
    lab->broken = true;
    lab->unbounded |= lab->now.kind > FAULT_RESTART || !way_out;
    lab->now.ends = now + intervals(lab, DETECTION + 1, 12);
    if (lab->kind == RUN_LOSSY) {
        lab->now.ends = now + LOSSY_TIME;
    } else if (lab->now.kind == FAULT_AGENT) {
        lab->now.ends = now + path_lab_random(lab, AGENT_PAUSE);
    } else if (lab->now.kind <= FAULT_RESTART) {
        /* And what was under way has arrived. */
        path_lab_at(lab, now + DETECTION * lab->interval + lab->interval / 2, look, 0);
    }
    change(lab, true);
    path_lab_at(lab, lab->now.ends, heal, 0);
}

void
path_lab_begin_faults(struct path_lab *lab, uint64_t at)
{
    path_lab_at(lab, at, begin, 0);
}

/*
 * Forged answers.
 */

/* What comes back for a probe, but for its cookie: that is another one.  TLVs that are echoed have it,
 * too. */
static struct packet *
forge(struct path_lab *lab, const struct ip6_hdr_wire *ip, const struct stamp *asked,
      const struct probe_config *p, const struct in6_addr *own)
{
    const struct in6_addr end = node_locator(node_id_of(own));
    const struct program program = {.n = 1, .containers = {end}};
    struct stamp s = *asked;
    uint8_t tlvs[256], cookie[8];

    s.cookie ^= 1;
    if (p->kind == PROBE_LOOP) {
        return stamp_build(lab->clos->pool, &s, own, &program, &end, ip6_tc(ip), 0, PROBER_SPORT,
                           UDP_PORT_STAMP, 0);
    }
    if (s.tlvs_len > sizeof tlvs) {
        return NULL;
    }
    for (unsigned i = 0; i < sizeof cookie; i++) {
        cookie[i] = (uint8_t) (asked->cookie >> (56 - 8 * i));
    }
    memcpy(tlvs, s.tlvs, s.tlvs_len);
    for (size_t i = 0; i + sizeof cookie <= s.tlvs_len; i++) {
        if (!memcmp(tlvs + i, cookie, sizeof cookie)) {
            tlvs[i + 7] ^= 1;
        }
    }
    s.tlvs = tlvs;
    s.is_answer = true;
    s.asked_seq = asked->seq;
    s.asked_nsec = asked->sent_nsec;
    s.asked_hop_limit = 60;
    s.came_nsec = asked->sent_nsec;
    return stamp_build(lab->clos->pool, &s, &p->peer, &program, &end, ip6_tc(ip), 0, UDP_PORT_STAMP,
                       PROBER_SPORT, 0);
}

static const struct probe_config *
find_probe(const struct node_config *config, uint16_t number)
{
    for (size_t i = 0; i < config->n_probes; i++) {
        if (config->probes[i].number == number) {
            return &config->probes[i];
        }
    }
    return NULL;
}

static void
deliver_forged(void *clos, unsigned unused, unsigned unused2)
{
    struct path_lab *lab = lab_of(clos);
    struct forged *f = &lab->forged;

    (void) unused, (void) unused2;
    lab->n_seen[LAB_SAW_probe_forged]++;
    clos_input(lab->clos, f->to, f->frame, f->len);
    f->len = 0;
}

void
path_lab_probe_sent(struct path_lab *lab, const struct clos_frame *frame)
{
    const struct ip6_hdr_wire *ip = (const void *) (frame->bytes + frame->h->ip.ofs);
    const struct udp_hdr *udp = (const void *) (frame->bytes + frame->h->ip.l4_ofs);
    const struct node_config *config = &lab->clos->nodes[frame->station].config;
    size_t payload_len = (size_t) (frame->h->ip.end - frame->h->ip.l4_ofs) - sizeof *udp;
    struct forged *f = &lab->forged;
    struct eth_hdr *eth = (struct eth_hdr *) f->frame;
    struct stamp s;

    if (!lab->forges || !lab->broken || f->len || be16_get(udp->sport) != PROBER_SPORT
        || !stamp_parse((const uint8_t *) (udp + 1), payload_len, false, &s)) {
        return;
    }
    const struct probe_config *p = find_probe(config, s.ssid);
    struct packet *packet = p ? forge(lab, ip, &s, p, &config->address) : NULL;
    size_t room = sizeof f->frame - sizeof *eth;
    size_t len = packet ? packet_flatten(packet, f->frame + sizeof *eth, room) : 0;
    if (packet) {
        packet_put(packet);
    }
    if (len) {
        node_port_mac(config->id, frame->port, eth->dst);
        eth->type = be16_put(ETH_TYPE_IP6);
        f->len = sizeof *eth + len;
        f->to = (struct fabric_end){frame->station, frame->port};
        path_lab_at(lab, lab->clos->fabric.now + 1 + p->timeout_usec / 16, deliver_forged, 0);
    }
}
