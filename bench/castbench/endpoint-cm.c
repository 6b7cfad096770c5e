/* SPDX-License-Identifier: Apache-2.0
 *
 * Connections to a group by librdmacm (see endpoint-cm.h).
 *
 * The queue pair is the endpoint's own: librdmacm is told its number, says with which attributes it
 * is to be set up, and leaves the rest to this file.  So everything but connecting is the same as
 * without RDMA-CM.
 */
#include "bench/castbench/endpoint-cm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <string.h>

#include "bench/castbench/clock.h"
#include "bench/castbench/refuse.h"
#include "lib/cm.h"
#include "lib/wire.h"

/* What a receiver answers: the layout that a group expects unless it is told of another. */
struct region_wire {
    be64_t va;
    be32_t rkey;
    be64_t len;
};
static_assert(sizeof(struct region_wire) == 20, "a receiver's answer");

#define FAIL(EP, ...) refuse((EP)->error, sizeof(EP)->error, __VA_ARGS__)

static struct sockaddr_in6
socket_address(const struct in6_addr *address, uint16_t port)
{
    return (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_addr = *address, .sin6_port = htons(port)};
}

/* Says what came instead of what was expected. */
static bool
unexpected(struct endpoint *ep, const char *what, const struct rdma_cm_event *e)
{
    const char *text = e->param.conn.private_data;
    size_t len = text ? strnlen(text, e->param.conn.private_data_len) : 0;

    if (e->event != RDMA_CM_EVENT_REJECTED) {
        return FAIL(ep, "%s: %s%s%s", what, rdma_event_str(e->event), e->status < 0 ? ": " : "",
                    e->status < 0 ? strerror(-e->status) : "");
    }
    return FAIL(ep, "%s: rejected for reason %d (%s)%s%.*s", what, e->status,
                cm_rej_text((uint16_t) e->status), len ? ": " : "", (int) len, text);
}

/* The next event, which is to be of this type.  NULL: it is not, or there is none before 'deadline'.
 * The caller acknowledges it. */
static struct rdma_cm_event *
next_event(struct endpoint *ep, struct rdma_event_channel *channel, enum rdma_cm_event_type type,
           const char *what, uint64_t deadline)
{
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct rdma_cm_event *event;
    uint64_t now;

    while ((now = now_ns()) < deadline) {
        if (poll(&fd, 1, (int) ((deadline - now) / NS_PER_MS) + 1) <= 0) {
            continue;
        }
        if (rdma_get_cm_event(channel, &event)) {
            FAIL(ep, "%s: %s", what, strerror(errno));
            return NULL;
        }
        if (event->event == type) {
            return event;
        }
        unexpected(ep, what, event);
        rdma_ack_cm_event(event);
        return NULL;
    }
    FAIL(ep, "%s: no answer in time", what);
    return NULL;
}

/* Waits for an event that says no more than its type. */
static bool
wait_event(struct endpoint *ep, struct rdma_event_channel *channel, enum rdma_cm_event_type type,
           const char *what, uint64_t deadline)
{
    struct rdma_cm_event *event = next_event(ep, channel, type, what, deadline);

    return event && !rdma_ack_cm_event(event);
}

/* RDMA-CM has found the device by the address, as endpoint_open() did. */
static bool
check_device(struct endpoint *ep, const struct rdma_cm_id *id)
{
    const char *own = ibv_get_device_name(ep->ctx->device);
    const char *found = id->verbs ? ibv_get_device_name(id->verbs->device) : "no device";

    return !strcmp(own, found) || FAIL(ep, "RDMA-CM has found %s, not %s", found, own);
}

/* Takes the queue pair to RTS with the attributes that RDMA-CM gives it. */
static bool
to_rts(struct endpoint *ep, struct rdma_cm_id *id, struct ibv_qp *qp, bool ecn, uint32_t *mtu)
{
    struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR}, rts = {.qp_state = IBV_QPS_RTS};
    int rtr_mask, rts_mask;

    if (rdma_init_qp_attr(id, &rtr, &rtr_mask)) {
        return FAIL(ep, "queue pair's attributes for RTR: %s", strerror(errno));
    }
    /* RDMA-CM has 0, which is 655 ms, and no say in ECN. */
    rtr.min_rnr_timer = ENDPOINT_MIN_RNR_TIMER;
    rtr.ah_attr.grh.traffic_class = endpoint_traffic_class(ecn);
    int error = ibv_modify_qp(qp, &rtr, rtr_mask);
    if (error) {
        return FAIL(ep, "queue pair to RTR: %s", strerror(error));
    }
    if (rdma_init_qp_attr(id, &rts, &rts_mask)) {
        return FAIL(ep, "queue pair's attributes for RTS: %s", strerror(errno));
    }
    error = ibv_modify_qp(qp, &rts, rts_mask);
    if (error) {
        return FAIL(ep, "queue pair to RTS: %s", strerror(error));
    }
    *mtu = 128u << rtr.path_mtu;
    return true;
}

/*
 * Sources.
 */

/* Finds the device and the way to the group. */
static bool
resolve(struct endpoint *ep, struct rdma_cm_id *id, const struct endpoint_cm_peer *peer,
        uint64_t deadline)
{
    struct sockaddr_in6 own = socket_address(&peer->own, 0);
    struct sockaddr_in6 address = socket_address(&peer->address, peer->port);
    int wait_ms = (int) ((deadline - now_ns()) / NS_PER_MS);

    if (rdma_resolve_addr(id, (struct sockaddr *) &own, (struct sockaddr *) &address, wait_ms)) {
        return FAIL(ep, "the group's address: %s", strerror(errno));
    }
    if (!wait_event(ep, id->channel, RDMA_CM_EVENT_ADDR_RESOLVED, "the group's address",
                    deadline)) {
        return false;
    }
    if (rdma_resolve_route(id, wait_ms)) {
        return FAIL(ep, "the way to the group: %s", strerror(errno));
    }
    return wait_event(ep, id->channel, RDMA_CM_EVENT_ROUTE_RESOLVED, "the way to the group",
                      deadline)
           && check_device(ep, id);
}

/* Asks the group, and takes its answer. */
static bool
ask(struct endpoint *ep, struct rdma_cm_id *id, const struct ibv_qp *qp, uint64_t deadline,
    struct group_answer *answer)
{
    struct rdma_conn_param param = {.qp_num = qp->qp_num, .retry_count = 7, .rnr_retry_count = 7};

    if (rdma_connect(id, &param)) {
        return FAIL(ep, "rdma_connect: %s", strerror(errno));
    }
    struct rdma_cm_event *event =
        next_event(ep, id->channel, RDMA_CM_EVENT_CONNECT_RESPONSE, "rdma_connect", deadline);
    if (!event) {
        return false;
    }
    bool ok = group_answer_get(answer, event->param.conn.private_data,
                               event->param.conn.private_data_len);
    rdma_ack_cm_event(event);
    return ok || FAIL(ep, "rdma_connect: what has answered is no group");
}

bool
endpoint_cm_connect(struct endpoint *ep, struct ibv_qp *qp, const struct endpoint_cm_peer *peer,
                    bool ecn, unsigned timeout, struct endpoint_cm_group *group)
{
    uint64_t deadline = now_ns() + timeout * (uint64_t) NS_PER_SEC;
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;

    if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP)) {
        return FAIL(ep, "RDMA-CM: %s (is the module rdma_ucm loaded?)", strerror(errno));
    }
    if (!resolve(ep, id, peer, deadline)) {
        return false;
    }
    uint64_t begin = now_ns();
    if (!ask(ep, id, qp, deadline, &group->answer) || !to_rts(ep, id, qp, ecn, &group->mtu)) {
        return false;
    }
    if (rdma_establish(id)) {
        return FAIL(ep, "rdma_establish: %s", strerror(errno));
    }
    group->connect_ns = now_ns() - begin;
    return true;
}

/*
 * Receivers.
 */

bool
endpoint_cm_listen(struct endpoint *ep, const struct in6_addr *own, uint16_t port,
                   struct endpoint_cm_listener *listener)
{
    struct sockaddr_in6 address = socket_address(own, port);

    listener->since = now_ns();
    listener->channel = rdma_create_event_channel();
    if (!listener->channel || rdma_create_id(listener->channel, &listener->id, NULL, RDMA_PS_TCP)) {
        return FAIL(ep, "RDMA-CM: %s (is the module rdma_ucm loaded?)", strerror(errno));
    }
    if (rdma_bind_addr(listener->id, (struct sockaddr *) &address)
        || rdma_listen(listener->id, 1)) {
        return FAIL(ep, "cannot listen at port %u: %s", port, strerror(errno));
    }
    return check_device(ep, listener->id);
}

static bool
answer(struct endpoint *ep, struct rdma_cm_id *id, struct ibv_qp *qp, bool ecn)
{
    struct region_wire region = {
        .va = be64_put((uintptr_t) ep->mr->addr),
        .rkey = be32_put(ep->mr->rkey),
        .len = be64_put(ep->mr->length),
    };
    struct rdma_conn_param param = {.qp_num = qp->qp_num,
                                    .private_data = &region,
                                    .private_data_len = sizeof region,
                                    .rnr_retry_count = 7};
    uint32_t mtu;

    return to_rts(ep, id, qp, ecn, &mtu)
           && (!rdma_accept(id, &param) || FAIL(ep, "rdma_accept: %s", strerror(errno)));
}

bool
endpoint_cm_accept(struct endpoint *ep, struct endpoint_cm_listener *listener, struct ibv_qp *qp,
                   bool ecn, unsigned timeout, uint64_t *connect_ns)
{
    uint64_t deadline = now_ns() + timeout * (uint64_t) NS_PER_SEC;
    struct rdma_cm_event *event = next_event(ep, listener->channel, RDMA_CM_EVENT_CONNECT_REQUEST,
                                             "the group's request", deadline);

    if (!event) {
        return false;
    }
    struct rdma_cm_id *id = event->id;
    rdma_ack_cm_event(event);
    if (!answer(ep, id, qp, ecn)
        || !wait_event(ep, listener->channel, RDMA_CM_EVENT_ESTABLISHED, "rdma_accept", deadline)) {
        return false;
    }
    *connect_ns = now_ns() - listener->since;
    rdma_destroy_id(listener->id);
    return true;
}
