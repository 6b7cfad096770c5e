/* SPDX-License-Identifier: Apache-2.0
 *
 * For experiments: what becomes of flows whose path has failed if nobody tells their hosts.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <string.h>

#include "unixctl.h"
#include "util.h"

/* on|off */
static void
set(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[], void *d_)
{
    const struct node_daemon *d = d_;
    bool on = !strcmp(argv[1], "on");

    if (!on && strcmp(argv[1], "off")) {
        unixctl_command_reply_error(conn, "the argument must be on or off");
        return;
    }
    node_workers_stop(d_);
    for (unsigned i = 0; i < d->n_workers; i++) {
        d->class->make_naks(d->workers[i]->node, on);
    }
    node_workers_go(d_);
    unixctl_command_reply(conn, NULL);
}

void
node_path_naks_init(struct node_daemon *d)
{
    unixctl_command_register("rocecast/path-naks", "on|off", 1, 1, set, d);
}
