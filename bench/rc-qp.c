/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of a reliable queue pair (see rc-qp.h).
 */
#include "bench/rc-qp.h"

#include <string.h>

static enum ibv_mtu
mtu_enum(uint32_t bytes)
{
    enum ibv_mtu mtu = IBV_MTU_256;

    while (mtu < IBV_MTU_4096 && 128u << mtu < bytes) {
        mtu++;
    }
    return mtu;
}

int
rc_qp_to_init(struct ibv_qp *qp, bool remote)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = RC_QP_PORT,
        .qp_access_flags = remote ? IBV_ACCESS_REMOTE_WRITE : 0,
    };

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int
rc_qp_to_rtr(struct ibv_qp *qp, const struct rc_qp *q)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = mtu_enum(q->mtu),
        .dest_qp_num = q->dest_qpn,
        .rq_psn = q->rq_psn,
        .min_rnr_timer = q->min_rnr_timer,
        .ah_attr = {.is_global = 1,
                    .port_num = RC_QP_PORT,
                    .grh = {.sgid_index = q->gid_index,
                            .hop_limit = 64,
                            .traffic_class = q->traffic_class}},
    };

    memcpy(&attr.ah_attr.grh.dgid, &q->peer, sizeof q->peer);
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
                             | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

int
rc_qp_to_rts(struct ibv_qp *qp, const struct rc_qp *q)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = q->sq_psn,
        .timeout = q->timeout,
        .retry_cnt = q->retry_cnt,
        .rnr_retry = q->rnr_retry,
    };

    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT
                             | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
}
