/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a node's probes equal to what is wanted.  Probes are known by their kinds and names.  What
 * agents say of them stays.
 */
#include <config.h>

#include "ctl/castd/castd.h"
#include "ctl/castd/columns.h"
#include "ctl/plan/probe.h"
#include "ctl/registry/values.h"
#include "hash.h"
#include "openvswitch/shash.h"
#include "util.h"

/* True if anything changed that the node is told. */
static bool
sync_probe(const struct rrec_probe *row, const char *node, const struct plan_probe *probe)
{
    const struct probe_config *p = &probe->config;
    char program[PROGRAM_TEXT_SIZE], back[PROGRAM_TEXT_SIZE];
    bool changed = false;

    program_format(&p->program, program);
    program_format(&p->back, back);
    SYNC_STRING(probe, row, node, node);
    SYNC_NUMBER(probe, row, number, p->number);
    SYNC_STRING(probe, row, kind, probe_kind_name(p->kind));
    SYNC_STRING(probe, row, name, p->name);
    SYNC_STRING(probe, row, plane, p->plane);
    SYNC_NUMBER(probe, row, port, p->port);
    SYNC_STRING(probe, row, peer, p->kind == PROBE_PEER ? ip6_text(&p->peer) : "");
    SYNC_STRING(probe, row, program, program);
    SYNC_STRING(probe, row, back, back);
    SYNC_NUMBER(probe, row, reverse, p->reverse);
    SYNC_NUMBER(probe, row, interval, p->interval_usec / 1000);
    SYNC_NUMBER(probe, row, timeout, p->timeout_usec / 1000);
    SYNC_NUMBER(probe, row, large, p->large);
    SYNC_NUMBER(probe, row, no_checksum, p->no_checksum);
    rrec_probe_set_elements(row, probe->elements);
    return changed;
}

static char *
key_of(const char *kind, const char *name)
{
    return xasprintf("%s %s", kind, name);
}

static void
index_rows(const struct rrec_node *node, struct shash *by_key)
{
    shash_init(by_key);
    for (size_t i = 0; i < node->n_probes; i++) {
        char *key = key_of(node->probes[i]->kind, node->probes[i]->name);

        shash_add_once(by_key, key, node->probes[i]);
        free(key);
    }
}

static bool
sync_own(struct ovsdb_idl_txn *txn, const struct rrec_node *node, const struct plan_probes *want)
{
    struct rrec_probe **rows = xcalloc(want->n + 1, sizeof *rows);
    bool changed = false, others = node->n_probes != want->n;
    struct shash by_key;

    index_rows(node, &by_key);
    for (size_t i = 0; i < want->n; i++) {
        const struct probe_config *p = &want->probes[i].config;
        char *key = key_of(probe_kind_name(p->kind), p->name);

        rows[i] = shash_find_data(&by_key, key);
        if (!rows[i]) {
            rows[i] = rrec_probe_insert(txn);
            rrec_probe_set_kind(rows[i], probe_kind_name(p->kind));
            others = true;
        }
        changed |= sync_probe(rows[i], node->name, &want->probes[i]);
        free(key);
    }
    if (others) {
        rrec_node_set_probes(node, rows, want->n);
    }
    shash_destroy(&by_key);
    free(rows);
    return changed || others;
}

bool
castd_sync_probes(const struct castd *c, const struct castd_node *n, const struct plan_probes all[])
{
    struct node_config want = {.n_probers = 0};
    const struct rrec_node *row = n->row;
    bool changed = false;

    plan_probers(&c->topology, all, n->node, &want);
    SYNC_ADDRESSES(node, row, probers, want.probers, want.n_probers);
    node_config_uninit(&want);
    return sync_own(ovsdb_idl_txn_get(&c->global->header_), row, &all[n->node - c->topology.nodes])
           || changed;
}

/* Of what castd writes. */
static uint32_t
hash_row(const struct rrec_probe *row)
{
    const int64_t numbers[] = {row->number,  row->port,  row->reverse,    row->interval,
                               row->timeout, row->large, row->no_checksum};
    const char *const texts[] = {row->node, row->kind,    row->name, row->plane,
                                 row->peer, row->program, row->back, row->elements};
    uint32_t hash = uuid_hash(&row->header_.uuid);

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        hash = hash_string(texts[i], hash);
    }
    return hash_bytes(numbers, sizeof numbers, hash);
}

uint64_t
castd_digest_probes(const struct castd *c)
{
    const struct rrec_probe *row;
    uint64_t digest = 0;

    RREC_PROBE_FOR_EACH(row, c->idl)
    {
        digest += (UINT64_C(1) << 32) + hash_row(row); /* in whatever order. */
    }
    return digest;
}
