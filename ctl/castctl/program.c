/* SPDX-License-Identifier: Apache-2.0
 *
 * What the nodes of the registry do with a program, segment by segment.
 *
 * The program is run: each node finds its SID in the destination address, by the address plan, and
 * does what that says, until the program ends or there is a node that drops the packet.  Ports
 * are those that castd gave the nodes, so a node of which nobody knows any is no neighbour of the
 * next.
 */
#include <config.h>

#include "ctl/castctl/program.h"

#include "ctl/registry/values.h"
#include "lib/address-plan.h"
#include "lib/drop.h"
#include "lib/usid.h"
#include "openvswitch/dynamic-string.h"

/* A program of PROGRAM_MAX full containers has fewer. */
#define MAX_SEGMENTS 32

/* The 16 bits behind the block, or behind the first uSID. */
static uint16_t
usid_at(const struct in6_addr *da, unsigned i)
{
    return (uint16_t) (da->s6_addr[4 + 2 * i] << 8 | da->s6_addr[5 + 2 * i]);
}

static const struct rrec_node *
node_of(const struct ctl *ctl, const struct in6_addr *da)
{
    const struct rrec_node *row;

    RREC_NODE_FOR_EACH (row, ctl->idl) {
        if (row->id == usid_at(da, 0)) {
            return row;
        }
    }
    return NULL;
}

/* The SID that is in front: its behaviour, the length of its prefix, and how far its function is above
 * the behaviour's first: the port's number, or the Replication-ID.  False: no node has such a one. */
static bool
find_sid(const struct in6_addr *da, enum sid_behaviour *behaviour, unsigned *plen, uint16_t *number)
{
    bool is_local = usid_at(da, 0) >= USID_FIRST_FUNCTION;
    uint16_t function = usid_at(da, is_local ? 0 : 1);

    *number = 0;
    if (function < USID_FIRST_FUNCTION) {
        *behaviour = SID_UN;
        *plen = sid_behaviour(SID_UN)->plen;
        return true;
    }
    *plen = is_local ? NODE_LOCATOR_PLEN : sid_behaviour(SID_UA)->plen;
    for (unsigned i = 0; i < sid_behaviour_words.n; i++) {
        *behaviour = (enum sid_behaviour) i;
        const struct sid_behaviour_row *row = sid_behaviour(*behaviour);
        uint16_t last = *behaviour == SID_END_REPLICATE        ? REPLICATION_ID_MAX
                        : sid_behaviour_is_of_port(*behaviour) ? SID_PORT_MAX
                                                               : 0;

        *number = (uint16_t) (function - row->function);
        if (function >= row->function && *number <= last && *behaviour != SID_UN) {
            return !is_local || *behaviour == SID_UA;
        }
    }
    return false;
}

/* A program that is run. */
struct run {
    const struct ctl *ctl;
    const struct program *program;
    size_t n_used;              /* of its containers. */
    const struct rrec_node *at; /* NULL: whichever node has that SID. */
    struct in6_addr da;         /* as it comes there. */
    struct json *segment;       /* what happens there. */
    bool ended;
};

static void OVS_PRINTF_FORMAT(2, 3) then(struct run *r, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    json_object_put(r->segment, "then", json_string_create_nocopy(xvasprintf(format, args)));
    va_end(args);
}

static void
drop(struct run *r, enum drop_reason why)
{
    then(r, "dropped: %s (%s)", drop_name(why), drop_help(why));
    r->ended = true;
}

/* Goes to the node whose uSID is in front now, by the port that leads there: a neighbour, or whoever
 * the routes know. */
static void
go_to_next(struct run *r, bool neighbours_only)
{
    const struct rrec_node *next = node_of(r->ctl, &r->da);
    const struct rrec_port *port = next ? ctl_port_to(r->at, next->name) : NULL;

    if (!next || (neighbours_only && next != r->at && !port)) {
        drop(r, usid_at(&r->da, 0) ? DROP_usid_unknown : DROP_usid_zero);
        return;
    }
    ctl_put_string_or_null(r->segment, "port", port ? port->name : NULL);
    json_object_put_string(r->segment, "next", next->name);
    r->at = next;
}

/* Goes out of the port with this number. */
static void
go_by_port(struct run *r, uint16_t number)
{
    const struct rrec_port *port = ctl_port_with(r->at, number);

    if (port) {
        json_object_put_string(r->segment, "port", port->name);
        json_object_put_string(r->segment, "next", port->peer);
        r->at = ctl_find_node(r->ctl, port->peer);
    } else {
        then(r, r->at ? "it has no port %u" : "shifts; out of port %u, of whichever node it is",
             number);
        r->ended = r->at != NULL;
    }
}

/* Nothing of the program is left. */
static void
end(struct run *r, enum sid_behaviour behaviour, uint16_t number)
{
    switch (behaviour) {
    case SID_UN:
    case SID_END_DT6: then(r, PROGRAM_DECAPSULATES); break;
    case SID_UA:
    case SID_END_DX6:
        then(r, PROGRAM_DECAPSULATES);
        go_by_port(r, number);
        break;
    case SID_END_REPLICATE: then(r, "replicates for Replication-ID %u", number); break;
    case SID_END:
    case SID_END_X:
    case SID_END_MT:
    case SID_RESPONSE: then(r, "the program ends"); break;
    }
    r->ended = true;
}

/* Does the behaviour go on with the next entry of an SRH? */
static bool
takes_srh(enum sid_behaviour behaviour)
{
    return behaviour == SID_UN || behaviour == SID_UA || behaviour == SID_END
           || behaviour == SID_END_X;
}

/* What the node does that the packet is at. */
static void
act(struct run *r)
{
    bool is_node = usid_at(&r->da, 0) < USID_FIRST_FUNCTION;
    bool is_own = !is_node || (r->at && r->at->id == usid_at(&r->da, 0));
    enum sid_behaviour behaviour;
    uint16_t number;
    unsigned plen;

    if (r->at && !is_own) { /* a uA sends to its neighbour whatever is behind it. */
        then(r, "forwards");
        go_to_next(r, false);
        return;
    }
    if (!address_is_sid(&r->da)) {
        then(r, "%s", is_own && r->at ? "takes it: its own address" : "no program");
        r->ended = true;
        return;
    }
    if (!find_sid(&r->da, &behaviour, &plen, &number)) {
        drop(r, DROP_sid_unknown);
        return;
    }
    json_object_put_string(r->segment, "behaviour", sid_behaviour_name(behaviour));
    if (!is_own) {
        then(r, "no node has id %u", usid_at(&r->da, 0));
        r->ended = true;
        return;
    }
    if ((behaviour == SID_UN || behaviour == SID_UA) && !usid_argument_is_zero(&r->da, plen)) {
        then(r, "shifts");
        usid_shift(&r->da, SID_BLOCK_PLEN, plen);
    } else if (takes_srh(behaviour) && r->n_used < r->program->n) {
        then(r, "takes the next segment from the SRH");
        r->da = r->program->containers[r->n_used++];
    } else {
        end(r, behaviour, number);
        return;
    }
    if (sid_behaviour_is_of_port(behaviour)) {
        go_by_port(r, number);
    } else {
        go_to_next(r, true);
    }
}

struct json *
program_segments(const struct ctl *ctl, const struct rrec_node *at, const struct program *program)
{
    struct json *array = json_array_create_empty();
    struct run r = {.ctl = ctl, .program = program, .n_used = 1, .da = program->containers[0]};

    r.at = at;
    for (int i = 0; i < MAX_SEGMENTS && !r.ended; i++) {
        r.at = r.at ? r.at : node_of(ctl, &r.da);
        r.segment = ctl_add_object(array);
        ctl_put_string_or_null(r.segment, "node", r.at ? r.at->name : NULL);
        json_object_put_string(r.segment, "destination", ip6_text(&r.da));
        json_object_put(r.segment, "behaviour", json_null_create());
        json_object_put(r.segment, "port", json_null_create());
        json_object_put(r.segment, "next", json_null_create());
        act(&r);
    }
    return array;
}

char *
program_nodes(const struct json *segments)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < segments->array.n; i++) {
        const struct json *segment = segments->array.elems[i];
        const char *node = ctl_get_string(segment, "node");
        const char *behaviour = ctl_get_string(segment, "behaviour");

        ds_put_format(&s, "%s%s", i ? " > " : "", node[0] ? node : "?");
        if (behaviour[0] && strcmp(behaviour, sid_behaviour_name(SID_UN))) {
            ds_put_format(&s, " %s", behaviour);
        }
        if (!strncmp(ctl_get_string(segment, "then"), "dropped", 7)) {
            ds_put_format(&s, ", %s", ctl_get_string(segment, "then"));
        }
    }
    return ds_steal_cstr(&s);
}
