/* SPDX-License-Identifier: Apache-2.0
 *
 * castbroker: the registry for clients that are not to do, or see, everything.
 *
 * It stands in front of one registry server, and passes on what a client's role allows
 * (ctl/broker/rights.c).  Who a client is, its certificate says.
 */
#include <config.h>

#include <stdlib.h>

#include "ctl/broker/broker.h"
#include "ctl/process/daemon-common.h"
#include "ctl/process/listing.h"
#include "ctl/process/metrics.h"
#include "ctl/process/metrics-server.h"
#include "ctl/process/open-files.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "unixctl.h"

static void
status_cb(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[] OVS_UNUSED, void *b)
{
    unixctl_command_reply(conn, !broker_is_connected(b) ? "registry not connected" : "active");
}

static void
clients_cb(struct unixctl_conn *conn, const void *b, bool as_json)
{
    struct json *clients = broker_clients(b);

    listing_reply(conn, clients, as_json);
    json_destroy(clients);
}

static void
counters_cb(struct unixctl_conn *conn, const void *b, bool as_json)
{
    struct json *counters = broker_counters(b);

    listing_reply(conn, counters, as_json);
    json_destroy(counters);
}

/* The counters, and how the broker is. */
static struct json *
metrics_of(const struct broker *b)
{
    struct json *o = broker_counters(b);

    metrics_put_program(o);
    json_object_put(o, "registry_connected", json_boolean_create(broker_is_connected(b)));
    return o;
}

static char *
metrics_text(const void *b)
{
    struct json *o = metrics_of(b);
    char *text = metrics_broker_text(o);

    json_destroy(o);
    return text;
}

static void
metrics_cb(struct unixctl_conn *conn, const void *b, bool as_json)
{
    if (as_json) {
        struct json *o = metrics_of(b);

        listing_reply(conn, o, true);
        json_destroy(o);
    } else {
        char *text = metrics_text(b);

        unixctl_command_reply(conn, text);
        free(text);
    }
}

static struct broker *
open_broker(const struct daemon *d)
{
    struct broker *b = broker_create(d->db, &d->controllers, &d->operators);

    for (size_t i = 0; i < d->listeners.n; i++) {
        const char *name = d->listener_names.names[i], *listener = d->listeners.names[i];
        int error = broker_listen(b, listener, name[0] ? name : NULL);

        if (error) {
            daemon_cannot_listen(listener, error);
        }
    }
    return b;
}

int
main(int argc, char *argv[])
{
    struct daemon daemon;

    daemon_init(&daemon, argc, argv, DAEMON_BROKER, "the registry for clients with limited rights");
    open_files_allow(); /* a client has two. */
    daemon_start(&daemon);
    struct broker *broker = open_broker(&daemon);
    unixctl_command_register("rocecast/status", "", 0, 0, status_cb, broker);
    listing_register("rocecast/clients", clients_cb, broker);
    listing_register("rocecast/counters", counters_cb, broker);
    listing_register(METRICS_COMMAND, metrics_cb, broker);
    struct metrics_server *server =
        metrics_server_create(daemon.metrics_listener, metrics_text, broker);
    daemon_ready(&daemon);

    while (!daemon.exiting) {
        daemon_run(&daemon);
        broker_run(broker);
        metrics_server_run(server);
        if (broker_serves(broker)) {
            daemon_serving(&daemon);
        }
        broker_wait(broker);
        metrics_server_wait(server);
        daemon_wait(&daemon);
        poll_block();
    }

    metrics_server_destroy(server);
    broker_destroy(broker);
    daemon_done(&daemon);
    return 0;
}
