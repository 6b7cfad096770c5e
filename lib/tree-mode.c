/* SPDX-License-Identifier: Apache-2.0
 *
 * The modes of trees.
 */
#include "lib/tree-mode.h"

const struct tree_mode_row tree_mode_rows[] = {
    [MODE_REPLICATE] =
        {
            .text = "replicate",
            .addressed_to_group = false,
            .switches_replicate = true,
            .switches_merge = true,
            .agent_is_root = false,
            .packet_per_edge = false,
        },
    [MODE_MCAST] =
        {
            .text = "mcast",
            .addressed_to_group = true,
            .switches_replicate = false,
            .switches_merge = false,
            .agent_is_root = true,
            .packet_per_edge = false,
        },
    [MODE_INGRESS] =
        {
            .text = "ingress",
            .addressed_to_group = false,
            .switches_replicate = false,
            .switches_merge = false,
            .agent_is_root = true,
            .packet_per_edge = true,
        },
};
WORDS_DEFINE(tree_mode, enum tree_mode, tree_mode_rows);
