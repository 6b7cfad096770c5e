/* SPDX-License-Identifier: Apache-2.0
 *
 * Queue pairs on their way into a group.
 *
 * The library is not linked with libibverbs, so that programs without RDMA can
 * watch or drive groups.  A program that has a struct ibv_qp has loaded
 * libibverbs; the functions are taken from there, in the version that this is
 * compiled for.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "librocecast/internal.h"

#define LIBIBVERBS "libibverbs.so.1"

#define PORT       1

/* Every function that is taken: return type, name here, symbol and its version, parameters. */
#define VERBS                                                                                    \
    VERB(struct ibv_device **, get_device_list, "ibv_get_device_list", "IBVERBS_1.1", (int *) )  \
    VERB(void, free_device_list, "ibv_free_device_list", "IBVERBS_1.1", (struct ibv_device **) ) \
    VERB(struct ibv_context *, open_device, "ibv_open_device", "IBVERBS_1.1",                    \
         (struct ibv_device *) )                                                                 \
    VERB(int, close_device, "ibv_close_device", "IBVERBS_1.1", (struct ibv_context *) )          \
    VERB(int, query_port, "ibv_query_port", "IBVERBS_1.1",                                       \
         (struct ibv_context *, uint8_t, struct ibv_port_attr *) )                               \
    VERB(int, query_gid_ex, "_ibv_query_gid_ex", "IBVERBS_1.11",                                 \
         (struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t, size_t))   \
    VERB(int, modify_qp, "ibv_modify_qp", "IBVERBS_1.1",                                         \
         (struct ibv_qp *, struct ibv_qp_attr *, int) )

struct verbs {
#define VERB(RETURN, NAME, SYMBOL, VERSION, PARAMETERS) RETURN(*NAME) PARAMETERS;
    VERBS
#undef VERB
};

static int
verbs_get(struct verbs *v)
{
    void *lib = dlopen(LIBIBVERBS, RTLD_NOW | RTLD_NOLOAD);

    if (!lib) {
        api_fail(ENOSYS, "the program has not loaded " LIBIBVERBS);
        return ENOSYS;
    }
#define VERB(RETURN, NAME, SYMBOL, VERSION, PARAMETERS)                   \
    v->NAME = (RETURN(*) PARAMETERS) dlvsym(lib, SYMBOL, VERSION);        \
    if (!v->NAME) {                                                       \
        dlclose(lib);                                                     \
        api_fail(ENOSYS, LIBIBVERBS ": no function " SYMBOL "@" VERSION); \
        return ENOSYS;                                                    \
    }
    VERBS
#undef VERB
    /* The program's own reference keeps it loaded. */
    dlclose(lib);
    return 0;
}

/* The index of 'address' among the GIDs of the device's port, or -1.  NICs have it twice; the one
 * for RoCE v1 is not taken, as its packets cannot be routed. */
static int
gid_find(const struct verbs *v, struct ibv_context *ctx, const struct in6_addr *address)
{
    struct ibv_gid_entry entry;
    int error = 0;

    for (int i = 0; !error || error == ENODATA /* an empty slot */; i++) {
        error = v->query_gid_ex(ctx, PORT, (uint32_t) i, &entry, 0, sizeof entry);
        if (!error && entry.gid_type == IBV_GID_TYPE_ROCE_V2
            && !memcmp(&entry.gid, address, sizeof *address)) {
            return i;
        }
    }
    return -1;
}

int
rocecast_device_open(struct rocecast *r, const char *host, int timeout_ms,
                     struct ibv_context **ctxp)
{
    NO_CANCELLATION;
    char text[INET6_ADDRSTRLEN], closed[100] = "";
    int n = 0, n_closed = 0, why = 0;
    struct in6_addr address;
    struct verbs v;

    *ctxp = NULL;
    int error = verbs_get(&v);
    error = error ? error : rocecast_host_address(r, host, timeout_ms, &address);
    if (error) {
        return error;
    }
    struct ibv_device **list = v.get_device_list(&n);
    for (int i = 0; list && list[i] && !*ctxp; i++) {
        *ctxp = v.open_device(list[i]);
        if (!*ctxp) {
            why = errno;
            n_closed++;
        } else if (gid_find(&v, *ctxp, &address) < 0) {
            v.close_device(*ctxp);
            *ctxp = NULL;
        }
    }
    if (list) {
        v.free_device_list(list);
    }
    if (!*ctxp) {
        inet_ntop(AF_INET6, &address, text, sizeof text);
        if (n_closed) {
            snprintf(closed, sizeof closed, "; %d could not be opened: %s", n_closed,
                     strerror(why));
        }
        return api_fail(n_closed ? why : ENODEV,
                        "none of %d RDMA devices has %s, the address of %s, in its GID table%s", n,
                        text, host, closed);
    }
    return 0;
}

int
rocecast_qp_init(struct ibv_qp *qp, enum rocecast_role role)
{
    NO_CANCELLATION;
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    /* A group carries no READ and no atomic. */
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT,
        .port_num = PORT,
        .qp_access_flags = role == ROCECAST_RECEIVER ? IBV_ACCESS_REMOTE_WRITE : 0,
    };
    struct verbs v;
    int error = verbs_get(&v);

    if (error) {
        return error;
    }
    error = v.modify_qp(qp, &reset, IBV_QP_STATE);
    if (!error) {
        error = v.modify_qp(qp, &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    }
    return error ? api_fail(error, "queue pair to INIT: %s", strerror(error)) : 0;
}

static enum ibv_mtu
mtu_enum(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << mtu < bytes) {
        mtu++;
    }
    return mtu;
}

/* EMSGSIZE if the device cannot carry the group's path MTU.  Soft-RoCE would connect the queue pair
 * all the same, and lose whatever is larger than the network device's MTU. */
static int
check_mtu(const struct verbs *v, struct ibv_context *ctx, const struct rocecast_epoch *e)
{
    struct ibv_port_attr port = {.active_mtu = 0};
    int error = v->query_port(ctx, PORT, &port);

    if (error) {
        return api_fail(error, "port %d of the queue pair's device: %s", PORT, strerror(error));
    }
    return port.active_mtu >= mtu_enum(e->mtu)
               ? 0
               : api_fail(
                   EMSGSIZE,
                   "the group's path MTU is %u, that of the queue pair's device %u: raise the "
                   "MTU of its network device",
                   e->mtu, 128u << port.active_mtu);
}

#define TCLASS_ECT0 2 /* RFC 3168 section 5, in the traffic class. */

static int
to_rtr(const struct verbs *v, struct ibv_qp *qp, const struct rocecast_epoch *e, int gid_index,
       bool ecn)
{
    struct ibv_qp_attr rtr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_enum(e->mtu),
        .dest_qp_num = e->designated_qpn,
        .rq_psn = e->start_psn,
        .min_rnr_timer = 12, /* 0.64 ms */
        .ah_attr = {.is_global = 1,
                    .port_num = PORT,
                    .grh = {.sgid_index = (uint8_t) gid_index,
                            .hop_limit = 64,
                            .traffic_class = ecn ? TCLASS_ECT0 : 0}},
    };
    char text[INET6_ADDRSTRLEN];

    memcpy(&rtr.ah_attr.grh.dgid, &e->proxy, sizeof e->proxy);
    int error =
        v->modify_qp(qp, &rtr,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                         | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error) {
        inet_ntop(AF_INET6, &e->proxy, text, sizeof text);
        return api_fail(error, "queue pair to RTR towards %s: %s%s", text, strerror(error),
                        error == ETIMEDOUT ? ": nothing there answers neighbour discovery" : "");
    }
    return 0;
}

static int
to_rts(const struct verbs *v, struct ibv_qp *qp, const struct rocecast_epoch *e)
{
    struct ibv_qp_attr rts = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = e->start_psn,
        .timeout = (uint8_t) e->qp_timeout,
        .retry_cnt = 7,
        .rnr_retry = 7,
    };
    int error = v->modify_qp(qp, &rts,
                             IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                                 | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);

    return error ? api_fail(error, "queue pair to RTS: %s", strerror(error)) : 0;
}

/* Gets what connecting needs, and checks that it can work.  'address' is the host's. */
static int
prepare(const char *host, const struct in6_addr *address, const struct ibv_qp *qp,
        const struct rocecast_epoch *e, struct verbs *v, int *gid_index)
{
    int error = verbs_get(v);

    if (error) {
        return error;
    }
    *gid_index = gid_find(v, qp->context, address);
    return *gid_index < 0
               ? api_fail(ENODEV, "the queue pair's device does not have the address of %s", host)
               : check_mtu(v, qp->context, e);
}

static int
connect_qp(struct rocecast_group *g, const char *host, const struct in6_addr *address,
           struct ibv_qp *qp, const struct rocecast_epoch *e)
{
    struct verbs v;
    int gid_index, error = prepare(host, address, qp, e, &v, &gid_index);

    if (error) {
        return error;
    }
    loop_lock();
    bool ecn = g->ecn;
    loop_unlock();
    error = to_rtr(&v, qp, e, gid_index, ecn);
    return error ? error : to_rts(&v, qp, e);
}

int
rocecast_qp_set_ecn(struct rocecast_group *g, int on)
{
    NO_CANCELLATION;
    int error = loop_check_process();

    if (!error) {
        loop_lock();
        g->ecn = on;
        loop_unlock();
    }
    return error;
}

int
rocecast_qp_connect(struct rocecast_group *g, const char *host, struct ibv_qp *qp,
                    const struct rocecast_epoch *e, int timeout_ms)
{
    NO_CANCELLATION;
    struct in6_addr address;
    struct verbs v;
    int error = epoch_check_size(e);

    error = error ? error : verbs_get(&v);
    error = error ? error : rocecast_host_address(g->r, host, timeout_ms, &address);
    return error ? error : connect_qp(g, host, &address, qp, e);
}

/*
 * Joining.
 */

/* Begins with the address of the host, by which the device is checked. */
static int
join_begin(struct rocecast_request *q, const char *host, struct ibv_qp *qp,
           int (*then)(struct rocecast_request *))
{
    struct verbs v;

    if (!qp) {
        return api_fail(EINVAL, "join: the queue pair is missing");
    }
    int error = verbs_get(&v);
    error = error ? error : request_set_endpoint(q, host, qp->qp_num);
    q->qp = qp;
    return error ? error : request_call(q, &call_host_address, then);
}

static int
source_connect(struct rocecast_request *q)
{
    request_take_epoch(q);
    return connect_qp(q->g, q->host, &q->address, q->qp, &q->epoch);
}

/* Checked before, so that a QP that cannot work is not registered. */
static int
source_register(struct rocecast_request *q)
{
    struct verbs v;
    int gid_index;

    q->address = q->call.address;
    int error = rocecast_get_epoch(q->g, &q->epoch);
    error = error ? error : prepare(q->host, &q->address, q->qp, &q->epoch, &v, &gid_index);
    return error ? error : request_call(q, &call_source_set, source_connect);
}

static int
source_join_begin(struct rocecast_request *q, const char *host, struct ibv_qp *qp,
                  const struct rocecast_epoch *seen)
{
    int error = request_set_seen(q, seen);

    return error ? error : join_begin(q, host, qp, source_register);
}

int
rocecast_source_join(struct rocecast_group *g, const char *host, struct ibv_qp *qp, int timeout_ms,
                     struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    struct rocecast_request q;
    int error = epoch_check_size(e);

    request_init(&q, g, timeout_ms);
    error = error ? error : source_join_begin(&q, host, qp, NULL);
    return error ? error : request_wait(&q, e);
}

int
rocecast_source_join_start(struct rocecast_group *g, const char *host, struct ibv_qp *qp,
                           const struct rocecast_epoch *seen, int timeout_ms,
                           struct rocecast_request **requestp)
{
    NO_CANCELLATION;
    int error = request_create(g, timeout_ms, requestp);

    return error ? error : request_created(requestp, source_join_begin(*requestp, host, qp, seen));
}

static int
member_register(struct rocecast_request *q)
{
    int error = rocecast_get_epoch(q->g, &q->epoch);

    error = error ? error : connect_qp(q->g, q->host, &q->call.address, q->qp, &q->epoch);
    q->member.epoch = q->epoch.epoch;
    return error ? error : request_call(q, &call_member_add, NULL);
}

static int
member_join_begin(struct rocecast_request *q, const char *host, struct ibv_qp *qp,
                  const struct ibv_mr *mr, uint64_t flags)
{
    int error = member_check_flags(flags);

    q->member = (struct rocecast_member){
        .size = sizeof q->member,
        .address = mr ? (uintptr_t) mr->addr : 0,
        .length = mr ? mr->length : 0,
        .rkey = mr ? mr->rkey : 0,
        .flags = flags,
    };
    return error ? error : join_begin(q, host, qp, member_register);
}

int
rocecast_member_join(struct rocecast_group *g, const char *host, struct ibv_qp *qp,
                     const struct ibv_mr *mr, int timeout_ms, struct rocecast_epoch *e)
{
    NO_CANCELLATION;
    struct rocecast_request q;
    int error = epoch_check_size(e);

    request_init(&q, g, timeout_ms);
    error = error ? error : member_join_begin(&q, host, qp, mr, 0);
    return error ? error : request_wait(&q, e);
}

int
rocecast_member_join_start(struct rocecast_group *g, const char *host, struct ibv_qp *qp,
                           const struct ibv_mr *mr, uint64_t flags, int timeout_ms,
                           struct rocecast_request **requestp)
{
    NO_CANCELLATION;
    int error = request_create(g, timeout_ms, requestp);

    return error ? error
                 : request_created(requestp, member_join_begin(*requestp, host, qp, mr, flags));
}
