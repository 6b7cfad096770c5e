/* SPDX-License-Identifier: Apache-2.0
 *
 * What RDMA-CM programs and a group tell each other in private data (docs/joining.md).  Big-endian,
 * without gaps.
 */
#ifndef LIB_GROUP_ANSWER_H
#define LIB_GROUP_ANSWER_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire.h"

/* What a group answers a program that connects.  It begins as the answer of a receiver does that
 * uses the default layout: so a source need not know whether it writes to a group.
 *
 *      0  va     8  of the region that RDMA WRITEs name: 0
 *      8  rkey   4  of it: the designated rkey
 *     12  len    8  of it
 *     20  epoch  4
 *     24  active members  2
 *     26  0      2
 *     28  "rocecast" 8 */
#define GROUP_ANSWER_LEN 36
struct group_answer {
    uint64_t va;
    uint32_t rkey;
    uint64_t len;
    uint32_t epoch;
    uint16_t n_members;
};
void group_answer_put(const struct group_answer *, uint8_t data[GROUP_ANSWER_LEN]);
/* False: it is not from a group. */
bool group_answer_get(struct group_answer *, const uint8_t *data, size_t len);

/* What a program says that wants to be a receiver:
 *
 *      0  "receiver" 8
 *      8  va     8  of its region
 *     16  rkey   4
 *     20  len    8 */
#define RECEIVER_REQUEST_LEN 28
struct receiver_request {
    uint64_t va, len;
    uint32_t rkey;
};
/* False: it does not want to be one. */
bool receiver_request_get(struct receiver_request *, const uint8_t *data, size_t len);

#endif /* lib/group-answer.h */
