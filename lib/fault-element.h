/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be broken, as text:
 *
 *     spine5                          a node
 *     leaf1<>spine5                   a link; of parallel ones "leaf1:eth3<>spine5:eth0"
 *     leaf1>spine5                    one direction of it
 *     dpu1,leaf1,spine5,leaf3,dpu3    the whole way of a probe
 *
 * Names of nodes have none of these signs.
 */
#ifndef LIB_FAULT_ELEMENT_H
#define LIB_FAULT_ELEMENT_H 1

#include "lib/words.h"

enum fault_kind {
    FAULT_NODE,
    FAULT_LINK,      /* both directions, or it is not known which one. */
    FAULT_DIRECTION, /* the other one works, or nothing speaks against it. */
    FAULT_PATH,      /* everything on this way works on other ways. */
};
WORDS_DECLARE(fault_kind, enum fault_kind);

enum fault_kind fault_element_kind(const char *);

#endif /* lib/fault-element.h */
