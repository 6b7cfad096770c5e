/* SPDX-License-Identifier: Apache-2.0
 *
 * ECN when a tunnel header is taken off.
 */
#include "lib/ecn.h"

#define DROP 0xff

/* RFC 6040, figure 4. */
static const uint8_t decap[4][4] = {
    /* [inner][outer]  Not-ECT      ECT(1)       ECT(0)       CE */
    [ECN_NOT_ECT] = {ECN_NOT_ECT, ECN_NOT_ECT, ECN_NOT_ECT, DROP},
    [ECN_ECT1] = {ECN_ECT1, ECN_ECT1, ECN_ECT1, ECN_CE},
    [ECN_ECT0] = {ECN_ECT0, ECN_ECT1, ECN_ECT0, ECN_CE},
    [ECN_CE] = {ECN_CE, ECN_CE, ECN_CE, ECN_CE},
};

bool
ecn_decap(uint8_t outer_tc, uint8_t inner_tc, uint8_t *tc)
{
    uint8_t ecn = decap[inner_tc & ECN_MASK][outer_tc & ECN_MASK];

    if (ecn == DROP) {
        return false;
    }
    *tc = (uint8_t) ((inner_tc & ~ECN_MASK) | ecn);
    return true;
}
