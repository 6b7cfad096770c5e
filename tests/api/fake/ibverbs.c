/* SPDX-License-Identifier: Apache-2.0
 *
 * What librocecast takes from libibverbs, for two made-up devices: the first
 * cannot be opened, the second has the GIDs of a NIC: each address once for
 * RoCE v1, then for RoCE v2.  What queue pairs are modified to goes to the file
 * $FAKE_VERBS_LOG, a line each; $FAKE_VERBS_MTU is the port's active MTU.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_query_port

static struct ibv_device closed, open_one;
static struct ibv_device *devices[] = {&closed, &open_one, NULL};
static struct ibv_context context;
static unsigned int n_lists, n_contexts;

struct ibv_device **
ibv_get_device_list(int *n)
{
    *n = 2;
    n_lists++;
    return devices;
}

void
ibv_free_device_list(struct ibv_device **list)
{
    n_lists -= list == devices;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
    if (device == &closed) {
        errno = EACCES;
        return NULL;
    }
    n_contexts++;
    return &context;
}

int
ibv_close_device(struct ibv_context *ctx)
{
    n_contexts -= ctx == &context;
    return 0;
}

int
ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *compat)
{
    struct ibv_port_attr *attr = (struct ibv_port_attr *) compat;
    const char *mtu = getenv("FAKE_VERBS_MTU");

    (void) ctx;
    attr->active_mtu = (enum ibv_mtu)(mtu ? atoi(mtu) : 0);
    return port == 1 ? 0 : EINVAL;
}

int
_ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t i, struct ibv_gid_entry *entry,
                  uint32_t flags, size_t size)
{
    static const char *const gids[] = {"fe80::1", "fe80::1", NULL, "fd00:1::100", "fd00:1::100"};

    (void) ctx;
    if (port != 1 || flags || size != sizeof *entry || i >= sizeof gids / sizeof *gids) {
        return EINVAL;
    }
    if (!gids[i]) {
        return ENODATA;
    }
    inet_pton(AF_INET6, gids[i], &entry->gid);
    entry->gid_type = i == 1 || i == 4 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1;
    return 0;
}

int
ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask)
{
    char text[INET6_ADDRSTRLEN];
    const char *file = getenv("FAKE_VERBS_LOG");
    FILE *log = file ? fopen(file, "a") : NULL;

    (void) qp;
    if (!log) {
        return EIO;
    }
    fprintf(log, "state=%d lists=%u contexts=%u", a->qp_state, n_lists, n_contexts);
    if (mask & IBV_QP_ACCESS_FLAGS) {
        fprintf(log, " access=%u port=%u", a->qp_access_flags, a->port_num);
    }
    if (mask & IBV_QP_AV) {
        const struct ibv_global_route *grh = &a->ah_attr.grh;

        inet_ntop(AF_INET6, &grh->dgid, text, sizeof text);
        fprintf(log, " dgid=%s sgid_index=%u tclass=%u hops=%u mtu=%d qpn=%u rq_psn=%u", text,
                grh->sgid_index, grh->traffic_class, grh->hop_limit, a->path_mtu, a->dest_qp_num,
                a->rq_psn);
    }
    if (mask & IBV_QP_SQ_PSN) {
        fprintf(log, " sq_psn=%u timeout=%u retry=%u rnr=%u", a->sq_psn, a->timeout, a->retry_cnt,
                a->rnr_retry);
    }
    fprintf(log, "\n");
    fclose(log);
    return 0;
}
