/* SPDX-License-Identifier: Apache-2.0
 *
 * A lab's topology file as a checked structure (docs/castlab.md has the format).
 *
 * Everything that can be wrong in a file is found here, before anything is
 * made; the rest of castlab relies on what the comments below promise.
 */
#ifndef TESTBED_CASTLAB_TOPOLOGY_H
#define TESTBED_CASTLAB_TOPOLOGY_H 1

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/node-config.h"
#include "lib/path-rule.h"
#include "lib/probe-settings.h"
#include "testbed/labs/labs.h"

#define TOPOLOGY_NAME_SIZE   32 /* of labs and nodes, with the terminating NUL. */
#define TOPOLOGY_MAX_NODES   1024
#define REGISTRY_MAX_SERVERS 5

/* The role of a forwarder of this kind. */
enum node_role topology_role(enum topology_kind);

struct topology_node {
    char name[TOPOLOGY_NAME_SIZE]; /* unique. */
    enum topology_kind kind;
    struct in6_addr address; /* hosts: unicast, unique, outside the Proxy and locator ranges. */
    uint16_t id;             /* forwarders: 1..NODE_ID_MAX, unique. */
    bool no_aggregation;     /* swedges: it only replicates. */
    bool no_rdma;            /* hosts: it gets no RDMA device. */
    char plane[TOPOLOGY_NAME_SIZE]; /* forwarders: label; "": none. */
    unsigned int n_links;           /* hosts: 1. */
};

struct topology_end {
    size_t node;           /* index. */
    char netdev[IFNAMSIZ]; /* unique in the node; on a host link the tap's name at both ends,
                               unique among all hosts. */
};

struct topology_link {
    struct topology_end ends[2];      /* a host comes first. */
    bool has_host;                    /* a host link: its device is a tap. */
    enum port_kind kind;              /* of forwarders' ports. */
    char impair[2][IMPAIR_TEXT_SIZE]; /* of what ends[i] sends; "": it is a good link. */
};

struct topology {
    char name[TOPOLOGY_NAME_SIZE];
    unsigned int host_mtu, fabric_mtu;
    enum path_policy path_policy; /* of all hosts. */
    enum path_form path_form;
    struct probe_choice probes; /* of all paths. */
    unsigned int n_servers;     /* of the registry. */
    size_t n_nodes;
    struct topology_node *nodes;
    size_t n_links;
    struct topology_link *links;
};

/* Reads and checks 'file'.  'parameters' are n strings "KEY=VALUE" that
 * override the file's; 'name', unless NULL, overrides the lab's name.  Returns
 * NULL and *topologyp, or a malloc'd error with its position. */
char *topology_load(const char *file, const char *name, const char *const parameters[], size_t n,
                    struct topology **topologyp);
void topology_destroy(struct topology *);

/* Can it name a lab or node?  A letter, then letters, digits, '_' and '-', not too long. */
bool topology_name_ok(const char *);

#endif /* testbed/castlab/topology.h */
