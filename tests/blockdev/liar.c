/* SPDX-License-Identifier: Apache-2.0
 *
 * Connects to the source of a replicated disk as a replica does, and sends one
 * message that is wrong in itself: its length is not what it says.
 *
 *     blockdev-liar HOST ADDRESS SOURCE_ADDRESS KIND
 *
 * Exit status: 0 the source has ended the connection, 1 it has not, or something
 * failed.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/blockdev/protocol.h"

#define PATIENCE_MSEC 60000

static const struct {
    const char *name;
    enum message_type type;
    uint32_t length; /* as the message says. */
    uint32_t sent;   /* bytes. */
} kinds[] = {
    {"empty", MSG_HELLO, 0, 0},
    {"short", MSG_HELLO, 0, sizeof(struct message) - 1},
    {"long", MSG_HELLO, 0, sizeof(struct message) + 8},
    {"less-data", MSG_DATA, SLOT_DATA, sizeof(struct message) + BLOCK_SIZE},
    {"more-data", MSG_DATA, BLOCK_SIZE, sizeof(struct message) + SLOT_DATA},
    {"huge", MSG_DATA, UINT32_MAX, sizeof(struct message) + SLOT_DATA},
    {"too-long", MSG_DATA, SLOT_DATA + 1, sizeof(struct message) + SLOT_DATA + 1},
};

static void __attribute__((noreturn)) fail(const char *what)
{
    perror(what);
    exit(1);
}

static void
expect(struct rdma_event_channel *events, enum rdma_cm_event_type wanted)
{
    struct pollfd fd = {.fd = events->fd, .events = POLLIN};
    struct rdma_cm_event *e;

    if (poll(&fd, 1, PATIENCE_MSEC) != 1 || rdma_get_cm_event(events, &e)) {
        fail("no event");
    }
    if (e->event != wanted) {
        fprintf(stderr, "%s, not %s\n", rdma_event_str(e->event), rdma_event_str(wanted));
        exit(1);
    }
    rdma_ack_cm_event(e);
}

static struct rdma_cm_id *
make(struct rdma_event_channel *events, const char *own, const char *source)
{
    struct sockaddr_in6 src = {.sin6_family = AF_INET6};
    struct sockaddr_in6 dst = {.sin6_family = AF_INET6, .sin6_port = htons(BLOCKDEV_PORT)};
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1}};
    struct rdma_cm_id *id;

    if (inet_pton(AF_INET6, own, &src.sin6_addr) != 1
        || inet_pton(AF_INET6, source, &dst.sin6_addr) != 1) {
        fail("address");
    }
    if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP)
        || rdma_resolve_addr(id, (struct sockaddr *) &src, (struct sockaddr *) &dst, 1000)) {
        fail("RDMA-CM");
    }
    expect(events, RDMA_CM_EVENT_ADDR_RESOLVED);
    if (rdma_resolve_route(id, 1000)) {
        fail("route");
    }
    expect(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
    if (rdma_create_qp(id, NULL, &attr)) {
        fail("queue pair");
    }
    return id;
}

static void
lie(struct rdma_cm_id *id, unsigned kind)
{
    size_t size = sizeof(struct message) + SLOT_DATA + 1;
    struct message *m = calloc(1, size);
    struct ibv_mr *mr = m ? rdma_reg_msgs(id, m, size) : NULL;

    if (!mr) {
        fail("buffer");
    }
    m->type = htobe32(kinds[kind].type);
    m->length = htobe32(kinds[kind].length);
    if (rdma_post_send(id, NULL, m, kinds[kind].sent, mr, 0)) {
        fail("send");
    }
}

int
main(int argc, char *argv[])
{
    char name[HOST_NAME_SIZE] = "";
    struct rdma_conn_param param = {.private_data = name,
                                    .private_data_len = sizeof name,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
    unsigned kind = 0;

    while (argc == 5 && kind < sizeof kinds / sizeof *kinds && strcmp(argv[4], kinds[kind].name)) {
        kind++;
    }
    if (argc != 5 || kind == sizeof kinds / sizeof *kinds || strlen(argv[1]) >= sizeof name) {
        fprintf(stderr, "usage: blockdev-liar HOST ADDRESS SOURCE_ADDRESS KIND\n");
        return 1;
    }
    struct rdma_event_channel *events = rdma_create_event_channel();
    if (!events) {
        fail("RDMA-CM");
    }
    struct rdma_cm_id *id = make(events, argv[2], argv[3]);
    memcpy(name, argv[1], strlen(argv[1]));
    if (rdma_connect(id, &param)) {
        fail("connect");
    }
    expect(events, RDMA_CM_EVENT_ESTABLISHED);
    lie(id, kind);
    expect(events, RDMA_CM_EVENT_DISCONNECTED);
    return 0;
}
