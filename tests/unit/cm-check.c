/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames with RDMA-CM messages.
 */
#include "tests/unit/cm-check.h"

#include <stdlib.h>

#include "lib/icrc.h"
#include "tests/unit/parse-check.h"

#define MEMBER(NAME)                                                              \
    {                                                                             \
        offsetof(struct cm_msg, NAME), sizeof(((struct cm_msg *) 0)->NAME), #NAME \
    }
static const struct {
    size_t ofs, size;
    const char *name;
} members[] = {
    MEMBER(attribute),
    MEMBER(tid),
    MEMBER(local_id),
    MEMBER(remote_id),
    MEMBER(qpn),
    MEMBER(psn),
    MEMBER(ca_guid),
    MEMBER(responder_resources),
    MEMBER(initiator_depth),
    MEMBER(rnr_retry),
    MEMBER(srq),
    MEMBER(service),
    MEMBER(transport),
    MEMBER(retry),
    MEMBER(mtu_code),
    MEMBER(ack_timeout),
    MEMBER(local_cm_timeout),
    MEMBER(remote_cm_timeout),
    MEMBER(max_cm_retries),
    MEMBER(local_gid),
    MEMBER(remote_gid),
    MEMBER(ip_header),
    MEMBER(sport),
    MEMBER(ip_src),
    MEMBER(ip_dst),
    MEMBER(about),
    MEMBER(service_timeout),
    MEMBER(reason),
    MEMBER(remote_qpn),
    MEMBER(sidr_status),
    MEMBER(private_len),
    MEMBER(private_data),
};

const char *
cm_msg_differs(const struct cm_msg *a, const struct cm_msg *b)
{
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        size_t ofs = members[i].ofs;

        if (memcmp((const uint8_t *) a + ofs, (const uint8_t *) b + ofs, members[i].size)) {
            return members[i].name;
        }
    }
    return NULL;
}

void
cm_frame_build(uint8_t frame[CM_FRAME_LEN], const struct cm_msg *m)
{
    struct in6_addr src = {.s6_addr = {0xfd, [15] = 1}}, dst = {.s6_addr = {0xfd, [15] = 2}};
    struct packet_pool *pool = packet_pool_create(1);
    struct packet *p = cm_build(pool, &src, &dst, psn_make(0xabcdef), m);
    struct eth_hdr *eth = packet_push(p, sizeof *eth);

    memset(eth, 0, sizeof *eth);
    eth->type = be16_put(ETH_TYPE_IP6);
    REQUIRE(packet_flatten(p, frame, CM_FRAME_LEN) == CM_FRAME_LEN);
    packet_put(p);
    packet_pool_destroy(pool);
}

void
cm_frame_mend(uint8_t frame[CM_FRAME_LEN])
{
    uint8_t *icrc = frame + CM_ICRC_OFS;
    const uint8_t *ip = frame + CM_IP_OFS;

    icrc_store(icrc, icrc_compute(ip, (size_t) (icrc - ip)));
}

enum drop_reason
cm_frame_parse(const uint8_t *frame, size_t len, struct cm_msg *m)
{
    uint8_t *exact = malloc(len ? len : 1);
    struct parsed h;

    memcpy(exact, frame, len);
    enum drop_reason why = parse_check(exact, len, &h);
    if (!why) {
        REQUIRE(cm_is(exact, &h));
        why = cm_parse(exact, &h, m);
    }
    free(exact);
    return why;
}
