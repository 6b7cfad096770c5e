/* SPDX-License-Identifier: Apache-2.0
 *
 * What may be broken, as text.
 */
#include "lib/fault-element.h"

#include <string.h>

static const struct {
    const char *name;
} kinds[] = {
    [FAULT_NODE] = {"node"},
    [FAULT_LINK] = {"link"},
    [FAULT_DIRECTION] = {"direction"},
    [FAULT_PATH] = {"path"},
};
WORDS_DEFINE(fault_kind, enum fault_kind, kinds);

enum fault_kind
fault_element_kind(const char *text)
{
    return strchr(text, ',')    ? FAULT_PATH
           : strstr(text, "<>") ? FAULT_LINK
           : strchr(text, '>')  ? FAULT_DIRECTION
                                : FAULT_NODE;
}
