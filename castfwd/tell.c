/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the forwarder do what the configuration says.
 *
 * The forwarder is told what has changed since it was told last.  It is told everything if it,
 * or one of its devices, is no longer the one that was told, if it is not known how far it got,
 * or if another castfwd may have told it.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "castfwd/castfwd.h"
#include "util.h"

/* Lists the ports' devices at the moment: "NAME INDEX" each, and " down" where that matters. */
static void
list_devices(const struct forwarder *f, struct svec *devices)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        const char *name = f->config.ports[i].name;
        bool is_down = f->backend->needs_up && !device_is_up(f, name);

        svec_add_nocopy(devices,
                        xasprintf("%s %d%s", name, device_index(f, name), is_down ? " down" : ""));
    }
}

/* Is this device another one, or in another state, than the forwarder was told of by that name? */
static bool
device_has_changed(const struct forwarder *f, const char *device)
{
    size_t len = strcspn(device, " ");

    for (size_t i = 0; i < f->devices.n; i++) {
        if (!strncmp(f->devices.names[i], device, len + 1)) {
            return strcmp(f->devices.names[i], device) != 0;
        }
    }
    return false;
}

static char *
check_devices(const struct forwarder *f)
{
    for (size_t i = 0; i < f->config.n_ports; i++) {
        if (!device_index(f, f->config.ports[i].name)) {
            return xasprintf("port %s: there is no such network device", f->config.ports[i].name);
        }
    }
    return NULL;
}

/* Fails at once if the forwarder does not run: tools would wait for it. */
static char *
check_runs(const struct forwarder *f)
{
    char *now = f->backend->identity(f);
    bool runs = now != NULL;

    free(now);
    return runs ? NULL : xstrdup("the forwarder has gone");
}

static void
forget_told(struct forwarder *f)
{
    svec_clear(&f->devices);
    svec_clear(&f->ports);
    svec_clear(&f->rules);
    free(f->identity);
    f->identity = NULL;
}

bool
forwarder_is_told(const struct forwarder *f)
{
    struct svec devices = SVEC_EMPTY_INITIALIZER;
    char *now = f->backend->identity(f);
    bool same = now && f->identity && !strcmp(f->identity, now);

    list_devices(f, &devices);
    for (size_t i = 0; i < devices.n; i++) {
        same &= !device_has_changed(f, devices.names[i]);
    }
    svec_destroy(&devices);
    free(now);
    return same;
}

/* A forwarder that has ended meanwhile has forgotten what it was told, and the difference to that
 * may be empty.  So the forwarder must be the same one before and after. */
static char *
change(struct forwarder *f, const struct svec *rules)
{
    char *error = check_devices(f);

    svec_clear(&f->devices);
    list_devices(f, &f->devices);
    error = error ? error : f->backend->prepare(f);
    if (!error && !f->identity) {
        f->identity = f->backend->identity(f);
    }
    if (!error && !svec_equal(&f->rules, rules)) {
        error = f->backend->change(f, rules);
    }
    return error                   ? error
           : !forwarder_is_told(f) ? xstrdup("the forwarder, or one of its devices, has gone")
                                   : NULL;
}

static char *
tell(struct forwarder *f, struct svec *rules)
{
    char *error = f->backend->rules(f, rules);

    if (error) {
        return error;
    }
    if (!forwarder_is_told(f)) {
        bool ran = f->identity != NULL;

        forget_told(f);
        error = ran ? check_runs(f) : NULL;
    }
    error = error ? error : change(f, rules);
    svec_swap(&f->rules, rules);
    if (error) {
        forget_told(f);
    }
    return error;
}

char *
forwarder_tell(struct forwarder *f)
{
    struct svec rules = SVEC_EMPTY_INITIALIZER;
    char *error = tell(f, &rules);

    svec_destroy(&rules);
    return error;
}

static const struct backend *
backend_of(enum node_role role)
{
    switch (role) {
    case NODE_OVS: return &ovs_backend;
    case NODE_ROUTER: return &kernel_backend;
    case NODE_SWITCH:
    case NODE_AGENT: break; /* the agent takes no such row. */
    }
    OVS_NOT_REACHED();
}

/* Another name or id makes it another node. */
void
forwarder_configure(struct forwarder *f, struct node_config *config)
{
    const struct backend *backend = backend_of(config->role);

    if (f->backend != backend || f->config.id != config->id
        || strcmp(f->config.name, config->name)) {
        forget_told(f);
    }
    node_config_uninit(&f->config);
    f->config = *config;
    *config = (struct node_config){.generation = 0};
    f->backend = backend;
}

void
forwarder_init(struct forwarder *f, const struct patience *patience)
{
    *f = (struct forwarder){
        .patience = *patience,
        .socket = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0),
    };
    if (f->socket < 0) {
        ovs_fatal(errno, "looking at network devices");
    }
    svec_init(&f->devices);
    svec_init(&f->ports);
    svec_init(&f->rules);
}

void
forwarder_uninit(struct forwarder *f)
{
    forget_told(f);
    svec_destroy(&f->devices);
    svec_destroy(&f->ports);
    svec_destroy(&f->rules);
    node_config_uninit(&f->config);
    close(f->socket);
}
