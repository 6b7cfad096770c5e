/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication of a group's packets, each by itself: the DATA-AUTH TLV, and which packets have come.
 *
 * The tag of a packet is an AES-128-GMAC with the nonce instance | sequence, over
 *
 *     the outer source address,
 *     of the SRH Hdr Ext Len, Last Entry, Flags, Tag, Segment List and all bytes of all TLVs, the tag
 *     as zeros,
 *     the inner packet from its IPv6 header to its ICRC as it leaves the source agent, but with 0 as
 *     traffic class, flow label and hop limit, and as if nobody had set AckReq on the way.
 *
 * Nodes that copy set AckReq and adapt the ICRC (lib/fanout.h).  The ICRC is linear, so what it was
 * without AckReq is known; who changes anything else behind that ICRC is found out.
 *
 * The key is HKDF-SHA256 of the shared one, without salt, for
 *
 *     "SRv6 multicast data" | Proxy Address | 0 | Designated QPN | epoch
 *
 * Responses of nodes to nodes have the same tags and the same TLV, by keys for
 *
 *     "SRv6 mcast response" | Proxy Address | 0 | Designated QPN | epoch
 *                           | address of who sends it | response SID of who takes it
 *
 * A nonce must never come twice with one key.  The sequence counts packets of one life of the source
 * agent; each life has instances of its own (docs/draft-notes.md, R25).
 *
 * Uses libcrypto; no I/O.
 */
#ifndef LIB_DATA_AUTH_H
#define LIB_DATA_AUTH_H 1

#include <sys/uio.h>

#include "lib/auth.h"
#include "lib/wire.h"

#define DATA_KEY_LEN 16
#define DATA_WINDOW  1024 /* sequence numbers below the highest of which a node knows. */

/* A key of a group epoch. */
struct data_key;
/* NULL: libcrypto does not work. */
struct data_key *data_key_create(const struct auth_key *shared, const struct auth_epoch *);
/* The same of the responses that 'child' sends to its parent's response SID
 * (lib/response-auth.h).  NULL: likewise. */
struct data_key *
data_key_create_up(const struct auth_key *shared, const struct auth_epoch *,
                   const struct in6_addr *child, const struct in6_addr *parent_sid);
/* Leaves no secret in memory; NULL is allowed. */
void data_key_destroy(struct data_key *);

/* What a tag covers, in a packet whose inner one is an IPv6 header, UDP, BTH and so on up to the ICRC,
 * without extension headers. */
struct data_covered {
    const in6_wire_t *src;
    const struct srh_hdr *srh;
    size_t srh_len;
    const struct data_tlv *tlv; /* in the SRH. */
    const struct iovec *inner;
    size_t n_inner;
};
/* False: libcrypto does not work, or the inner packet is too short. */
bool data_tag(struct data_key *, const struct data_covered *, uint8_t tag[DATA_TAG_LEN]);

struct encap_template;
struct packet;
struct parsed;
/* Completes the DATA-AUTH TLV of 'p', which begins with 't' as it was stamped, and whose inner packet
 * is as above.  False: libcrypto does not work. */
bool data_seal(struct data_key *, const struct encap_template *t, struct packet *p,
               uint32_t instance, uint64_t seq);

/* The same of a packet whose SRH begins at p->data[srh_ofs] and ends at 'len' with that TLV. */
bool data_seal_srh(struct data_key *, struct packet *p, size_t srh_ofs, size_t len,
                   uint32_t instance, uint64_t seq);
/* Is the tag of the frame's DATA-AUTH TLV right?  It has one; 'h' is what parse_frame() made of 'data'. */
bool data_verify(struct data_key *, const uint8_t *data, const struct parsed *h);

/* The instance that counts in this life of a node, which has drawn 'own', and whose row says that
 * 'answered' was answered with 'instance'.  0: none yet. */
uint32_t data_instance(uint64_t own, uint64_t answered, uint32_t instance);

/* Which sequence numbers of an instance have come: a ring of bits, one word of which is on its way
 * out. */
#define DATA_WORDS (DATA_WINDOW / 64 + 1)
struct data_seen {
    uint32_t instance;
    uint64_t highest; /* 0: none has come. */
    uint64_t bits[DATA_WORDS];
};

/* The same of a group epoch at one edge, in one life of that.  All zero at first: it takes nothing. */
struct data_window {
    uint32_t floor;          /* the least instance that counts; 0: none does. */
    struct data_seen now;    /* of the highest instance; */
    struct data_seen before; /* of the one that came before that. */
};
/* Is this packet, whose tag is right, the first one with this nonce?  Notes that it has come.  False
 * also of what is so old that nobody knows. */
bool data_window_take(struct data_window *, uint32_t instance, uint64_t seq);

#endif /* lib/data-auth.h */
