/* SPDX-License-Identifier: Apache-2.0
 *
 * swedge on a bench, as a node of paths.
 */
#include "tests/unit/usid-fixture.h"

#include "swedge/swedge.h"

#define BLOCK 32

void
usid_add_sid(struct fixture *f, struct in6_addr prefix, uint8_t plen, enum sid_behaviour behaviour,
             uint16_t port)
{
    fixture_add_sid(f, 0, plen, behaviour);
    struct sid_config *s = &f->config.sids[f->config.n_sids - 1];
    s->prefix = prefix;
    s->block_len = behaviour == SID_UN || behaviour == SID_UA ? BLOCK : 0;
    s->port = port;
}

struct fixture *
usid_create(uint16_t id, uint16_t a, uint16_t b)
{
    struct fixture *f = fixture_create(&swedge_class, 1);
    struct node_config *c = &f->config;
    const uint16_t ports[] = {PORT_SA, PORT_SB};

    tree_config_uninit(&c->trees[0]);
    c->n_trees = 0;
    c->n_sids = 0;
    c->id = id;
    c->address = node_address(id);
    fixture_add_node(f, PORT_SA, a);
    fixture_add_node(f, PORT_SB, b);
    c->routes[c->n_routes - 1].prefix = FAR_HOST; /* of b's locator there is none. */
    c->routes[c->n_routes - 1].plen = 128;
    usid_add_sid(f, node_locator(id), 48, SID_UN, 0);
    usid_add_sid(f, node_sid(id, SID_FUNC_END), 64, SID_END, 0);
    usid_add_sid(f, node_sid(id, SID_FUNC_END_DT6), 64, SID_END_DT6, 0);
    for (size_t i = 0; i < 2; i++) {
        usid_add_sid(f, node_sid(id, SID_FUNC_UA + ports[i]), 64, SID_UA, ports[i]);
        usid_add_sid(f, local_sid(SID_FUNC_UA + ports[i]), 48, SID_UA, ports[i]);
        usid_add_sid(f, node_sid(id, SID_FUNC_END_X + ports[i]), 64, SID_END_X, ports[i]);
    }
    usid_add_sid(f, node_sid(id, SID_FUNC_END_DX6 + HOST), 64, SID_END_DX6, HOST);
    usid_add_sid(f, node_sid(id, SID_FUNC_END_DX6 + AGENT_PORT), 64, SID_END_DX6, AGENT_PORT);
    fixture_configure(f);
    f->mangled = true; /* what is behind IPv6 headers here is none of the node's business. */
    return f;
}
