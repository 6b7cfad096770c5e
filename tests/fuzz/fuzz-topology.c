/* SPDX-License-Identifier: Apache-2.0
 *
 * Topology files.  The input is one; behind PARAMETER it gets a parameter, as from the command
 * line.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "testbed/castlab/topology.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

#define PARAMETER "#!" /* a comment. */

static void
check_node(const struct topology *t, size_t i)
{
    const struct topology_node *n = &t->nodes[i];
    unsigned int n_links = 0;

    REQUIRE(topology_name_ok(n->name));
    REQUIRE(n->kind == KIND_HOST || (n->id >= 1 && n->id <= 0xdfff));
    REQUIRE(!n->plane[0] || (n->kind != KIND_HOST && topology_name_ok(n->plane)));
    REQUIRE(!n->no_rdma || n->kind == KIND_HOST);
    for (size_t j = 0; j < i; j++) {
        REQUIRE(strcmp(n->name, t->nodes[j].name) != 0);
        REQUIRE(n->kind == KIND_HOST || t->nodes[j].kind == KIND_HOST || n->id != t->nodes[j].id);
        REQUIRE(n->kind != KIND_HOST || t->nodes[j].kind != KIND_HOST
                || memcmp(&n->address, &t->nodes[j].address, sizeof n->address) != 0);
    }
    for (size_t j = 0; j < t->n_links; j++) {
        n_links += (t->links[j].ends[0].node == i) + (t->links[j].ends[1].node == i);
    }
    REQUIRE(n_links == n->n_links);
    REQUIRE(n->kind != KIND_HOST || n_links == 1);
}

static void
check_link(const struct topology *t, const struct topology_link *l)
{
    for (int e = 0; e < 2; e++) {
        struct impair_params params;
        char *error = NULL;

        REQUIRE(l->ends[e].node < t->n_nodes);
        REQUIRE(l->ends[e].netdev[0] && strlen(l->ends[e].netdev) < IFNAMSIZ);
        REQUIRE(impair_parse(l->impair[e], &params, &error));
    }
    REQUIRE(l->ends[0].node != l->ends[1].node);
    REQUIRE(l->has_host == (t->nodes[l->ends[0].node].kind == KIND_HOST));
    REQUIRE(t->nodes[l->ends[1].node].kind != KIND_HOST);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const parameters[] = {"N=3"};
    char path[64];
    struct topology *t;
    int fd = memfd_create("topology", MFD_CLOEXEC);

    REQUIRE(fd >= 0);
    REQUIRE(write(fd, data, size) == (ssize_t) size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    size_t len = strlen(PARAMETER);
    bool with_parameter = size >= len && !memcmp(data, PARAMETER, len);
    char *error = topology_load(path, NULL, parameters, with_parameter, &t);

    REQUIRE(!error == (t != NULL));
    REQUIRE(!error || !strncmp(error, path, strlen(path)));
    if (t) {
        REQUIRE(topology_name_ok(t->name) && t->n_nodes <= TOPOLOGY_MAX_NODES);
        REQUIRE(t->path_policy <= PATH_SPRAY && t->path_form <= PATH_FORM_DT6);
        for (size_t i = 0; i < t->n_nodes; i++) {
            check_node(t, i);
        }
        for (size_t i = 0; i < t->n_links; i++) {
            check_link(t, &t->links[i]);
        }
    }
    topology_destroy(t);
    free(error);
    close(fd);
    return 0;
}
