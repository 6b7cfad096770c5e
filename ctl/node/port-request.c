/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to the process that opens ports.  Who sends them may have been taken over.
 */
#include <config.h>

#include "ctl/node/port-request.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "lib/port.h"
#include "lib/steer.h"

/* Is it what a kernel takes as the name of a network device, with nothing but zeros behind it? */
static bool
netdev_is_valid(const char netdev[IFNAMSIZ])
{
    size_t len = strnlen(netdev, IFNAMSIZ);

    if (!len || len == IFNAMSIZ || !strcmp(netdev, ".") || !strcmp(netdev, "..")) {
        return false;
    }
    for (size_t i = 0; i < IFNAMSIZ; i++) {
        unsigned char c = (unsigned char) netdev[i];

        if (i < len ? c == '/' || c == ':' || isspace(c) : c != '\0') {
            return false;
        }
    }
    return true;
}

static bool
is_zero(const void *bytes, size_t n)
{
    static const uint8_t zeros[IFNAMSIZ];

    return !memcmp(bytes, zeros, n);
}

static const char *
complaint_to_open(const struct port_request *r)
{
    return r->kind >= N_PORT_KINDS                        ? "no such kind of port"
           : r->offload > 1                               ? "offload is 0 or 1"
           : r->n_sharing < 1 || r->n_sharing > STEER_MAX ? "no such number of threads"
           : !netdev_is_valid(r->netdev)                  ? "no name of a network device"
                                                          : NULL;
}

const char *
port_request_complaint(const struct port_request *r, size_t len, int has_netns)
{
    if (len != sizeof *r) {
        return "a request of another length";
    }
    if (r->in_netns > (has_netns ? 1 : 0)) {
        return "no such namespace";
    }
    if (!is_zero(r->zero, sizeof r->zero)) {
        return "bytes that have no meaning";
    }
    switch (r->what) {
    case PORT_REQUEST_OPEN: return complaint_to_open(r);
    case PORT_REQUEST_WATCH:
        return r->kind || r->offload || r->n_sharing || !is_zero(r->netdev, sizeof r->netdev)
                   ? "bytes that have no meaning"
                   : NULL;
    default: return "no such request";
    }
}
