/* SPDX-License-Identifier: Apache-2.0
 *
 * Sends one file by RDMA WRITE to who listens at an address.
 *
 *     cm-source ADDRESS PORT FILE [OWN-ADDRESS]
 *
 * It knows librdmacm and libibverbs only.  The answer to its request says where to
 * write: 20 bytes of private data (struct region).  The last write comes with an
 * immediate, the number of bytes in all.  A write is complete when it is
 * acknowledged, and only then the source leaves.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 65536u
#define DEPTH 16u

/* Big-endian. */
struct region {
    uint64_t va;
    uint32_t rkey;
    uint64_t size;
} __attribute__((packed));

static void
fail(const char *what)
{
    fprintf(stderr, "cm-source: ");
    perror(what);
    exit(1);
}

/* The whole file. */
static char *
read_file(const char *name, uint32_t *size)
{
    FILE *stream = fopen(name, "r");
    long length = stream && !fseek(stream, 0, SEEK_END) ? ftell(stream) : -1;

    if (length < 0) {
        fail(name);
    }
    if (length == 0 || length > UINT32_MAX) {
        fprintf(stderr, "cm-source: %s is empty, or has 4 GiB or more\n", name);
        exit(1);
    }
    char *data = malloc((size_t) length);
    if (!data || fseek(stream, 0, SEEK_SET) || !fread(data, (size_t) length, 1, stream)) {
        fail(name);
    }
    fclose(stream);
    *size = (uint32_t) length;
    return data;
}

/* Connects, and gets to know where to write to. */
static struct rdma_cm_id *
connect_to(char *address, char *port, char *own_address, struct region *region)
{
    struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP}, *own = NULL, *found;
    struct rdma_addrinfo passive = {.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP};
    struct ibv_qp_init_attr qp = {
        .cap = {.max_send_wr = DEPTH, .max_send_sge = 1, .max_recv_wr = 1}, .sq_sig_all = 1};
    struct rdma_conn_param param = {.retry_count = 7, .rnr_retry_count = 7};
    struct rdma_cm_id *id;

    if (own_address && rdma_getaddrinfo(own_address, NULL, &passive, &own)) {
        fail(own_address);
    }
    hints.ai_src_addr = own ? own->ai_src_addr : NULL;
    hints.ai_src_len = own ? own->ai_src_len : 0;
    if (rdma_getaddrinfo(address, port, &hints, &found)) {
        fail(address);
    }
    if (rdma_create_ep(&id, found, NULL, &qp) || rdma_connect(id, &param)) {
        fail("connect");
    }
    rdma_freeaddrinfo(found);
    if (id->event->param.conn.private_data_len < sizeof *region) {
        fprintf(stderr, "cm-source: the answer has no region\n");
        exit(1);
    }
    memcpy(region, id->event->param.conn.private_data, sizeof *region);
    return id;
}

/* Posts one write of the file; the last one has the file's size as immediate. */
static void
post(struct rdma_cm_id *id, const struct ibv_mr *mr, uint32_t ofs, const struct region *region)
{
    uint32_t left = (uint32_t) mr->length - ofs;
    struct ibv_sge sge = {(uintptr_t) mr->addr + ofs, left < CHUNK ? left : CHUNK, mr->lkey};
    struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

    wr.opcode = left > CHUNK ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
    wr.imm_data = htonl((uint32_t) mr->length);
    wr.wr.rdma.remote_addr = be64toh(region->va) + ofs;
    wr.wr.rdma.rkey = be32toh(region->rkey);
    if (ibv_post_send(id->qp, &wr, &bad)) {
        fail("post");
    }
}

/* Waits for a write to be complete, or for the receiver to leave: to soft-RoCE a retry_count of 7
 * is endless. */
static struct ibv_wc
wait_write(struct rdma_cm_id *id)
{
    struct pollfd fds[] = {{.fd = id->send_cq_channel->fd, .events = POLLIN},
                           {.fd = id->channel->fd, .events = POLLIN}};
    struct ibv_wc wc = {.status = IBV_WC_GENERAL_ERR};
    struct ibv_cq *cq;
    void *context;

    /* A completion before the request for an event causes none, hence the second look. */
    while (!ibv_poll_cq(id->send_cq, 1, &wc) && !ibv_req_notify_cq(id->send_cq, 0)
           && !ibv_poll_cq(id->send_cq, 1, &wc)) {
        poll(fds, 2, -1);
        if (fds[1].revents) {
            fprintf(stderr, "cm-source: the receiver has gone\n");
            exit(1);
        }
        if (fds[0].revents && !ibv_get_cq_event(id->send_cq_channel, &cq, &context)) {
            ibv_ack_cq_events(cq, 1);
        }
    }
    return wc;
}

int
main(int argc, char *argv[])
{
    uint32_t size, n_posted = 0, n_done = 0;
    struct region region;

    if (argc != 4 && argc != 5) {
        fprintf(stderr, "usage: cm-source ADDRESS PORT FILE [OWN-ADDRESS]\n");
        return 1;
    }
    char *data = read_file(argv[3], &size);
    struct rdma_cm_id *id = connect_to(argv[1], argv[2], argv[4], &region);
    if (be64toh(region.size) < size) {
        fprintf(stderr, "cm-source: %s does not fit into the region\n", argv[3]);
        return 1;
    }
    struct ibv_mr *mr = rdma_reg_msgs(id, data, size);
    if (!mr) {
        fail("region");
    }
    uint32_t n_chunks = (size - 1) / CHUNK + 1;
    while (n_done < n_chunks) {
        while (n_posted < n_chunks && n_posted - n_done < DEPTH) {
            post(id, mr, n_posted++ * CHUNK, &region);
        }
        struct ibv_wc wc = wait_write(id);
        if (wc.status != IBV_WC_SUCCESS) {
            fprintf(stderr, "cm-source: write %u: %s\n", n_done, ibv_wc_status_str(wc.status));
            return 1;
        }
        n_done++;
    }
    if (rdma_disconnect(id)) {
        fail("disconnect");
    }
    printf("%u bytes written\n", size);
    return 0;
}
