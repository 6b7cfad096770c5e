/* SPDX-License-Identifier: Apache-2.0
 *
 * The srcagent program.
 */
#include "ctl/node/daemon.h"
#include "srcagent/srcagent.h"

int
main(int argc, char *argv[])
{
    return node_daemon_main(argc, argv, &srcagent_class, "host side of an RDMA multicast source");
}
