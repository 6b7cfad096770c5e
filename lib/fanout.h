/* SPDX-License-Identifier: Apache-2.0
 *
 * One packet of a group on its way to several branches: which branch needs a copy, which is asked
 * how far it is, which copy is made of the original, and what the reverse-path machine of the group
 * (lib/reverse.h) is told of all that.  Edges use it for receivers, transit nodes for nodes, and
 * the source agent as well.
 *
 *     struct fanout f = {...};                          what is copied, and who sends a copy
 *     for each candidate: fanout_add(&f, branch, ...);  or fanout_leave_out()
 *     why = fanout_end(&f);
 *
 * The caller has called reverse_down() for the packet before.
 */
#ifndef LIB_FANOUT_H
#define LIB_FANOUT_H 1

#include "lib/node-base.h"
#include "lib/reverse.h"

/* In place of a branch's id: all branches that share (reverse_share()).  No branch has this id. */
#define FANOUT_SHARED 0
/* Likewise: none of this node's branches, as those behind it are another node's.  It gets every
 * copy. */
#define FANOUT_OTHERS UINT32_MAX

struct fanout;

/* Makes 'copy' what 'target' is to get, and sends it.  Consumes it.  The data of the copy begins
 * with byte 'ofs' of the original.  'icrc' is where its ICRC is if copies have one of their own,
 * or if it is the original.  Returns what became of it. */
typedef enum drop_reason
fanout_send(const struct fanout *, void *target, struct packet *copy, uint8_t *icrc);

struct fanout {
    /* The caller's. */
    struct node_base *node;
    struct reverse *reverse;
    const char *what; /* name of what makes the copies, for traces. */
    fanout_send *send;
    const void *aux; /* for 'send'. */
    psn_t psn;
    uint64_t now;
    struct packet *original; /* a frame as it came from a port, or the end of one: no body. */
    bool takes_original; /* the last copy is made of it; in any case fanout_end() consumes it. */
    bool rewrites;       /* copies differ up to head_len, and have an ICRC of their own. */
    uint16_t ofs;        /* of the first byte that is copied. */
    uint16_t head_len;   /* bytes from 'ofs' on that copies have of their own. */
    uint16_t bth_ofs;    /* counted from 'ofs'. */
    uint16_t after_qpn;  /* bytes from behind the BTH's DestQP to the ICRC. */

    /* Zero at first. */
    void *held; /* target that gets its copy when the next one is found; NULL: none. */
    uint32_t held_branch;
    uint32_t own_len;   /* bytes from 'ofs' on that are each copy's own. */
    bool begun;         /* 'serves_all', 'may_ask' and 'own_len' are known. */
    bool serves_all;    /* each branch gets a copy. */
    bool may_ask;       /* copies may get AckReq. */
    bool shared;        /* a target for the branches that share was found. */
    bool shared_needed; /* these branches need a copy: reverse_filters_all() is false. */
    bool shared_lost;   /* a copy for the branches that share could not be sent. */
};

/* 'target', at address 'to', is to get a copy if its branch needs one.  'branch' is an id,
 * FANOUT_SHARED or FANOUT_OTHERS.  'target' must not be NULL. */
void fanout_add(struct fanout *, uint32_t branch, void *target, const struct in6_addr *to);
/* Somebody at address 'to' gets no copy for this reason, which is counted. */
void fanout_leave_out(const struct fanout *, const struct in6_addr *to, enum drop_reason);
/* Makes the last copy.  Returns what became of it, DROP_none if there was none.  What became of the
 * others is counted. */
enum drop_reason fanout_end(struct fanout *);

#endif /* lib/fanout.h */
