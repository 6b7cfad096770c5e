/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs of uSIDs explained by the registry's nodes.  Commands that use this need CTL_INTENT.
 */
#ifndef CTL_CASTCTL_PROGRAM_H
#define CTL_CASTCTL_PROGRAM_H 1

#include "ctl/castctl/castctl.h"
#include "lib/program.h"

/* What becomes of a packet with this program that has come to the node 'at', NULL: to the node that
 * its first uSID names.  An array with an object for each step: "node" (null: nobody knows),
 * "destination", the address as it comes there, "behaviour" (null: none), "port" and "next" (null: it
 * goes nowhere), and "then", what the node does. */
struct json *
program_segments(const struct ctl *, const struct rrec_node *at, const struct program *);

/* What the last one does if the packet inside goes on. */
#define PROGRAM_DECAPSULATES "takes the header off"

/* For error messages, with PROGRAM_MAX. */
#define PROGRAM_RULE         "must be IPv6 addresses, at most %d, with commas between them"

/* "leaf1 > spine5 > leaf3 End.DT6", malloc'd: the nodes of such an array, with what they do unless
 * that is uN. */
char *program_nodes(const struct json *segments);

#endif /* ctl/castctl/program.h */
