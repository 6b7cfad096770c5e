/* SPDX-License-Identifier: Apache-2.0
 *
 * The fabric that castscale makes (see fabric.h).
 */
#include <config.h>

#include "bench/castscale/fabric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/registry/group-settings.h"
#include "ctl/registry/values.h"
#include "util.h"

#define LEAVES_PER_POD  48
#define SPINES_PER_POD  2
#define CORES           2
#define NODES_PER_AGENT 4

/* Ids of nodes begin here. */
enum { ID_CORE = 1, ID_SPINE = 16, ID_LEAF = 1024, ID_AGENT = 8192 };

/* Members' queue pairs, and what they let the source write into. */
#define FIRST_QPN  17
#define RKEY       7
#define REGION_VA  0x1000
#define REGION_LEN 4096

#define GUEST      "guest"

void
fabric_init(struct fabric *f, unsigned n_nodes, unsigned n_receivers, unsigned n_members)
{
    unsigned n_agents = n_nodes / NODES_PER_AGENT, n_pods = 1, n_cores = 0;

    while (n_nodes - n_agents - n_cores > n_pods * (LEAVES_PER_POD + SPINES_PER_POD)) {
        n_pods++;
        n_cores = CORES;
    }
    unsigned n_spines = n_nodes < 8 ? 1 : n_pods * SPINES_PER_POD;
    *f = (struct fabric){
        .n_nodes = n_nodes,
        .n_cores = n_cores,
        .n_pods = n_pods,
        .n_spines = n_spines,
        .n_leaves = n_nodes - n_agents - n_cores - n_spines,
        .n_agents = n_agents,
        .n_members = n_members,
    };
    f->n_receivers = n_receivers ? n_receivers : f->n_leaves;
}

static void
insert_node(struct ovsdb_idl_txn *txn, const char *kind, unsigned i, int first_id,
            enum node_role role)
{
    const struct rrec_node *row = rrec_node_insert(txn);
    char name[FABRIC_NAME_SIZE];

    snprintf(name, sizeof name, "%s%u", kind, i + 1);
    rrec_node_set_name(row, name);
    rrec_node_set_id(row, first_id + (int) i);
    rrec_node_set_role(row, node_role_name(role));
}

static void
insert_host(struct ovsdb_idl_txn *txn, const char *name, unsigned net, unsigned i)
{
    const struct rrec_host *row = rrec_host_insert(txn);
    char address[40];

    snprintf(address, sizeof address, "fd00:%x::%x", net, i + 1);
    rrec_host_set_name(row, name);
    rrec_host_set_address(row, address);
}

/* A port has the name of who is at the other end. */
static void
insert_link(struct ovsdb_idl_txn *txn, const char *a, const char *b, enum port_kind kind)
{
    const struct rrec_link *row = rrec_link_insert(txn);

    rrec_link_set_a(row, a);
    rrec_link_set_a_port(row, b);
    rrec_link_set_b(row, b);
    rrec_link_set_b_port(row, a);
    rrec_link_set_kind(row, port_kind_name(kind));
}

static void
insert_fabric_link(struct ovsdb_idl_txn *txn, const char *a_kind, unsigned a, const char *b_kind,
                   unsigned b)
{
    char names[2][FABRIC_NAME_SIZE];

    snprintf(names[0], sizeof names[0], "%s%u", a_kind, a + 1);
    snprintf(names[1], sizeof names[1], "%s%u", b_kind, b + 1);
    insert_link(txn, names[0], names[1], port_kind_usual(false));
}

static void
insert_tap(struct ovsdb_idl_txn *txn, const char *host, const char *kind, unsigned node)
{
    char name[FABRIC_NAME_SIZE];

    snprintf(name, sizeof name, "%s%u", kind, node + 1);
    insert_link(txn, host, name, port_kind_usual(true));
}

static void
insert_switches(const struct fabric *f, struct ovsdb_idl_txn *txn)
{
    unsigned spines_per_pod = f->n_spines / f->n_pods;

    for (unsigned i = 0; i < f->n_cores; i++) {
        insert_node(txn, "core", i, ID_CORE, NODE_SWITCH);
    }
    for (unsigned i = 0; i < f->n_spines; i++) {
        insert_node(txn, "spine", i, ID_SPINE, NODE_SWITCH);
        if (f->n_cores) {
            insert_fabric_link(txn, "spine", i, "core", i % f->n_cores);
        }
    }
    for (unsigned i = 0; i < f->n_leaves; i++) {
        insert_node(txn, "leaf", i, ID_LEAF, NODE_SWITCH);
        for (unsigned j = 0; j < spines_per_pod; j++) {
            insert_fabric_link(txn, "leaf", i, "spine", i % f->n_pods * spines_per_pod + j);
        }
    }
}

static void
source_name(unsigned i, char name[FABRIC_NAME_SIZE])
{
    snprintf(name, FABRIC_NAME_SIZE, "s%u", i + 1);
}

static void
receiver_name(unsigned i, char name[FABRIC_NAME_SIZE])
{
    snprintf(name, FABRIC_NAME_SIZE, "r%u", i + 1);
}

void
fabric_insert(const struct fabric *f, struct ovsdb_idl_txn *txn)
{
    char name[FABRIC_NAME_SIZE];

    insert_switches(f, txn);
    for (unsigned i = 0; i < f->n_agents; i++) {
        insert_node(txn, "agent", i, ID_AGENT, NODE_AGENT);
        insert_fabric_link(txn, "agent", i, "leaf", i % f->n_leaves);
        source_name(i, name);
        insert_host(txn, name, 1, i);
        insert_tap(txn, name, "agent", i);
    }
    for (unsigned i = 0; i < f->n_receivers; i++) {
        receiver_name(i, name);
        insert_host(txn, name, 2, i);
        insert_tap(txn, name, "leaf", i % f->n_leaves);
    }
}

void
fabric_add_guest(const struct fabric *f OVS_UNUSED, struct ovsdb_idl_txn *txn)
{
    insert_host(txn, GUEST, 3, 0);
    insert_tap(txn, GUEST, "leaf", 0);
}

void
fabric_remove_guest(const struct ovsdb_idl *idl)
{
    const struct rrec_host *host;
    const struct rrec_link *link;

    RREC_HOST_FOR_EACH (host, idl) {
        if (!strcmp(host->name, GUEST)) {
            rrec_host_delete(host);
            break;
        }
    }
    RREC_LINK_FOR_EACH (link, idl) {
        if (!strcmp(link->a, GUEST)) {
            rrec_link_delete(link);
            break;
        }
    }
}

void
fabric_group_name(unsigned group, char name[FABRIC_NAME_SIZE])
{
    snprintf(name, FABRIC_NAME_SIZE, "g%u", group + 1);
}

/* Members of a group are on leaves next to each other, those of the next group further on. */
static unsigned
member_index(const struct fabric *f, unsigned group, unsigned member)
{
    return (group * f->n_members + member) % f->n_receivers;
}

void
fabric_member_host(const struct fabric *f, unsigned group, unsigned member,
                   char name[FABRIC_NAME_SIZE])
{
    receiver_name(member_index(f, group, member), name);
}

struct request_member
fabric_member(unsigned group, const char *group_name, const char *host)
{
    return (struct request_member){
        .group = group_name,
        .host = host,
        .qpn = FIRST_QPN + (int64_t) group, /* a host has a queue pair for each of its groups. */
        .has_region = true,
        .rkey = RKEY,
        .va = REGION_VA,
        .len = REGION_LEN,
    };
}

static void
insert_member(struct ovsdb_idl_txn *txn, const struct rrec_group *group,
              const struct request_member *m)
{
    const struct rrec_member *row = rrec_member_insert(txn);
    char va[24];

    snprintf(va, sizeof va, "0x%" PRIx64, m->va);
    rrec_member_set_group(row, group);
    rrec_member_set_host(row, m->host);
    rrec_member_set_qpn(row, m->qpn);
    rrec_member_set_rkey(row, &m->rkey, 1);
    rrec_member_set_va(row, va);
    rrec_member_set_len(row, m->len);
    rrec_member_set_want(row, "active");
    rrec_member_set_epoch(row, 1);
}

void
fabric_insert_group(const struct fabric *f, struct ovsdb_idl_txn *txn, unsigned group)
{
    const struct rrec_group *row = rrec_group_insert(txn);
    const struct rrec_source *source = rrec_source_insert(txn);
    const struct group_settings settings = group_settings_default();
    char name[FABRIC_NAME_SIZE], host[FABRIC_NAME_SIZE];

    fabric_group_name(group, name);
    rrec_group_set_name(row, name);
    group_settings_write(row, &settings);
    source_name(group % f->n_agents, host);
    rrec_source_set_group(source, row);
    rrec_source_set_host(source, host);
    rrec_source_set_qpn(source, FIRST_QPN + (int64_t) group);
    rrec_source_set_epoch(source, 1);
    for (unsigned i = 0; i < f->n_members; i++) {
        fabric_member_host(f, group, i, host);
        struct request_member member = fabric_member(group, name, host);

        insert_member(txn, row, &member);
    }
}
