/* SPDX-License-Identifier: Apache-2.0
 *
 * The swedge program.
 */
#include "ctl/node/daemon.h"
#include "swedge/swedge.h"

int
main(int argc, char *argv[])
{
    return node_daemon_main(argc, argv, &swedge_class,
                            "SRv6 edge and transit forwarder for RDMA multicast");
}
