/* SPDX-License-Identifier: Apache-2.0
 *
 * One side of a reliable connection (see endpoint.h).
 *
 * The device and the GID index follow from the host's address: users name
 * hosts, never devices.  Unless it is asked to poll, an endpoint waits for
 * completions with events: all endpoints of a lab share a few processors, and a
 * spinning source takes them from the forwarders it measures.
 */
#include "bench/castbench/endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bench/castbench/clock.h"
#include "bench/rc-qp.h"

static int __attribute__((format(printf, 3, 4)))
fail(struct endpoint *ep, int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int n = vsnprintf(ep->error, sizeof ep->error, format, args);
    va_end(args);
    if (n >= 0 && (size_t) n < sizeof ep->error) {
        snprintf(ep->error + n, sizeof ep->error - (size_t) n, ": %s", strerror(error));
    }
    return error;
}

/* Returns the index of 'gid' in the table of port 1, or -1.  NICs have it for RoCE v1, too. */
static int
gid_find(struct ibv_context *ctx, const union ibv_gid *gid, int only)
{
    struct ibv_port_attr port;
    struct ibv_gid_entry entry;

    if (ibv_query_port(ctx, 1, &port)) {
        return -1;
    }
    for (int i = only < 0 ? 0 : only; i < port.gid_tbl_len && (only < 0 || i == only); i++) {
        if (!ibv_query_gid_ex(ctx, 1, (uint32_t) i, &entry, 0)
            && entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, gid, sizeof *gid)) {
            return i;
        }
    }
    return -1;
}

static int
not_found(struct endpoint *ep, const struct in6_addr *address, const struct endpoint_where *where,
          int n)
{
    char text[INET6_ADDRSTRLEN], index[32] = "";

    inet_ntop(AF_INET6, address, text, sizeof text);
    if (where->gid_index >= 0) {
        snprintf(index, sizeof index, " at index %d", where->gid_index);
    }
    if (where->device) {
        return fail(ep, ENODEV, "RDMA device %s does not have %s in its GID table%s", where->device,
                    text, index);
    }
    return fail(ep, ENODEV, "none of %d RDMA devices has %s in its GID table%s", n, text, index);
}

static int
device_open(struct endpoint *ep, const struct in6_addr *address, const struct endpoint_where *where)
{
    union ibv_gid gid;
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    memcpy(&gid, address, sizeof gid);
    for (int i = 0; list && list[i] && !ep->ctx; i++) {
        if (where->device && strcmp(where->device, ibv_get_device_name(list[i])) != 0) {
            continue;
        }
        ep->ctx = ibv_open_device(list[i]);
        if (ep->ctx) {
            ep->gid_index = gid_find(ep->ctx, &gid, where->gid_index);
            if (ep->gid_index < 0) {
                ibv_close_device(ep->ctx);
                ep->ctx = NULL;
            }
        }
    }
    if (list) {
        ibv_free_device_list(list);
    }
    return ep->ctx ? 0 : not_found(ep, address, where, n);
}

int
endpoint_open(struct endpoint *ep, const struct in6_addr *address,
              const struct endpoint_where *where, void *buf, size_t len, bool remote,
              unsigned n_cqe)
{
    int error;

    *ep = (struct endpoint){.remote = remote};
    error = device_open(ep, address, where);
    if (error) {
        return error;
    }
    ep->pd = ibv_alloc_pd(ep->ctx);
    if (!ep->pd) {
        error = fail(ep, errno, "cannot allocate a protection domain");
        goto error;
    }
    ep->mr = ibv_reg_mr(ep->pd, buf, len,
                        IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0));
    if (!ep->mr) {
        error = fail(ep, errno, "cannot register %zu bytes (see ulimit -l)", len);
        goto error;
    }
    ep->channel = ibv_create_comp_channel(ep->ctx);
    ep->cq = ep->channel ? ibv_create_cq(ep->ctx, (int) n_cqe, NULL, ep->channel, 0) : NULL;
    if (!ep->cq) {
        error = fail(ep, errno, "cannot create a completion queue of %u", n_cqe);
        goto error;
    }
    return 0;

error:
    endpoint_close(ep);
    return error;
}

void
endpoint_close(struct endpoint *ep)
{
    if (ep->cq) {
        ibv_destroy_cq(ep->cq);
    }
    if (ep->channel) {
        ibv_destroy_comp_channel(ep->channel);
    }
    if (ep->mr) {
        ibv_dereg_mr(ep->mr);
    }
    if (ep->pd) {
        ibv_dealloc_pd(ep->pd);
    }
    if (ep->ctx) {
        ibv_close_device(ep->ctx);
    }
    ep->cq = NULL;
    ep->channel = NULL;
    ep->mr = NULL;
    ep->pd = NULL;
    ep->ctx = NULL;
}

struct ibv_qp *
endpoint_qp_create(struct endpoint *ep, unsigned n_send, unsigned n_recv)
{
    struct ibv_qp_init_attr init = {
        .send_cq = ep->cq,
        .recv_cq = ep->cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = n_send,
                .max_recv_wr = n_recv,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = sizeof(uint64_t)},
    };

    struct ibv_qp *qp = ibv_create_qp(ep->pd, &init);
    if (!qp) {
        fail(ep, errno, "cannot create a queue pair for %u sends and %u receives", n_send, n_recv);
        return NULL;
    }
    int error = rc_qp_to_init(qp, ep->remote);
    if (error) {
        fail(ep, error, "queue pair to INIT");
        ibv_destroy_qp(qp);
        return NULL;
    }
    return qp;
}

int
endpoint_qp_connect(struct endpoint *ep, struct ibv_qp *qp, const struct endpoint_peer *peer)
{
    const struct rc_qp rc = {
        .gid_index = (uint8_t) ep->gid_index,
        .peer = peer->address,
        .dest_qpn = peer->qpn,
        .rq_psn = peer->rq_psn,
        .sq_psn = peer->sq_psn,
        .mtu = peer->mtu,
        .timeout = peer->timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = ENDPOINT_MIN_RNR_TIMER,
        .traffic_class = endpoint_traffic_class(peer->ecn),
    };
    char text[INET6_ADDRSTRLEN];
    int error = rc_qp_to_rtr(qp, &rc);

    if (error) {
        /* ETIMEDOUT here means that no neighbour answers on the way to the peer. */
        inet_ntop(AF_INET6, &peer->address, text, sizeof text);
        return fail(ep, error, "queue pair to RTR towards %s", text);
    }
    error = rc_qp_to_rts(qp, &rc);
    return error ? fail(ep, error, "queue pair to RTS") : 0;
}

/* Takes one completion if there is one.  Returns 0, EAGAIN or an error.  It asks
 * for an event before it looks a second time, so that none is lost. */
static int
try_completion(struct endpoint *ep, struct ibv_wc *wc)
{
    int n = ibv_poll_cq(ep->cq, 1, wc);

    if (!n) {
        int error = ibv_req_notify_cq(ep->cq, 0);
        if (error) {
            return fail(ep, error, "cannot arm the completion queue");
        }
        n = ibv_poll_cq(ep->cq, 1, wc);
    }
    if (n < 0) {
        return fail(ep, EIO, "cannot read the completion queue");
    }
    return n ? 0 : EAGAIN;
}

/* The same by looking, which costs a processor and spares the waking up. */
static int
spin_completion(struct endpoint *ep, struct ibv_wc *wc, uint64_t deadline, int stop_fd)
{
    struct pollfd stop = {.fd = stop_fd, .events = POLLIN};
    int n;

    while (!(n = ibv_poll_cq(ep->cq, 1, wc))) {
        if (now_ns() >= deadline) {
            return EAGAIN;
        }
        if (stop_fd >= 0 && poll(&stop, 1, 0) > 0) {
            n = ibv_poll_cq(ep->cq, 1, wc);
            return n > 0 ? 0 : ECANCELED;
        }
        sched_yield(); /* forwarders may share this processor. */
    }
    return n > 0 ? 0 : fail(ep, EIO, "cannot read the completion queue");
}

int
endpoint_completion(struct endpoint *ep, struct ibv_wc *wc, uint64_t deadline, int stop_fd)
{
    if (ep->poll) {
        return spin_completion(ep, wc, deadline, stop_fd);
    }

    bool stop = false;
    int status;

    /* An event proves nothing, since it may be left over from completions already taken.  Only the
     * clock ends the wait, or the news that no more will come. */
    while ((status = try_completion(ep, wc)) == EAGAIN && !stop) {
        struct pollfd pfds[] = {{.fd = ep->channel->fd, .events = POLLIN},
                                {.fd = stop_fd, .events = POLLIN}};
        uint64_t now = now_ns(), left = deadline > now ? deadline - now : 0;
        struct timespec ts = {.tv_sec = (time_t) (left / NS_PER_SEC),
                              .tv_nsec = (long) (left % NS_PER_SEC)};
        struct ibv_cq *cq;
        void *context;

        if (!left) {
            return EAGAIN;
        }
        if (ppoll(pfds, 2, &ts, NULL) <= 0) {
            continue;
        }
        if (pfds[0].revents && !ibv_get_cq_event(ep->channel, &cq, &context)) {
            ibv_ack_cq_events(cq, 1);
        }
        stop = pfds[1].revents;
    }
    return status == EAGAIN ? ECANCELED : status;
}
