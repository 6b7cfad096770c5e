/* SPDX-License-Identifier: Apache-2.0
 *
 * How good a way is: see path-health.h.
 */
#include "lib/path-health.h"

static const char *const path_states[] = {
    [PATH_GOOD] = "good",       [PATH_UNKNOWN] = "unknown",
    [PATH_SUSPECT] = "suspect", [PATH_RECOVERING] = "recovering",
    [PATH_BAD] = "bad",
};
WORDS_DEFINE(path_state, enum path_state, path_states);
