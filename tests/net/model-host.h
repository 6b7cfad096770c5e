/* SPDX-License-Identifier: Apache-2.0
 *
 * A host with model RC endpoints (tests/model/rc-endpoint.h) on real sockets, in the
 * place of an RDMA device.
 *
 * What arrives comes from a UDP socket bound to the host's address and port 4791, as
 * with rdma_rxe.  What leaves is the endpoint's packet, byte for byte, through a raw
 * socket bound to the address: the kernel routes it by that source.
 */
#ifndef TESTS_NET_MODEL_HOST_H
#define TESTS_NET_MODEL_HOST_H 1

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/model/rc-endpoint.h"

#define MODEL_HOST_MAX_QPS 1024

typedef void model_complete(void *aux, uint64_t id, enum rc_status);

struct model_qp {
    const struct model_host *host;
    uint32_t qpn;
    struct rc_endpoint *ep; /* NULL: the place is free. */
    model_complete *complete;
    void *aux;
};

struct model_host {
    struct in6_addr address;
    int rx_fd, tx_fd;
    size_t n_qps; /* places that are or were in use. */
    struct model_qp qps[MODEL_HOST_MAX_QPS];
    uint64_t n_stray; /* packets received for no queue pair of this host. */
    /* Gets those, from the IPv6 header on; NULL: nobody does. */
    void (*other)(void *other_aux, const uint8_t *ip, size_t len, uint64_t now);
    void *other_aux;
};

/* 0 or a positive errno; then there is nothing to close. */
int model_host_open(struct model_host *, const struct in6_addr *address);
void model_host_close(struct model_host *);

/* Adds a queue pair; the host, whose address it gets, must not move from now on.  It
 * belongs to the host. */
struct rc_endpoint *
model_host_add(struct model_host *, struct rc_config, model_complete *, void *aux);

/* Removes the queue pair with this number, if there is one. */
void model_host_remove(struct model_host *, uint32_t qpn);

/* Sends a packet of this host's that begins with its IPv6 header.  What the kernel does not take is
 * lost, as in rdma_rxe: the sender's timer sees to it. */
void model_host_send(const struct model_host *, const uint8_t *ip, size_t len);

/* Gives the queue pairs what has arrived. */
void model_host_receive(struct model_host *, uint64_t now);

#endif /* tests/net/model-host.h */
