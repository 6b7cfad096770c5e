/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl capture record: ports of several nodes in one file.
 */
#ifndef CTL_CASTCTL_RECORD_H
#define CTL_CASTCTL_RECORD_H 1

#include "ctl/castctl/castctl.h"

void record(struct ctl *);

#endif /* ctl/castctl/record.h */
