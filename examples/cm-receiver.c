/* SPDX-License-Identifier: Apache-2.0
 *
 * Receives one file by RDMA WRITE and writes it to standard output.
 *
 *     cm-receiver ADDRESS PORT SIZE >FILE
 *
 * It knows librdmacm and libibverbs only.  Who connects is told with the answer
 * where to write: 20 bytes of private data (struct region).  The last write comes
 * with an immediate, the number of bytes in all.  The receiver sends nothing.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define STAY_MSEC 1000

/* Big-endian. */
struct region {
    uint64_t va;
    uint32_t rkey;
    uint64_t size;
} __attribute__((packed));

static void
fail(const char *what)
{
    fprintf(stderr, "cm-receiver: ");
    perror(what);
    exit(1);
}

static struct rdma_cm_id *
listen_at(char *address, char *port)
{
    struct rdma_addrinfo hints = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP}, *found;
    struct ibv_qp_init_attr qp = {.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_recv_sge = 1}};
    struct rdma_cm_id *listener;

    if (rdma_getaddrinfo(address, port, &hints, &found)) {
        fail(address);
    }
    if (rdma_create_ep(&listener, found, NULL, &qp) || rdma_listen(listener, 1)) {
        fail("listen");
    }
    rdma_freeaddrinfo(found);
    return listener;
}

/* Says where to write to.  The immediate uses up a receive, hence one is posted before. */
static void
answer(struct rdma_cm_id *id, char *data, size_t size)
{
    struct ibv_mr *mr = rdma_reg_write(id, data, size);

    if (!mr || rdma_post_recv(id, NULL, data, 0, mr) || ibv_req_notify_cq(id->recv_cq, 0)) {
        fail("region");
    }
    struct region region = {htobe64((uintptr_t) data), htobe32(mr->rkey), htobe64(size)};
    struct rdma_conn_param param = {
        .private_data = &region, .private_data_len = sizeof region, .rnr_retry_count = 7};
    if (rdma_accept(id, &param)) {
        fail("accept");
    }
}

/* Writes the file if the immediate has come; returns whether it has. */
static bool
take_file(struct rdma_cm_id *id, const char *data, size_t size)
{
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};

    if (!ibv_poll_cq(id->recv_cq, 1, &wc)) {
        return false;
    }
    if (wc.status != IBV_WC_SUCCESS || wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM
        || ntohl(wc.imm_data) > size) {
        fprintf(stderr, "cm-receiver: no file: %s\n", ibv_wc_status_str(wc.status));
        exit(1);
    }
    if (!fwrite(data, ntohl(wc.imm_data), 1, stdout) || fflush(stdout)) {
        fail("write");
    }
    return true;
}

int
main(int argc, char *argv[])
{
    size_t size = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    char *data = size ? malloc(size) : NULL;
    struct rdma_cm_event *event;
    bool whole = false, connected = true;

    if (!data) {
        fprintf(stderr, "usage: cm-receiver ADDRESS PORT SIZE >FILE    (SIZE: bytes, at least "
                        "the file's)\n");
        return 1;
    }
    struct rdma_cm_id *id, *listener = listen_at(argv[1], argv[2]);
    if (rdma_get_request(listener, &id)) {
        fail("get_request");
    }
    answer(id, data, size);
    rdma_destroy_ep(listener); /* before its request is answered this would wait for that. */

    /* Stays until the source leaves, since a packet of it may have to be acknowledged again; but not
     * for long: the source of a group leaves without a word to receivers, which another may use. */
    while (connected) {
        struct pollfd fds[] = {{.fd = whole ? -1 : id->recv_cq_channel->fd, .events = POLLIN},
                               {.fd = id->channel->fd, .events = POLLIN}};
        int n = poll(fds, 2, whole ? STAY_MSEC : -1);
        if (n < 0 && errno != EINTR) {
            fail("poll");
        }
        if (!n) {
            break;
        }
        whole = whole || take_file(id, data, size);
        if (fds[1].revents && !rdma_get_cm_event(id->channel, &event)) {
            connected = event->event != RDMA_CM_EVENT_DISCONNECTED;
            rdma_ack_cm_event(event);
        }
    }
    if (!whole) {
        fprintf(stderr, "cm-receiver: the source has gone before the file was whole\n");
    }
    return whole ? 0 : 1;
}
