/* SPDX-License-Identifier: Apache-2.0
 *
 * The end without a device: RoCEv2 packets that are made by hand, and those that come back.
 *
 * Both pass through UDP sockets: the ICRC masks all that the kernel decides of an IPv6 header, so
 * it can be computed beforehand, and neither a raw socket nor a privilege is needed.
 */
#ifndef BENCH_CASTPROBE_PEER_H
#define BENCH_CASTPROBE_PEER_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/wire.h"

#define PEER_MAX_PAYLOAD 4096

enum peer_from {
    PEER_FROM_OWN,           /* the queue pair's peer address. */
    PEER_FROM_OTHER_PORT,    /* the same, another UDP source port. */
    PEER_FROM_OTHER_ADDRESS, /* an address that the queue pair does not know. */
    N_PEER_FROM,
};

struct peer {
    struct in6_addr own, other, device;
    int receive_fd;
    int send_fd[N_PEER_FROM];
    uint16_t send_port[N_PEER_FROM];
    char error[256]; /* why the last call failed. */
};

/* A packet to be sent.  Which extended headers it has follows from its opcode. */
struct craft {
    uint8_t opcode;
    uint32_t dest_qpn;
    psn_t psn;
    bool ack_req;
    uint16_t pkey;
    bool mig_req;
    /* RETH */
    uint64_t va;
    uint32_t rkey, dma_len;
    /* AETH */
    uint8_t syndrome;
    uint32_t msn;
    /* Payload: 'len' bytes of this value. */
    uint8_t fill;
    uint32_t len;
    /* Below the BTH. */
    enum peer_from from;
    int traffic_class, hop_limit;
    bool has_csum; /* the UDP checksum is not 0. */
    bool bad_icrc;
};

/* A packet of the device. */
struct seen {
    uint8_t opcode;
    uint32_t dest_qpn;
    psn_t psn;
    bool ack_req;
    uint16_t pkey;
    uint32_t rkey; /* of a RETH, if there is one. */
    uint8_t syndrome;
    uint32_t msn;
    uint32_t len; /* of the payload. */
    uint16_t sport;
    int traffic_class, hop_limit; /* -1: not known. */
    uint32_t flow_label;
    bool icrc_ok;
    uint64_t at_us;
};

/* 'own' is an address of this machine.  False with 'error'. */
bool peer_open(struct peer *, const struct in6_addr *own, const struct in6_addr *device);
void peer_close(struct peer *);
bool peer_send(struct peer *, const struct craft *);
/* An ordinary datagram from the other address. */
bool peer_send_plain(struct peer *, uint16_t port);
/* The next packet from the device that is RoCEv2; false: there was none within 'ms'. */
bool peer_receive(struct peer *, struct seen *, unsigned ms);
uint64_t peer_now_us(void);

#endif /* bench/castprobe/peer.h */
