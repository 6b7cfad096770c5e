/* SPDX-License-Identifier: Apache-2.0
 *
 * What nodes do about losses in a group: settings that operators give and that may
 * change while packets are under way.  Plans and nodes carry them as a whole.
 *
 * What operators call them is in ctl/registry/group-settings.c.
 */
#ifndef LIB_GROUP_POLICY_H
#define LIB_GROUP_POLICY_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/reverse.h"
#include "lib/words.h"

/* Who says that copies to a receiver met congestion on the way? */
enum cnp_source {
    CNP_AUTO, /* its edge, until the receiver has sent a CNP of its own. */
    CNP_EDGE, /* its edge; CNPs of the receiver count as well. */
    CNP_NIC,  /* the receiver only. */
    CNP_OFF,  /* nobody: its CNPs do not count either. */
};
WORDS_DECLARE(cnp_source, enum cnp_source);

struct group_policy {
    enum reverse_nak nak;   /* what becomes of a NAK above the minimum. */
    bool filter;            /* no copies of what is confirmed. */
    bool prune;             /* true: lost branches are not counted; false: the group fails. */
    uint32_t liveness_msec; /* a branch is lost after this time without progress; 0: never. */
    uint32_t min_rate;   /* PSNs a second that a branch must confirm when asked; 0: any number. */
    bool lose_slow;      /* true: a branch that confirms fewer is lost; false: that is said. */
    uint8_t timeout;     /* of the source's QP: 4.096 us * 2^timeout; 0: not known. */
    enum cnp_source cnp; /* whose CNPs count. */
    uint32_t cnp_window_usec; /* T: a node sends at most one CNP upwards in this time. */
    uint8_t trace_slots; /* source agent: packets have an IOAM trace of so many slots; 0: none. */
};

#endif /* lib/group-policy.h */
