/* SPDX-License-Identifier: Apache-2.0
 *
 * A source agent with two uplinks on a bench, and paths from its host to others.
 */
#include "tests/unit/path-fixture.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/alloc.h"
#include "lib/headend.h"
#include "lib/roce.h"

/* fd00:a::3 and fd00:a::4. */
const struct in6_addr path_peer = {.s6_addr = {0xfd, 0, 0, 0xa, [15] = 3}};
const struct in6_addr path_peer2 = {.s6_addr = {0xfd, 0, 0, 0xa, [15] = 4}};

/*
 * Instead of the prober.
 */

static struct way {
    enum path_state state;
    bool silent; /* it has carried nothing since any other one failed. */
    unsigned marked;
    unsigned n_doubts, n_lost;
} ways[PROBE_NUMBER_MAX + 1];

static enum path_state
way_state(const struct prober *prober, uint16_t number)
{
    (void) prober;
    return ways[number].state;
}

static bool
way_outlives(const struct prober *prober, uint16_t number, uint16_t failed)
{
    (void) prober;
    return ways[failed].state != PATH_BAD || !ways[number].silent;
}

static unsigned
way_marked(const struct prober *prober, uint16_t number)
{
    (void) prober;
    return ways[number].marked;
}

static void
way_doubt(struct prober *prober, uint16_t number, bool lost, uint64_t now)
{
    (void) prober;
    (void) now;
    ways[number].n_doubts++;
    ways[number].n_lost += lost;
}

static struct headend *
headend_of(const struct fixture *f)
{
    return ((struct node_base *) f->node)->headend;
}

void
path_set_state(struct fixture *f, uint16_t probe, enum path_state state)
{
    ways[probe].state = state;
    f->n_frames = 0;
    headend_way_changed(headend_of(f), probe, f->now);
    fixture_settle(f);
}

void
path_set_silent(uint16_t probe, bool silent)
{
    ways[probe].silent = silent;
}

void
path_set_marked(uint16_t probe, unsigned marked)
{
    ways[probe].marked = marked;
}

unsigned
path_n_doubts(uint16_t probe)
{
    return ways[probe].n_doubts;
}

unsigned
path_n_lost(uint16_t probe)
{
    return ways[probe].n_lost;
}

struct fixture *
path_agent(void)
{
    static const struct headend_ways these = {way_state, way_outlives, way_marked, way_doubt};
    struct fixture *f = agent_create(2);

    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ways[i] = (struct way){.state = PATH_UNKNOWN};
    }
    headend_set_ways(headend_of(f), &these);
    fixture_add_node(f, OTHER_UPLINK, OTHER_NODE);
    fixture_configure(f);
    return f;
}

struct destination_config *
path_add(struct fixture *f, const struct in6_addr *peer, enum path_policy policy, unsigned n,
         uint16_t first_number)
{
    struct node_config *c = &f->config;

    c->destinations = realloc(c->destinations, (c->n_destinations + 1) * sizeof *c->destinations);
    ck_assert_ptr_nonnull(c->destinations);
    struct destination_config *d = &c->destinations[c->n_destinations++];
    *d = (struct destination_config){
        .address = *peer,
        .policy = policy,
        .n_paths = n,
        .paths = must_calloc(n, sizeof *d->paths),
    };
    for (unsigned i = 0; i < n; i++) {
        struct path_config *path = &d->paths[i];

        path->number = (uint16_t) (first_number + i);
        path->port = i % 2 ? OTHER_UPLINK : UPLINK;
        path->probe = path->number;
        path->usable = true;
        snprintf(path->name, sizeof path->name, "leaf%u,spine%u,leaf3", i + 1, i + 5);
        path->program.n = 1;
        path->program.containers[0] = node_locator((uint16_t) (0x100 + i));
        path->program.containers[0].s6_addr[6] = 5;
        path->program.containers[0].s6_addr[7] = (uint8_t) i;
        path->program.containers[0].s6_addr[8] = 3;
    }
    return d;
}

void
path_pin(struct destination_config *d, uint32_t dest_qp, uint16_t number)
{
    d->pins = realloc(d->pins, (d->n_pins + 1) * sizeof *d->pins);
    ck_assert_ptr_nonnull(d->pins);
    d->pins[d->n_pins++] = (struct path_pin){dest_qp, number};
}

struct roce_spec
path_request(uint8_t opcode, uint32_t dest_qp, uint32_t psn)
{
    struct roce_spec spec = agent_request(opcode, psn);

    spec.dst = &path_peer;
    spec.dest_qp = dest_qp;
    return spec;
}

unsigned
path_taken(struct fixture *f, const struct roce_spec *spec)
{
    agent_from_host(f, spec);
    ck_assert_uint_eq(f->n_frames, 1);
    const struct frame *frame = &f->frames[0];
    const struct ip6_hdr_wire *outer = (const void *) (frame->bytes + frame->h.ip.ofs);

    if (!frame->h.inner.ofs) {
        ck_assert_mem_eq(&outer->dst, spec->dst, 16);
        return 0;
    }
    return ip6_flow_label(outer) >> 8;
}

void
path_answer(struct fixture *f, uint8_t opcode, uint8_t syndrome, uint32_t psn)
{
    path_answer_to(f, OWN_QPN, opcode, syndrome, psn);
    ck_assert_uint_eq(f->n_frames, 1);
    ck_assert_uint_eq(f->frames[0].port, HOST_PORT);
}

void
path_answer_to(struct fixture *f, uint32_t qpn, uint8_t opcode, uint8_t syndrome, uint32_t psn)
{
    const struct roce_spec spec = {
        .src = &path_peer,
        .dst = &star_source,
        .dest_qp = qpn,
        .opcode = opcode,
        .psn = psn & PSN_MASK,
        .syndrome = syndrome,
        .msn = 0x77,
        .payload_len = roce_opcode_info(opcode)->flags & ROCE_F_PAYLOAD ? 64 : 0,
    };
    uint8_t bytes[PACKET_ROOM];

    fixture_input(f, UPLINK, bytes, roce_build(bytes, &spec));
}

struct path_info
path_info(const struct fixture *f, uint16_t number)
{
    struct path_info info = {.config = NULL};

    for (size_t i = 0; f->class->path(f->node, i, &info); i++) {
        if (info.config->number == number) {
            return info;
        }
    }
    ck_abort_msg("no path %u", number);
    return info;
}
