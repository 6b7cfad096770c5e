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
#include "librocecast/rocecast.h"

/* For everything but group_wait(). */
#define TIMEOUT_MS 30000

/* Puts the reason of a failed call into 'error'.  Returns 'status'. */
static int
explain(int status, char *error, size_t size)
{
    if (status) {
        snprintf(error, size, "%s", rocecast_error());
    }
    return status;
}

/* Opens a group; 'error' says why not.  rocecast_close() closes both. */
static int
open_group(const char *group, struct rocecast **r, struct rocecast_group **g, char *error,
           size_t size)
{
    int status = rocecast_open(NULL, TIMEOUT_MS, r);

    if (!status) {
        status = rocecast_group_open(*r, group, TIMEOUT_MS, g);
    }
    return explain(status, error, size);
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
        explain(status, error, size);
    }
    rocecast_close(r);
    return status;
}

static void
group_info_set(struct group_info *info, const struct rocecast_epoch *e)
{
    *info = (struct group_info){
        .epoch = e->epoch,
        .proxy = e->proxy,
        .designated_qpn = e->designated_qpn,
        .start_psn = e->start_psn,
        .designated_rkey = e->designated_rkey,
        .mtu = e->mtu,
        .qp_timeout = (uint8_t) e->qp_timeout,
        .region_len = e->region_len,
    };
}

int
registry_group_show(const char *group, struct group_info *info, char *error, size_t size)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g, error, size);

    if (!status) {
        status = explain(rocecast_get_epoch(g, &e), error, size);
    }
    rocecast_close(r);
    group_info_set(info, &e);
    return status;
}

int
registry_source_set(const char *group, const char *host, uint32_t qpn, struct group_info *info,
                    char *error, size_t size)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g, error, size);

    if (!status) {
        status = explain(rocecast_source_set(g, host, qpn, TIMEOUT_MS, &e), error, size);
    }
    rocecast_close(r);
    group_info_set(info, &e);
    return status;
}

int
registry_member_add(const char *group, const struct member_info *member, uint32_t epoch,
                    char *error, size_t size)
{
    const struct rocecast_member m = {
        .size = sizeof m,
        .host = member->host,
        .qpn = member->qpn,
        .epoch = epoch,
        .address = member->va,
        .length = member->len,
        .rkey = member->rkey,
    };
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g, error, size);

    if (!status) {
        status = explain(rocecast_member_add(g, &m, TIMEOUT_MS), error, size);
    }
    rocecast_close(r);
    return status;
}

int
registry_group_wait(const char *group, unsigned members, uint32_t epoch, unsigned timeout,
                    struct group_info *info, char *error, size_t size)
{
    struct rocecast_epoch e = {.size = sizeof e};
    struct rocecast_group *g;
    struct rocecast *r;
    int status = open_group(group, &r, &g, error, size);

    if (!status) {
        status =
            explain(rocecast_wait_ready(g, epoch, members, (int) timeout * 1000, &e), error, size);
    }
    rocecast_close(r);
    group_info_set(info, &e);
    return status;
}

struct registry_watch {
    struct rocecast *r;
    struct rocecast_group *g;
};

int
registry_watch_open(const char *group, struct registry_watch **wp, char *error, size_t size)
{
    struct registry_watch *w = calloc(1, sizeof *w);
    int status = w ? open_group(group, &w->r, &w->g, error, size) : ENOMEM;

    if (!w) {
        snprintf(error, size, "out of memory");
    } else if (status) {
        registry_watch_close(w);
    }
    *wp = status ? NULL : w;
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
