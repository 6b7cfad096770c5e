/* SPDX-License-Identifier: Apache-2.0
 *
 * Responses and CNPs of nodes to nodes, in a group with authenticated data: each has a DATA-AUTH TLV
 * (lib/data-auth.h) in an SRH of its own, and counts once (docs/draft-notes.md, R26).
 *
 *     IPv6: source = the child, destination = the parent's response SID, or uSIDs that lead there
 *     SRH:  Last Entry 0, Segments Left 0, Segment List[0] = the parent's response SID
 *           DATA-AUTH TLV
 *     IPv6: the response, from the Proxy Address to the source
 *
 * The parent of the root is the source agent.
 *
 * Uses libcrypto; no I/O.
 */
#ifndef LIB_RESPONSE_AUTH_H
#define LIB_RESPONSE_AUTH_H 1

#include <stddef.h>

#include "lib/drop.h"
#include "lib/node-config.h"

struct packet;
struct parsed;

/* IPv6 header, SRH with one segment, TLV. */
#define RESPONSE_AUTH_LEN \
    (IP6_HDR_LEN + sizeof(struct srh_hdr) + sizeof(struct in6_addr) + sizeof(struct data_tlv))

/* One group epoch's at a node, in one life of the node. */
struct response_auth;
/* 'seq': it goes on behind this sequence. */
struct response_auth *response_auth_create(uint64_t seq);
void response_auth_destroy(struct response_auth *);
/* Forgets keys that are not in this configuration; what has come is still known. */
void response_auth_configure(struct response_auth *, const struct auth_config *);
/* The sequence that it has used last. */
uint64_t response_auth_seq(const struct response_auth *);

/* Who sends a response to whom. */
struct response_pair {
    struct in6_addr child;      /* a node's address. */
    struct in6_addr parent_sid; /* another one's response SID. */
};

/* Puts IPv6 header and SRH in front of a response or CNP, and seals it with t->auth.key; its
 * destination is 'dst', which leads to the parent's SID.  DROP_none; DROP_auth_missing: there is no
 * key, or no instance that is good for this life of the node. */
enum drop_reason
response_auth_seal(struct response_auth *, const struct tree_config *t,
                   const struct response_pair *, const struct in6_addr *dst, struct packet *);

/* Verifies a tunnelled response, and notes that it has come.  'pair' is of a child that may say
 * something: it has to be remembered.  'floor': the least instance that counts; 0: none does.  'h' is
 * what parse_frame() made of 'data'. */
enum drop_reason response_auth_verify(struct response_auth *, const struct tree_config *t,
                                      const struct response_pair *, uint32_t floor,
                                      const uint8_t *data, const struct parsed *h);

#endif /* lib/response-auth.h */
