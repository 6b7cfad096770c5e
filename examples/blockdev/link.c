/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages on an ordinary reliable connection.  Buffers are posted again when
 * their message has been taken; who sends faster than that is told to wait by
 * the other's queue pair (RNR NAK), as often as it takes.
 */
#include "link.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* Each side sends fewer at a time than it has buffers: requests are limited by who asks, and each has
 * one answer. */
#define N_SENDS    48u
#define N_RECEIVES 64u
#define ROOM       (sizeof(struct message) + SLOT_DATA)

/* wr_id: the buffer's number; those below N_SENDS are for sending. */
struct link {
    struct rdma_cm_id *id;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_mr *mr;
    char *buffers;
    unsigned free[N_SENDS]; /* numbers of those that are not under way. */
    unsigned n_free;
    bool broken;
};

static struct message *
buffer(const struct link *l, uint64_t n)
{
    return (struct message *) (void *) (l->buffers + n * ROOM);
}

static bool
post_receive(struct link *l, uint64_t n)
{
    struct ibv_sge sge = {(uintptr_t) buffer(l, n), ROOM, l->mr->lkey};
    struct ibv_recv_wr *bad, wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1};

    return !ibv_post_recv(l->id->qp, &wr, &bad);
}

static bool
make(struct link *l, struct ibv_pd *pd)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = N_SENDS,
                                            .max_recv_wr = N_RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .sq_sig_all = 1};
    size_t size = (N_SENDS + N_RECEIVES) * ROOM;

    l->buffers = malloc(size);
    l->channel = ibv_create_comp_channel(l->id->verbs);
    l->cq =
        l->channel ? ibv_create_cq(l->id->verbs, N_SENDS + N_RECEIVES, NULL, l->channel, 0) : NULL;
    if (!l->buffers || !l->cq || ibv_req_notify_cq(l->cq, 0)) {
        return false;
    }
    l->mr = ibv_reg_mr(pd, l->buffers, size, IBV_ACCESS_LOCAL_WRITE);
    attr.send_cq = attr.recv_cq = l->cq;
    if (!l->mr || rdma_create_qp(l->id, pd, &attr)) {
        return false;
    }
    for (unsigned i = 0; i < N_SENDS; i++) {
        l->free[l->n_free++] = i;
    }
    for (unsigned i = N_SENDS; i < N_SENDS + N_RECEIVES; i++) {
        if (!post_receive(l, i)) {
            return false;
        }
    }
    return true;
}

static void
unmake(struct link *l)
{
    if (l->id->qp) {
        rdma_destroy_qp(l->id);
    }
    if (l->mr) {
        ibv_dereg_mr(l->mr);
    }
    if (l->cq) {
        ibv_destroy_cq(l->cq);
    }
    if (l->channel) {
        ibv_destroy_comp_channel(l->channel);
    }
    free(l->buffers);
    free(l);
}

struct link *
link_create(struct rdma_cm_id *id, struct ibv_pd *pd)
{
    struct link *l = calloc(1, sizeof *l);

    if (!l) {
        return NULL;
    }
    l->id = id;
    if (!make(l, pd)) {
        int error = errno;

        unmake(l);
        errno = error;
        return NULL;
    }
    return l;
}

void
link_destroy(struct link *l)
{
    if (l) {
        struct rdma_cm_id *id = l->id;

        rdma_disconnect(id);
        unmake(l);
        rdma_destroy_id(id);
    }
}

struct message *
link_prepare(struct link *l)
{
    return l->n_free ? memset(buffer(l, l->free[l->n_free - 1]), 0, sizeof(struct message)) : NULL;
}

/* The same both ways. */
static void
swap(struct message *m)
{
    m->type = htobe32(m->type);
    m->flags = htobe32(m->flags);
    m->value = htobe64(m->value);
    m->offset = htobe64(m->offset);
    m->length = htobe32(m->length);
}

void
link_send(struct link *l, struct message *m, uint32_t data)
{
    struct ibv_sge sge = {(uintptr_t) m, (uint32_t) sizeof *m + data, l->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = l->free[--l->n_free], .sg_list = &sge, .num_sge = 1};

    swap(m);
    wr.opcode = IBV_WR_SEND;
    l->broken |= ibv_post_send(l->id->qp, &wr, &bad) != 0;
}

bool
link_say(struct link *l, enum message_type type, uint64_t value, uint64_t offset, uint32_t flags)
{
    struct message *m = link_prepare(l);

    if (m) {
        m->type = type;
        m->flags = flags;
        m->value = value;
        m->offset = offset;
        link_send(l, m, 0);
    }
    return m != NULL;
}

int
link_fd(const struct link *l)
{
    return l->channel->fd;
}

/* Is it a message whose data are all there, and no more than there may be? */
static bool
is_whole(const struct message *m, uint32_t received)
{
    bool has_data = m->type == MSG_DATA || m->type == MSG_RESYNC;

    return m->length <= SLOT_DATA && received == sizeof *m + (has_data ? m->length : 0);
}

bool
link_run(struct link *l, bool (*receive)(void *aux, const struct message *), void *aux)
{
    struct ibv_cq *cq;
    struct ibv_wc wc;
    void *context;

    /* The descriptor may not be read when nothing is there: it would block. */
    struct pollfd fd = {.fd = l->channel->fd, .events = POLLIN};
    if (poll(&fd, 1, 0) == 1 && !ibv_get_cq_event(l->channel, &cq, &context)) {
        ibv_ack_cq_events(cq, 1);
        l->broken |= ibv_req_notify_cq(l->cq, 0) != 0;
    }
    while (!l->broken && ibv_poll_cq(l->cq, 1, &wc) == 1) {
        if (wc.status != IBV_WC_SUCCESS) {
            l->broken = true;
        } else if (wc.wr_id < N_SENDS) {
            l->free[l->n_free++] = (unsigned) wc.wr_id;
        } else {
            struct message *m = buffer(l, wc.wr_id);

            if (wc.byte_len < sizeof *m) {
                l->broken = true;
                break;
            }
            swap(m);
            if (!is_whole(m, wc.byte_len) || !receive(aux, m) || !post_receive(l, wc.wr_id)) {
                l->broken = true;
            }
        }
    }
    return !l->broken;
}
