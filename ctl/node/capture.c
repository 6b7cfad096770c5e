/* SPDX-License-Identifier: Apache-2.0
 *
 * The control socket's commands about captures: frames of a port, received and
 * sent, into a file.  A capture ends with its port at the latest.
 */
#include <config.h>

#include "ctl/node/daemon.h"

#include <unistd.h>

#include "ctl/process/listing.h"
#include "openvswitch/json.h"
#include "unixctl.h"
#include "util.h"

void
node_capture_stop(struct node_port *np)
{
    pcap_writer_close(np->capture);
    free(np->capture_file);
    np->capture = NULL;
    np->capture_file = NULL;
}

static struct json *
capture_to_json(const struct node_port *np)
{
    struct json *o = json_object_create();
    int error = pcap_writer_error(np->capture);

    json_object_put_string(o, "port", np->config.name);
    json_object_put_string(o, "file", np->capture_file);
    json_object_put(o, "packets",
                    json_integer_create((long long int) pcap_writer_n_frames(np->capture)));
    json_object_put_string(o, "error", error ? ovs_strerror(error) : "");
    return o;
}

struct json *
node_captures_to_json(const struct node_daemon *d)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        if (np->capture) {
            json_array_add(array, capture_to_json(np));
        }
    }
    return array;
}

/* Two captures to one file would overwrite each other. */
static const struct node_port *
find_by_file(const struct node_daemon *d, const char *file)
{
    for (size_t i = 0; i < d->n_ports; i++) {
        const struct node_port *np = d->ports[d->numbers[i]];
        if (np->capture && !strcmp(np->capture_file, file)) {
            return np;
        }
    }
    return NULL;
}

/* [--force] PORT FILE */
static void
start(struct unixctl_conn *conn, int argc, const char *argv[], void *d_)
{
    const char *name = argv[argc - 2];
    const char *file = argv[argc - 1];
    struct node_daemon *d = d_;
    struct node_port *np = node_ports_find(d, name);
    char *error = NULL;

    if (argc > 3 && strcmp(argv[1], "--force")) {
        error = xasprintf("unknown option '%s'", argv[1]);
    } else if (!np) {
        error = xasprintf("no port '%s'", name);
    } else if (np->capture) {
        error = xasprintf("port %s is being captured already, to %s", name, np->capture_file);
    } else if (file[0] != '/') {
        error = xasprintf("%s: must be an absolute path", file);
    } else if (find_by_file(d, file)) {
        error = xasprintf("%s: port %s is being captured to it", file,
                          find_by_file(d, file)->config.name);
    } else if (argc <= 3 && !access(file, F_OK)) {
        error = xasprintf("%s: exists already (--force writes over it)", file);
    } else {
        np->capture = pcap_writer_open(file, argc > 3, &error);
        np->capture_file = np->capture ? xstrdup(file) : NULL;
    }
    if (error) {
        unixctl_command_reply_error(conn, error);
    } else {
        unixctl_command_reply(conn, NULL);
    }
    free(error);
}

/* [-j] PORT|--all; answers with what the captures have got. */
static void
stop(struct unixctl_conn *conn, int argc, const char *argv[], void *d_)
{
    const char *name = argv[argc - 1];
    bool all = !strcmp(name, "--all");
    struct node_daemon *d = d_;
    struct json *stopped = json_array_create_empty();
    char *error = NULL;

    for (size_t i = 0; (argc < 3 || !strcmp(argv[1], "-j")) && i < d->n_ports; i++) {
        struct node_port *np = d->ports[d->numbers[i]];
        if (np->capture && (all || !strcmp(np->config.name, name))) {
            json_array_add(stopped, capture_to_json(np));
            node_capture_stop(np);
        }
    }
    if (argc > 2 && strcmp(argv[1], "-j")) {
        error = xasprintf("unknown option '%s'", argv[1]);
    } else if (!all && !node_ports_find(d, name)) {
        error = xasprintf("no port '%s'", name);
    } else if (!all && !stopped->array.n) {
        error = xasprintf("port %s is not being captured", name);
    }
    if (error) {
        unixctl_command_reply_error(conn, error);
    } else {
        listing_reply(conn, stopped, argc > 2);
    }
    json_destroy(stopped);
    free(error);
}

void
node_capture_init(struct node_daemon *d)
{
    unixctl_command_register("rocecast/capture-start", "[--force] PORT FILE", 2, 3, start, d);
    unixctl_command_register("rocecast/capture-stop", "[-j] PORT|--all", 1, 2, stop, d);
}
