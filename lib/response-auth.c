/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses and CNPs of nodes to nodes, in a group with authenticated data.
 *
 * A key is derived when the first response wants it: a source agent may have thousands of children.
 */
#include "lib/response-auth.h"

#include <stdlib.h>
#include <string.h>

#include "lib/addr-map.h"
#include "lib/alloc.h"
#include "lib/data-auth.h"
#include "lib/defect.h"
#include "lib/parse.h"
#include "lib/response.h"

#define TLV_ALIGN 8

/* The key that a pair has used last. */
struct pair_key {
    struct response_pair pair;
    uint32_t id; /* of the shared key; 0: there is none. */
    struct data_key *data;
};

struct child {
    struct pair_key key;
    struct data_window window;
};

struct response_auth {
    uint64_t seq;
    struct pair_key own; /* to the parent. */
    size_t n, room;
    struct child **children; /* all that have said something in this life. */
    struct addr_map *by_address;
};

struct response_auth *
response_auth_create(uint64_t seq)
{
    struct response_auth *ra = must_calloc(1, sizeof *ra);

    ra->seq = seq;
    return ra;
}

static void
forget(struct pair_key *k)
{
    data_key_destroy(k->data);
    k->data = NULL;
    k->id = 0;
}

void
response_auth_destroy(struct response_auth *ra)
{
    if (ra) {
        forget(&ra->own);
        for (size_t i = 0; i < ra->n; i++) {
            forget(&ra->children[i]->key);
            free(ra->children[i]);
        }
        free(ra->children);
        addr_map_destroy(ra->by_address);
        free(ra);
    }
}

void
response_auth_configure(struct response_auth *ra, const struct auth_config *config)
{
    if (!auth_find_key(config, ra->own.id)) {
        forget(&ra->own);
    }
    for (size_t i = 0; i < ra->n; i++) {
        if (!auth_find_key(config, ra->children[i]->key.id)) {
            forget(&ra->children[i]->key);
        }
    }
}

uint64_t
response_auth_seq(const struct response_auth *ra)
{
    return ra->seq;
}

/* The pair's key that comes from the shared one with this id; NULL: there is none, or libcrypto does
 * not work. */
static struct data_key *
key_of(struct pair_key *k, const struct tree_config *t, const struct response_pair *pair,
       uint32_t id)
{
    if (k->id == id && !memcmp(&k->pair, pair, sizeof *pair)) {
        return k->data;
    }
    const struct auth_epoch epoch = tree_config_auth_epoch(t);
    const struct auth_key *shared = auth_find_key(&t->auth, id);

    if (!shared) {
        return NULL;
    }
    forget(k);
    k->pair = *pair;
    k->data = data_key_create_up(shared, &epoch, &pair->child, &pair->parent_sid);
    k->id = k->data ? id : 0;
    return k->data;
}

enum drop_reason
response_auth_seal(struct response_auth *ra, const struct tree_config *t,
                   const struct response_pair *pair, const struct in6_addr *dst, struct packet *p)
{
    struct data_key *key =
        t->auth.response_instance ? key_of(&ra->own, t, pair, t->auth.key) : NULL;

    response_wrap_srh(p, &pair->child, &pair->parent_sid, dst, t->auth.key);
    return key
                   && data_seal_srh(key, p, IP6_HDR_LEN, RESPONSE_AUTH_LEN,
                                    t->auth.response_instance, ++ra->seq)
               ? DROP_none
               : DROP_auth_missing;
}

static struct child *
find_child(struct response_auth *ra, const struct in6_addr *address)
{
    struct child *c = addr_map_find(ra->by_address, address, 0);

    if (c) {
        return c;
    }
    if (ra->n == ra->room) {
        struct child **children = must_calloc(2 * ra->room + 4, sizeof(struct child *));

        ra->room = 2 * ra->room + 4;
        addr_map_destroy(ra->by_address);
        ra->by_address = addr_map_create(ra->room);
        for (size_t i = 0; i < ra->n; i++) {
            children[i] = ra->children[i];
            addr_map_insert(ra->by_address, &children[i]->key.pair.child, 0, children[i]);
        }
        free(ra->children);
        ra->children = children;
    }
    c = must_calloc(1, sizeof *c);
    c->key.pair.child = *address;
    ra->children[ra->n++] = c;
    addr_map_insert(ra->by_address, address, 0, c);
    return c;
}

enum drop_reason
response_auth_verify(struct response_auth *ra, const struct tree_config *t,
                     const struct response_pair *pair, uint32_t floor, const uint8_t *data,
                     const struct parsed *h)
{
    const struct data_tlv *tlv = (const struct data_tlv *) (data + h->data_ofs);

    if (!h->data_ofs || (h->data_ofs - h->srh_ofs) % TLV_ALIGN) {
        return DEFECT(RESPONSE_PLAIN) ? DROP_none : DROP_auth_missing;
    }
    uint32_t id = be32_get(tlv->key_id);
    if (!auth_find_key(&t->auth, id)) {
        return DROP_auth_unknown_key;
    }
    struct child *c = find_child(ra, &pair->child);
    struct data_key *key = key_of(&c->key, t, pair, id);
    if (!key || (!data_verify(key, data, h) && !DEFECT(RESPONSE_TAG))) {
        return DROP_auth_bad;
    }
    c->window.floor = DEFECT(RESPONSE_FLOOR) && floor ? 1 : floor;
    return data_window_take(&c->window, be32_get(tlv->instance), be64_get(tlv->seq))
               ? DROP_none
               : DROP_auth_replay;
}
