/* SPDX-License-Identifier: Apache-2.0
 *
 * Authentication of a group's packets, by a key that the source agent and the edges of the group
 * share.  Of SRHs, by TLVs with an HMAC-SHA256:
 *
 *     HMAC     RFC 8754 2.1.2: source address, Last Entry, Flags, D and reserved
 *              bits, Key ID, Segment List; no other TLV.
 *     MT-AUTH  source address, Last Entry, Flags, Tag, Segment List and all bytes
 *              of all TLVs, with its own HMAC field zeroed: End.MT TLVs too.
 *
 * Both are made with a key that is derived from the shared one for each group epoch:
 *
 *     HMAC-SHA256(shared key, "SRv6 multicast epoch" | Proxy Address | 0 | Designated QPN)
 *
 * So what was made for one epoch authenticates nothing in another.
 *
 * Neither covers what changes on the way of a packet through its tree (outer
 * destination, Segments Left, hop limit), so both are made once for all packets
 * that are encapsulated alike.
 *
 * Of whole packets, each by itself, by the DATA-AUTH TLV: lib/data-auth.h.  What is here puts an
 * empty one into the SRH, and verifies.
 *
 * Uses libcrypto; no I/O.
 */
#ifndef LIB_AUTH_H
#define LIB_AUTH_H 1

#include "lib/drop.h"
#include "lib/wire.h"

struct encap_template;
struct parsed;

#define AUTH_SECRET_MIN  16 /* bytes. */
#define AUTH_SECRET_MAX  64 /* HMAC-SHA256 hashes what is longer. */

/* For this long after a change a node also takes packets that were right before it: they were on
 * their way. */
#define AUTH_LINGER_USEC 1000000

struct auth_key {
    uint32_t id; /* never 0. */
    uint8_t len; /* AUTH_SECRET_MIN..AUTH_SECRET_MAX. */
    uint8_t secret[AUTH_SECRET_MAX];
};

/* Which TLVs. */
#define AUTH_MT   (1u << 0)
#define AUTH_HMAC (1u << 1)
#define AUTH_DATA (1u << 2) /* alone: it covers all that MT-AUTH does. */

struct auth_config {
    unsigned int tlvs; /* TLVs that packets have; edges drop packets without them. */
    /* Id of the key that it makes TLVs with: a source agent those of packets, other nodes those of
     * responses to nodes, with authenticated data.  0: none. */
    uint32_t key;
    /* Of DATA-AUTH TLVs.  Source agent: the one that it makes them with.  Edge: the least that it
     * takes.  0: none is known that is good for this life of the node. */
    uint32_t instance;
    /* The same of responses to nodes.  Source agent: the least that it takes.  Others: the one that they
     * make them with; the least that they take is 'instance'. */
    uint32_t response_instance;
    bool responses; /* responses of nodes must have the TLV. */
    uint64_t life;  /* the life of a node that the registry's instance is an answer to. */
    size_t n_keys;  /* accepted keys, by id. */
    struct auth_key *keys;
};

/* The group epoch that digests are made for. */
struct auth_epoch {
    struct in6_addr proxy;
    uint32_t designated_qpn;
    uint32_t epoch; /* DATA-AUTH. */
};

/* NULL: none. */
const struct auth_key *auth_find_key(const struct auth_config *, uint32_t id);
void auth_config_clone(struct auth_config *dst, const struct auth_config *src);
/* Leaves no secret in memory. */
void auth_config_uninit(struct auth_config *);

/* What these TLVs add to an SRH, in bytes. */
size_t auth_len(unsigned int tlvs);

/* Adds the TLVs for that epoch to 't', an SRH of whose bytes then only Segments Left may change, and
 * what data_seal() writes.  DATA-AUTH is the last one.
 * Returns 0; EMSGSIZE if it would exceed SRH_MAX_LEN; ENOKEY if 'config' has no such
 * key; EIO if libcrypto does not work.  't' is as it was then. */
int auth_sign(struct encap_template *t, const struct auth_config *config,
              const struct auth_epoch *epoch);

/* An edge's side, for one group epoch. */
struct auth_verifier;

/* What became of a packet. */
struct auth_result {
    enum drop_reason why; /* DROP_none, or an auth_ reason. */
    uint32_t key;         /* key id of the TLV that 'why' is about; 0: there is none. */
    bool cached;          /* the SRH was equal to one verified before. */
};

struct auth_stats {
    uint64_t n_computed; /* SRHs verified by computing. */
    uint64_t n_cached;   /* packets with an SRH that was verified before. */
    uint64_t n_refused;
    struct auth_result refused; /* the last packet that was refused. */
};

struct auth_verifier *auth_verifier_create(const struct auth_epoch *);
void auth_verifier_destroy(struct auth_verifier *);
/* The first configuration counts at once.  When a later one changes anything, the former one counts
 * as well for AUTH_LINGER_USEC. */
void auth_verifier_configure(struct auth_verifier *, const struct auth_config *, uint64_t now);
/* Time at which auth_verifier_timer() wants to be called; UINT64_MAX: never.  It takes secrets that
 * do not count any more out of memory. */
uint64_t auth_verifier_deadline(const struct auth_verifier *);
void auth_verifier_timer(struct auth_verifier *, uint64_t now);
/* Nothing is configured any more; what has come is still known. */
void auth_verifier_forget(struct auth_verifier *);
/* Verifies the frame 'data', which has an SRH and was parsed with parse_rest(), and notes that it has
 * come. */
struct auth_result
auth_verify(struct auth_verifier *, const uint8_t *data, const struct parsed *, uint64_t now);
const struct auth_stats *auth_verifier_stats(const struct auth_verifier *);

#endif /* lib/auth.h */
