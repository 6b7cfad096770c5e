/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of the registry: what ctl/registry/intent.c makes of them, and what nodes of all kinds do
 * with that.  The input is lines: of rows (tests/fuzz/intent-rows.h), 'Apply', which hands what
 * there is so far to the nodes, as does the end of the input, and 'Send', which sends them packets
 * of the trees that they have then.
 */
#include <config.h>

#include <check.h>
#include <stdlib.h>

#include "castfwd/castfwd.h"
#include "ctl/registry/intent.h"
#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "lib/node.h"
#include "lib/response.h"
#include "lib/roce.h"
#include "lib/srh.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/intent-rows.h"
#include "tests/unit/node-fixture.h"
#include "tests/unit/parse-check.h"
#include "util.h"

/* Their headers cannot both be included: each names its own things. */
extern const struct node_class srcagent_class, swedge_class;

#define MAX_APPLIES 6
#define MAX_SENT    400 /* packets. */
#define MAX_NAMED   11  /* receivers in a packet. */
#define POOL        64

/* One kind of node. */
struct subject {
    const struct node_class *class;
    void *node;
    struct node_config config;      /* that it has. */
    const struct node_config *next; /* that it is being given. */
};

struct nodes {
    struct subject v[2];
    struct packet_pool *pool;
    uint64_t now;
    int n_applies, n_sent;
    struct svec ovs; /* rules that Open vSwitch has. */
};

static bool
has_port(const struct node_config *c, uint16_t number)
{
    for (size_t i = 0; c && i < c->n_ports; i++) {
        if (c->ports[i].number == number) {
            return true;
        }
    }
    return false;
}

static void
put(void *subject_, uint16_t port, struct packet *p)
{
    const struct subject *s = subject_;

    REQUIRE(has_port(&s->config, port) || has_port(s->next, port));
    REQUIRE(packet_size(p) >= sizeof(struct eth_hdr));
    packet_put(p);
}

/* What intent.h and node-config.h promise. */
static void
check_config(const struct node_config *c)
{
    REQUIRE(c->id >= 1 && c->id <= 0xdfff);
    for (size_t i = 0; i < c->n_ports; i++) {
        REQUIRE(!i || c->ports[i - 1].number < c->ports[i].number);
        REQUIRE(ifname_is_valid(c->ports[i].name));
    }
    for (size_t i = 1; i < c->n_sids; i++) {
        REQUIRE(!IN6_ARE_ADDR_EQUAL(&c->sids[i - 1].prefix, &c->sids[i].prefix)
                || c->sids[i - 1].plen < c->sids[i].plen);
    }
    for (size_t i = 0; i < c->n_probes; i++) {
        const struct probe_config *p = &c->probes[i];

        REQUIRE(!i || c->probes[i - 1].number < p->number);
        REQUIRE(p->program.n && has_port(c, p->port) && p->timeout_usec <= p->interval_usec);
        REQUIRE(p->kind == PROBE_PEER ? p->back.n : !p->back.n && !p->reverse);
    }
    for (size_t i = 0; i < c->n_trees; i++) {
        const struct tree_config *t = &c->trees[i];

        REQUIRE(!t->n_planes || t->n_planes == t->n_outer_da);
        for (size_t j = 0; j < t->n_planes; j++) {
            REQUIRE(IN6_ARE_ADDR_EQUAL(&t->outer_da[j], &t->planes[j].sid));
        }
        REQUIRE(is_proxy_address(&t->proxy) && t->mtu >= 256 && t->mtu <= 4096);
        REQUIRE(t->mode != MODE_MCAST || is_mcast_group_address(&t->mcast_group));
        for (size_t j = 0; j < t->auth.n_keys; j++) {
            const struct auth_key *key = &t->auth.keys[j];
            REQUIRE(key->id > (j ? key[-1].id : 0));
            REQUIRE(key->len >= AUTH_SECRET_MIN && key->len <= AUTH_SECRET_MAX);
        }
        for (size_t j = 0; j < t->n_branches; j++) {
            const struct branch_config *b = &t->branches[j];
            REQUIRE(b->kind == BRANCH_NODE || b->va + b->len >= b->va);
        }
    }
}

/* What other programs would be told: lines, each of which is one. */
static void
check_rules(const struct svec *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        REQUIRE(rules->names[i][0] && !strchr(rules->names[i], '\n'));
    }
}

static void
apply_elsewhere(struct nodes *nodes, const struct node_config *config)
{
    struct svec ovs = SVEC_EMPTY_INITIALIZER, kernel = SVEC_EMPTY_INITIALIZER;
    const struct kernel_abilities all = {true, "dummy", true, true, true, true, true};
    char *error = kernel_rules(config, &all, &kernel);

    check_rules(&kernel);
    REQUIRE(!error || *error);
    free(error);
    error = ovs_rules(config, &ovs);
    check_rules(&ovs);
    if (error) {
        REQUIRE(*error);
        free(error);
        svec_destroy(&ovs);
    } else {
        free(ovs_rules_change(&nodes->ovs, &ovs));
        svec_destroy(&nodes->ovs);
        nodes->ovs = ovs;
    }
    svec_destroy(&kernel);
}

/* Trees that a node of this class takes: a switch is nobody's source agent. */
static size_t
n_taken(const struct subject *s, const struct node_config *config)
{
    size_t n = config->n_trees;

    for (size_t i = 0; i < config->n_trees && s->class->role == NODE_SWITCH; i++) {
        n -= tree_config_is_source(&config->trees[i], &config->address);
    }
    return n;
}

static bool
read_rows(const struct rrec_node *row, struct node_config *config, char **errp)
{
    struct intent_rows rows = {row, (const struct rrec_tree_node *const *) row->trees, row->n_trees,
                               NULL, 0};

    rows.locations = rows_locations(&rows.n_locations);

    return intent_read(&rows, config, errp);
}

static void
apply_to(struct subject *s, const struct rrec_node *row, uint64_t now)
{
    struct node_config config;
    char *error = NULL;

    REQUIRE(read_rows(row, &config, &error));
    s->next = &config;
    if (s->class->configure(s->node, &config, now, &error)) {
        REQUIRE(error && *error);
        free(error);
        node_config_uninit(&config);
    } else {
        REQUIRE(s->class->n_trees(s->node) == n_taken(s, &config));
        node_config_uninit(&s->config);
        s->config = config;
    }
    s->next = NULL;
    s->class->timer(s->node, now);
}

static void
apply(struct nodes *nodes, const struct rrec_node *row)
{
    struct node_config config;
    char *error;

    if (nodes->n_applies++ >= MAX_APPLIES) {
        return;
    }
    nodes->now += 1000;
    if (!read_rows(row, &config, &error)) {
        REQUIRE(error && *error);
        REQUIRE(!config.ports && !config.routes && !config.sids && !config.trees);
        free(error);
        return;
    }
    REQUIRE(!error);
    check_config(&config);
    apply_elsewhere(nodes, &config);
    node_config_uninit(&config);
    for (size_t i = 0; i < ARRAY_SIZE(nodes->v); i++) {
        apply_to(&nodes->v[i], row, nodes->now);
    }
}

/* Packets. */

/* To the port, from the station that the registry says is there. */
static void
feed(struct nodes *nodes, struct subject *s, const struct port_config *port, const uint8_t *ip,
     size_t len)
{
    static const uint8_t group_mac[] = {0x33, 0x33, 0x80, 0, 0, 7};
    const uint8_t *dst = ip + offsetof(struct ip6_hdr_wire, dst);
    uint8_t frame[PACKET_ROOM];
    struct eth_hdr eth = {.src = {2, 1}, .type = be16_put(ETH_TYPE_IP6)};

    memcpy(eth.dst, *dst == 0xff ? group_mac : port->mac, sizeof eth.dst);
    memcpy(frame, &eth, sizeof eth);
    memcpy(frame + sizeof eth, ip, len);
    struct packet *p = packet_from_bytes(nodes->pool, frame, sizeof eth + len);
    if (p) {
        s->class->input(s->node, port->number, p, ++nodes->now);
    }
    nodes->n_sent++;
}

/* The next request of the tree's source; returns its length. */
static size_t
request(const struct nodes *nodes, const struct tree_config *t, uint8_t *out)
{
    return roce_build(out, &(struct roce_spec){
                               .src = &t->source,
                               .dst = &t->proxy,
                               .dest_qp = t->designated_qpn,
                               .opcode = RC_WRITE_ONLY,
                               .ack_req = true,
                               .psn = t->start_psn.v + (uint32_t) nodes->n_sent % 4,
                               .rkey = t->designated_rkey,
                               .dma_len = 64,
                               .payload_len = 64,
                           });
}

/* The same as a source agent would send it to 'dst'. */
static void
send_encapsulated(struct nodes *nodes, struct subject *s, const struct port_config *port,
                  const struct tree_config *t, const struct in6_addr *dst)
{
    static struct encap_template template;
    struct srh_copy named[MAX_NAMED];
    size_t n = 0;
    uint8_t inner[PACKET_ROOM], out[PACKET_ROOM];
    size_t inner_len = request(nodes, t, inner);

    for (size_t i = 0; i < t->n_branches && n < MAX_NAMED; i++) {
        const struct branch_config *b = &t->branches[i];
        if (b->kind == BRANCH_RECEIVER) {
            named[n++] = (struct srh_copy){s->config.address, b->address, b->qpn};
        }
    }
    REQUIRE(!encap_template_build(&template, &t->outer_source, dst, &t->proxy, named,
                                  t->provisioned ? 0 : n));
    struct auth_epoch epoch = tree_config_auth_epoch(t);
    auth_sign(&template, &t->auth, &epoch); /* or does not, without a key. */
    encap_template_stamp(&template, out, (uint16_t) inner_len, 2, 1);
    memcpy(out + template.len, inner, inner_len);
    feed(nodes, s, port, out, template.len + inner_len);
}

/* What a branch answers. */
static void
send_response(struct nodes *nodes, struct subject *s, const struct port_config *port,
              const struct tree_config *t, const struct branch_config *b)
{
    struct in6_addr sid = node_sid(s->config.id, SID_FUNC_RESPONSE);
    const struct in6_addr *src = b->kind == BRANCH_NODE ? &t->proxy : &b->address;
    const struct in6_addr *dst = b->kind == BRANCH_NODE ? &t->source : &t->proxy;
    struct packet *p = response_build(nodes->pool, src, dst, 0xc001, t->designated_qpn,
                                      t->start_psn, b->id % 2 ? AETH_NAK_PSN_SEQ : 0x1f, 1);
    uint8_t out[PACKET_ROOM];

    if (!p) {
        return;
    }
    if (b->kind == BRANCH_NODE) {
        response_wrap(p, &b->address, &sid);
    }
    size_t len = packet_flatten(p, out, sizeof out);
    packet_put(p);
    feed(nodes, s, port, out, len);
}

static void
send_on_port(struct nodes *nodes, struct subject *s, const struct port_config *port)
{
    struct in6_addr end_mt = node_sid(s->config.id, SID_FUNC_END_MT);
    uint8_t out[PACKET_ROOM];

    for (size_t i = 0; i < s->config.n_trees && nodes->n_sent < MAX_SENT; i++) {
        const struct tree_config *t = &s->config.trees[i];

        feed(nodes, s, port, out, request(nodes, t, out));
        send_encapsulated(nodes, s, port, t, &end_mt);
        send_encapsulated(nodes, s, port, t, &t->replication_sid);
        if (t->mode == MODE_MCAST) {
            send_encapsulated(nodes, s, port, t, &t->mcast_group);
        }
        for (size_t j = 0; j < t->n_branches; j++) {
            send_response(nodes, s, port, t, &t->branches[j]);
        }
    }
}

static void
send_all(struct nodes *nodes)
{
    for (size_t i = 0; i < ARRAY_SIZE(nodes->v); i++) {
        struct subject *s = &nodes->v[i];

        for (size_t j = 0; j < s->config.n_ports; j++) {
            send_on_port(nodes, s, &s->config.ports[j]);
        }
        nodes->now += 1000000;
        s->class->timer(s->node, nodes->now);
    }
}

static void
run_lines(char *text, struct nodes *nodes)
{
    const struct rrec_node *row = rows_begin();
    char *save = NULL;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (!strcmp(line, "Apply")) {
            apply(nodes, row);
        } else if (!strcmp(line, "Send")) {
            send_all(nodes);
        } else {
            rows_line(line);
        }
    }
    apply(nodes, row);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct node_class *const classes[] = {&swedge_class, &srcagent_class};
    struct fuzz_input in = {data, size};
    char *text = fuzz_text(&in);
    struct nodes nodes = {.pool = packet_pool_create(POOL), .ovs = SVEC_EMPTY_INITIALIZER};

    for (size_t i = 0; i < ARRAY_SIZE(nodes.v); i++) {
        struct subject *s = &nodes.v[i];

        s->class = classes[i];
        s->node = s->class->create(&(struct node_io){.tx = put, .aux = s}, nodes.pool);
    }
    run_lines(text, &nodes);
    for (size_t i = 0; i < ARRAY_SIZE(nodes.v); i++) {
        nodes.v[i].class->destroy(nodes.v[i].node);
        node_config_uninit(&nodes.v[i].config);
    }
    REQUIRE(packet_pool_n_free(nodes.pool) == POOL);
    packet_pool_destroy(nodes.pool);
    svec_destroy(&nodes.ovs);
    free(text);
    return 0;
}
