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

/* Of each port; protects what is written, since all workers have the same writers. */
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static char *files[NODE_MAX_PORTS]; /* by number of the port: where its capture goes. */

static void
set_writer(const struct node_daemon *d, uint16_t number, struct pcap_writer *writer)
{
    for (unsigned i = 0; i < d->n_workers; i++) {
        if (d->workers[i]->ports[number]) {
            d->workers[i]->ports[number]->capture = writer;
        }
    }
}

void
node_capture_stop(const struct node_daemon *d, uint16_t number)
{
    pcap_writer_close(d->workers[0]->ports[number]->capture);
    set_writer(d, number, NULL);
    free(files[number]);
    files[number] = NULL;
}

void
node_capture_put(struct node_port *np, const struct packet *p)
{
    if (np->capture) {
        pthread_mutex_lock(&writing);
        pcap_writer_put(np->capture, p);
        pthread_mutex_unlock(&writing);
    }
}

static struct json *
capture_to_json(const struct node_port *np)
{
    struct json *o = json_object_create();
    int error = pcap_writer_error(np->capture);

    json_object_put_string(o, "port", np->config.name);
    json_object_put_string(o, "file", files[np->config.number]);
    json_object_put(o, "packets",
                    json_integer_create((long long int) pcap_writer_n_frames(np->capture)));
    json_object_put_string(o, "error", error ? ovs_strerror(error) : "");
    return o;
}

struct json *
node_captures_to_json(const struct node_daemon *d)
{
    const struct node_worker *w = d->workers[0];
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
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
    const struct node_worker *w = d->workers[0];

    for (size_t i = 0; i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        if (np->capture && !strcmp(files[np->config.number], file)) {
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
    char *error = NULL;

    node_workers_stop(d);
    struct node_port *np = node_ports_find(d, name);
    if (argc > 3 && strcmp(argv[1], "--force")) {
        error = xasprintf("unknown option '%s'", argv[1]);
    } else if (!np) {
        error = xasprintf("no port '%s'", name);
    } else if (np->capture) {
        error =
            xasprintf("port %s is being captured already, to %s", name, files[np->config.number]);
    } else if (file[0] != '/') {
        error = xasprintf("%s: must be an absolute path", file);
    } else if (find_by_file(d, file)) {
        error = xasprintf("%s: port %s is being captured to it", file,
                          find_by_file(d, file)->config.name);
    } else if (argc <= 3 && !access(file, F_OK)) {
        error = xasprintf("%s: exists already (--force writes over it)", file);
    } else {
        struct pcap_writer *writer = pcap_writer_open(file, argc > 3, &error);
        set_writer(d, np->config.number, writer);
        files[np->config.number] = writer ? xstrdup(file) : NULL;
    }
    node_workers_go(d);
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
    const struct node_worker *w = d->workers[0];
    struct json *stopped = json_array_create_empty();
    char *error = NULL;

    node_workers_stop(d);
    for (size_t i = 0; (argc < 3 || !strcmp(argv[1], "-j")) && i < w->n_ports; i++) {
        const struct node_port *np = w->ports[w->numbers[i]];
        if (np->capture && (all || !strcmp(np->config.name, name))) {
            json_array_add(stopped, capture_to_json(np));
            node_capture_stop(d, np->config.number);
        }
    }
    if (argc > 2 && strcmp(argv[1], "-j")) {
        error = xasprintf("unknown option '%s'", argv[1]);
    } else if (!all && !node_ports_find(d, name)) {
        error = xasprintf("no port '%s'", name);
    } else if (!all && !stopped->array.n) {
        error = xasprintf("port %s is not being captured", name);
    }
    node_workers_go(d);
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
