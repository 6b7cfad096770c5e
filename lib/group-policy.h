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

struct group_policy {
    enum reverse_nak nak;   /* what becomes of a NAK above the minimum. */
    bool filter;            /* no copies of what is confirmed. */
    bool prune;             /* lost branches are not counted; or else the group fails. */
    uint32_t liveness_msec; /* a branch without progress for so long is lost; 0: none is. */
    uint8_t timeout;        /* of the source's QP: 4.096 us * 2^timeout; 0: not known. */
};

#endif /* lib/group-policy.h */
