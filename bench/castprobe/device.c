/* SPDX-License-Identifier: Apache-2.0
 *
 * The device that is probed (see device.h).
 */
#include "bench/castprobe/device.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/rc-qp.h"

static bool __attribute__((format(printf, 2, 3))) refuse(struct device *d, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(d->error, sizeof d->error, format, args);
    va_end(args);
    return false;
}

static bool
is_routable(const struct ibv_gid_entry *entry)
{
    struct in6_addr address;

    memcpy(&address, &entry->gid, sizeof address);
    return entry->gid_type == IBV_GID_TYPE_ROCE_V2 && !IN6_IS_ADDR_LINKLOCAL(&address)
           && !IN6_IS_ADDR_V4MAPPED(&address) && !IN6_IS_ADDR_UNSPECIFIED(&address);
}

/* Fills in what is known of port and GID. */
static bool
find_gid(struct device *d, int wanted)
{
    struct ibv_port_attr port;
    struct ibv_gid_entry entry;
    const char *name = ibv_get_device_name(d->ctx->device);

    if (ibv_query_port(d->ctx, RC_QP_PORT, &port) || ibv_query_device(d->ctx, &d->attr)) {
        return refuse(d, "%s: port %d: %s", name, RC_QP_PORT, strerror(errno));
    }
    d->mtu = 128u << port.active_mtu;
    for (int i = wanted < 0 ? 0 : wanted; i < port.gid_tbl_len && (wanted < 0 || i == wanted);
         i++) {
        if (!ibv_query_gid_ex(d->ctx, RC_QP_PORT, (uint32_t) i, &entry, 0) && is_routable(&entry)) {
            d->gid = entry.gid;
            d->gid_index = (uint8_t) i;
            return true;
        }
    }
    return wanted < 0 ? refuse(d, "%s has no IPv6 address but a link-local one", name)
                      : refuse(d, "%s: GID %d is no IPv6 address for RoCEv2 that can be routed",
                               name, wanted);
}

static bool
open_by_name(struct device *d, const char *name)
{
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n), *found = NULL;

    for (int i = 0; i < n && list; i++) {
        if (name ? !strcmp(name, ibv_get_device_name(list[i])) : n == 1) {
            found = list[i];
        }
    }
    d->ctx = found ? ibv_open_device(found) : NULL;
    int error = errno;
    if (list) {
        ibv_free_device_list(list);
    }
    if (d->ctx) {
        return true;
    }
    if (found) {
        return refuse(d, "%s: %s", name ? name : "the RDMA device", strerror(error));
    }
    return name ? refuse(d, "there is no RDMA device %s", name)
                : refuse(d, "there are %d RDMA devices: --device is missing", n);
}

bool
device_open(struct device *d, const char *name, int gid_index)
{
    *d = (struct device){.buffer = NULL};
    if (!open_by_name(d, name)) {
        return false;
    }
    if (!find_gid(d, gid_index)) {
        goto error;
    }
    d->buffer = calloc(1, DEVICE_BUFFER);
    d->pd = ibv_alloc_pd(d->ctx);
    d->mr = d->buffer && d->pd ? ibv_reg_mr(d->pd, d->buffer, DEVICE_BUFFER,
                                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
                               : NULL;
    d->cq = ibv_create_cq(d->ctx, 4 * DEVICE_WRS, NULL, NULL, 0);
    if (!d->mr || !d->cq) {
        refuse(d, "%s: buffer or completion queue: %s", ibv_get_device_name(d->ctx->device),
               strerror(errno));
        goto error;
    }
    return true;

error:
    device_close(d);
    return false;
}

void
device_close(struct device *d)
{
    device_qp_destroy(d);
    if (d->cq) {
        ibv_destroy_cq(d->cq);
    }
    if (d->mr) {
        ibv_dereg_mr(d->mr);
    }
    if (d->pd) {
        ibv_dealloc_pd(d->pd);
    }
    if (d->ctx) {
        ibv_close_device(d->ctx);
    }
    free(d->buffer);
    d->cq = NULL;
    d->mr = NULL;
    d->pd = NULL;
    d->ctx = NULL;
    d->buffer = NULL;
}

bool
device_qp_create(struct device *d, const struct device_qp *q)
{
    struct ibv_qp_init_attr init = {
        .send_cq = d->cq,
        .recv_cq = d->cq,
        .qp_type = IBV_QPT_RC,
        .sq_sig_all = 1,
        .cap = {.max_send_wr = DEVICE_WRS,
                .max_recv_wr = DEVICE_WRS,
                .max_send_sge = 1,
                .max_recv_sge = 1},
    };
    struct ibv_wc wc;

    device_qp_destroy(d);
    while (ibv_poll_cq(d->cq, 1, &wc) > 0) {
        continue;
    }
    memset(d->buffer, 0, DEVICE_BUFFER);
    d->qp = ibv_create_qp(d->pd, &init);
    if (!d->qp) {
        return refuse(d, "queue pair: %s", strerror(errno));
    }
    const struct rc_qp rc = {
        .gid_index = d->gid_index,
        .peer = q->peer,
        .dest_qpn = q->dest_qpn,
        .rq_psn = q->start_psn,
        .sq_psn = q->start_psn,
        .mtu = q->mtu,
        .timeout = (uint8_t) q->timeout,
        .retry_cnt = (uint8_t) q->retry_cnt,
        .rnr_retry = (uint8_t) q->rnr_retry,
        .min_rnr_timer = (uint8_t) q->min_rnr_timer,
        .traffic_class = (uint8_t) q->traffic_class,
    };
    int error = rc_qp_to_init(d->qp, true);
    if (error) {
        return refuse(d, "queue pair to INIT: %s", strerror(error));
    }
    error = rc_qp_to_rtr(d->qp, &rc);
    if (error) {
        return refuse(d, "queue pair to RTR: %s%s", strerror(error),
                      error == ETIMEDOUT ? ": the other end does not answer neighbour discovery"
                                         : "");
    }
    error = rc_qp_to_rts(d->qp, &rc);
    return !error || refuse(d, "queue pair to RTS: %s", strerror(error));
}

void
device_qp_destroy(struct device *d)
{
    if (d->qp) {
        ibv_destroy_qp(d->qp);
        d->qp = NULL;
    }
}

int
device_qp_state(const struct device *d)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    return d->qp && !ibv_query_qp(d->qp, &attr, IBV_QP_STATE, &init) ? (int) attr.qp_state : -1;
}

bool
device_post_recv(struct device *d, unsigned n, uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t) d->buffer, .length = len, .lkey = d->mr->lkey};
    struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

    for (unsigned i = 0; i < n; i++) {
        int error = ibv_post_recv(d->qp, &wr, &bad);

        if (error) {
            return refuse(d, "post receive: %s", strerror(error));
        }
    }
    return true;
}

bool
device_post_send(struct device *d, enum ibv_wr_opcode opcode, unsigned n, uint32_t len)
{
    struct ibv_sge sge = {.addr = (uintptr_t) d->buffer, .length = len, .lkey = d->mr->lkey};
    struct ibv_send_wr wr = {.opcode = opcode,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .wr.rdma = {.remote_addr = 0x10000, .rkey = 0x1234}},
                       *bad;

    for (unsigned i = 0; i < n; i++) {
        int error = ibv_post_send(d->qp, &wr, &bad);

        if (error) {
            return refuse(d, "post send: %s", strerror(error));
        }
    }
    return true;
}

unsigned
device_poll(struct device *d, struct ibv_wc *wc, unsigned n, unsigned ms)
{
    unsigned got = 0;

    for (unsigned waited = 0; got < n; waited++) {
        int k = ibv_poll_cq(d->cq, (int) (n - got), wc + got);

        got += k > 0 ? (unsigned) k : 0;
        if (got == n || waited == ms) {
            break;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return got;
}

void
device_driver(const struct device *d, char *text, size_t size)
{
    const char *name = ibv_get_device_name(d->ctx->device);
    char path[PATH_MAX], link[PATH_MAX];

    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device/driver", name);
    ssize_t len = readlink(path, link, sizeof link - 1);
    link[len > 0 ? len : 0] = '\0';
    const char *slash = strrchr(link, '/');
    snprintf(text, size, "%s", slash ? slash + 1 : "");
    /* Soft-RoCE has no device below it; its attribute 'parent' names the network device. */
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/parent", name);
    if (!*text && !access(path, F_OK)) {
        snprintf(text, size, "rdma_rxe");
    }
}
