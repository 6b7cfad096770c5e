/* SPDX-License-Identifier: Apache-2.0
 *
 * The registry through librocecast (see registry.h).
 */
#include "bench/castbench/registry.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/castbench/clock.h"
#include "bench/castbench/scheme.h"

/* For everything but group_wait(). */
#define TIMEOUT_MS 30000

/* Opens a group; rocecast_close() closes both. */
static int
open_group(const char *group, struct rocecast **r, struct rocecast_group **g)
{
    int status = rocecast_open(NULL, TIMEOUT_MS, r);

    return status ? status : rocecast_group_open(*r, group, TIMEOUT_MS, g);
}

/* Ends the connection after a call's 'status'; 'error' says why it failed. */
static int
finish(struct rocecast *r, int status, char *error, size_t size)
{
    if (status) {
        snprintf(error, size, "%s", rocecast_error());
    }
    rocecast_close(r);
    return status;
}

int
registry_host_addresses(const char *const *hosts, unsigned n, struct in6_addr *addresses,
                        char *error, size_t size)
{
    struct rocecast *r = NULL;
    int status = 0;

    for (unsigned i = 0; !status && i < n; i++) {
        if (inet_pton(AF_INET6, hosts[i], &addresses[i]) == 1) {
            continue;
        }
        status = r ? 0 : rocecast_open(NULL, TIMEOUT_MS, &r);
        if (!status) {
            status = rocecast_host_address(r, hosts[i], TIMEOUT_MS, &addresses[i]);
        }
    }
    return finish(r, status, error, size);
}

int
registry_group_show(const char *group, struct rocecast_epoch *e, char *error, size_t size)
{
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    *e = (struct rocecast_epoch){.size = sizeof *e};
    status = status ? status : rocecast_get_epoch(g, e);
    return finish(r, status, error, size);
}

int
registry_source_set(const char *group, const char *host, uint32_t qpn, struct rocecast_epoch *e,
                    char *error, size_t size)
{
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    *e = (struct rocecast_epoch){.size = sizeof *e};
    status = status ? status : rocecast_source_set(g, host, qpn, TIMEOUT_MS, e);
    return finish(r, status, error, size);
}

int
registry_member_add(const char *group, const struct rocecast_member *member, char *error,
                    size_t size)
{
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    status = status ? status : rocecast_member_add(g, member, TIMEOUT_MS);
    return finish(r, status, error, size);
}

int
registry_member_listen(const char *group, const char *host, uint16_t port, char *error, size_t size)
{
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    status = status ? status : rocecast_member_listen(g, host, port, NULL, 0, TIMEOUT_MS);
    return finish(r, status, error, size);
}

int
registry_members_leave(const char *group, const char *const *hosts, unsigned n, char *error,
                       size_t size)
{
    struct rocecast_request *requests[MAX_RECEIVERS] = {NULL};
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    for (unsigned i = 0; !status && i < n; i++) {
        status = rocecast_member_leave_start(g, hosts[i], TIMEOUT_MS, &requests[i]);
    }
    for (unsigned i = 0; !status && i < n; i++) {
        status = rocecast_request_wait(requests[i], NULL);
        status = status == ENOENT ? 0 : status;
    }
    return finish(r, status, error, size);
}

int
registry_group_wait(const char *group, unsigned members, uint32_t epoch, unsigned timeout,
                    struct rocecast_epoch *e, char *error, size_t size)
{
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g);

    *e = (struct rocecast_epoch){.size = sizeof *e};
    status = status ? status : rocecast_wait_ready(g, epoch, members, (int) timeout * 1000, e);
    return finish(r, status, error, size);
}

struct registry_watch {
    struct rocecast *r;
    struct rocecast_group *g;
};

int
registry_watch_open(const char *group, struct registry_watch **wp, char *error, size_t size)
{
    struct registry_watch *w = calloc(1, sizeof *w);

    *wp = NULL;
    if (!w) {
        snprintf(error, size, "out of memory");
        return ENOMEM;
    }
    int status = open_group(group, &w->r, &w->g);
    if (status) {
        finish(w->r, status, error, size);
        free(w);
    } else {
        *wp = w;
    }
    return status;
}

void
registry_watch_close(struct registry_watch *w)
{
    if (w) {
        rocecast_close(w->r);
        free(w);
    }
}

/* Takes the events that are there up to the next one of a lost member. */
static bool
next_lost(struct registry_watch *w, struct lost_info *lost)
{
    struct rocecast_event event = {.size = sizeof event};

    while (!rocecast_next_event(w->g, &event) && event.type != ROCECAST_EVENT_NONE) {
        if (event.type == ROCECAST_EVENT_MEMBER_LOST) {
            snprintf(lost->host, sizeof lost->host, "%s", event.host);
            snprintf(lost->why, sizeof lost->why, "%s", event.text);
            return true;
        }
    }
    return false;
}

bool
registry_watch_lost(struct registry_watch *w, int wait_ms, struct lost_info *lost)
{
    uint64_t end = now_ns() + (uint64_t) wait_ms * NS_PER_MS;

    while (!next_lost(w, lost)) {
        struct pollfd fd = {.fd = rocecast_fd(w->g), .events = POLLIN};
        uint64_t now = now_ns();

        if (now >= end || poll(&fd, 1, (int) ((end - now) / NS_PER_MS) + 1) < 0) {
            return false;
        }
    }
    return true;
}
