/* SPDX-License-Identifier: Apache-2.0
 *
 * A node on a bench: frames in, frames out, neighbours that answer.
 */
#ifndef TESTS_UNIT_NODE_FIXTURE_H
#define TESTS_UNIT_NODE_FIXTURE_H 1

#include "lib/node.h"
#include "lib/parse.h"
#include "tests/model/sent-frames.h"

#define FIXTURE_MAX_FRAMES 256
#define FIXTURE_MAX_PORTS  32

/* The star: an agent on port 1, receivers on ports 2.. */
#define STAR_EDGE_ID       0x100
#define STAR_AGENT_ID      0x200
#define STAR_DQPN          0x101
#define STAR_SOURCE_QPN    0x4711
#define STAR_RKEY          0xdeadbeefu
#define STAR_REGION        0x10000u
#define START              0xfffffeu /* PSN; it wraps soon. */

struct frame {
    size_t len;
    uint16_t port; /* puts IPv6 addresses on a multiple of 4. */
    uint8_t bytes[PACKET_ROOM];
    struct parsed h; /* DROP_none asserted when taken. */
};

struct fixture {
    const struct node_class *class;
    void *node;
    struct packet_pool *pool;
    struct node_config config;
    uint64_t now;
    bool mute;                       /* neighbours do not answer who they are. */
    bool mangled;                    /* what is sent need not make sense behind its IPv6 header. */
    uint32_t mtu[FIXTURE_MAX_PORTS]; /* of ports; 0: no limit. */
    bool down[FIXTURE_MAX_PORTS];    /* links of ports. */
    void (*sink)(struct fixture *, struct packet *); /* consumes what is sent; NULL: 'frames'. */
    struct sent_frames sent;                         /* frames that wait until the event is over. */
    size_t n_frames;
    struct frame frames[FIXTURE_MAX_FRAMES]; /* sent, neighbour discovery excluded. */
};

struct in6_addr addr_of(const char *text);

/* A node with this many receivers: swedge_class makes the edge, srcagent_class
 * the agent. */
struct fixture *fixture_create(const struct node_class *, unsigned n_receivers);
/* The same with a pool of so many packets. */
struct fixture *
fixture_create_with(const struct node_class *, unsigned n_receivers, unsigned n_packets);
void fixture_destroy(struct fixture *);
/* Another run of the node, with the same configuration. */
void fixture_restart(struct fixture *, uint32_t seed);
/* Applies f->config again (the test has changed it), with the next generation. */
void fixture_configure(struct fixture *);
/* Adds a second epoch of the tree beside the first: tree 1, with the next epoch
 * and Designated QPN. */
void fixture_add_epoch(struct fixture *);

/* To be followed by fixture_configure(): another forwarder on 'port', and all of
 * its locator behind it; a SID of the node; a node branch of tree 0. */
void fixture_add_node(struct fixture *, uint16_t port, uint16_t id);
void fixture_add_sid(struct fixture *, uint16_t function, uint8_t plen, enum sid_behaviour);
void fixture_add_node_branch(struct fixture *, uint16_t id);
/* What copies of tree 0 go to. */
void fixture_set_outer_das(struct fixture *, const struct in6_addr *, size_t n);

/* An IPv6 packet as a frame to 'port', addressed to the node, in 'out' (room PACKET_ROOM); returns
 * its length. */
size_t
fixture_frame(const struct fixture *, uint16_t port, const uint8_t *ip, size_t len, uint8_t *out);
/* Feeds an IPv6 packet as a frame to 'port', addressed to the node, having
 * forgotten earlier frames. */
void fixture_input(struct fixture *, uint16_t port, const uint8_t *ip, size_t len);
void fixture_input_more(struct fixture *, uint16_t port, const uint8_t *ip, size_t len);

/* The event at the node is over: what it has sent leaves, as it was when it was sent.  For those
 * who call the node themselves. */
void fixture_settle(struct fixture *);

/* Goes to the node's next deadline and calls its timer, having forgotten earlier frames. */
void fixture_timer(struct fixture *);
/* Asks for the MAC of 'target' as the station on 'port' would.  Is that answered? */
bool fixture_solicit(struct fixture *, uint16_t port, struct in6_addr target);

uint64_t fixture_drops(const struct fixture *, enum drop_reason);
/* All drop counters, DROP_none excluded. */
uint64_t fixture_total_drops(const struct fixture *);

/* Receiver i (from 0): its address, QPN, rkey, base address, port. */
struct in6_addr star_receiver(unsigned i);
uint32_t star_qpn(unsigned i);
uint32_t star_rkey(unsigned i);
uint64_t star_va(unsigned i);
uint16_t star_port(unsigned i);
extern const struct in6_addr star_source, star_proxy;
/* The configuration of the edge, or of the agent, with n receivers; '*c' is zero. */
void star_config(struct node_config *c, bool edge, unsigned n);

/* An RC packet in 'out' (room PACKET_ROOM) with a good ICRC; returns its
 * length.  'reth' may be NULL; its place is chosen by the opcode table. */
struct roce_spec {
    const struct in6_addr *src, *dst;
    uint32_t dest_qp;
    uint8_t opcode;
    bool ack_req;
    uint32_t psn;
    uint64_t va;
    uint32_t rkey, dma_len;
    uint8_t syndrome;
    uint32_t msn;
    size_t payload_len;
    uint16_t pkey; /* 0: that of the default partition. */
};
size_t roce_build(uint8_t *out, const struct roce_spec *);
/* What node 'from' sends to the response SID of node 'to'; returns its length. */
size_t tunnelled_response(uint8_t *out, uint16_t from, uint16_t to, uint32_t designated_qpn,
                          uint8_t syndrome, uint32_t psn);

/* An IPv6 packet with 'len' bytes of upper layer, which are zero; returns where those are. */
uint8_t *ip6_build(uint8_t *out, struct in6_addr src, struct in6_addr dst, uint8_t nh, size_t len);
/* An SRH with these segments, the last one first; returns its length. */
size_t srh_build(uint8_t *out, const struct in6_addr *segments, uint8_t n, uint8_t segments_left,
                 uint8_t nh);

/* The frame is the copy of 'spec' for receiver i. */
void check_copy(const struct frame *, unsigned i, const struct roce_spec *);
/* The frame is an ICMPv6 error message. */
void
check_icmp6_error(const struct frame *, uint16_t port, uint8_t type, uint8_t code, uint32_t param);
/* Is the ICRC of the frame's innermost packet right? */
bool frame_icrc_ok(const struct frame *);

#endif /* tests/unit/node-fixture.h */
