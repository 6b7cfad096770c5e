/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM messages.  The input is taken in two ways: as a frame, as it is and with a good ICRC; and
 * as an attribute and a body, in headers that are right, so that what is random gets as far as the
 * body.  What is a message is built again and read back the same; what is built from that is the
 * same to the bit.
 */
#include <stdlib.h>

#include "lib/cm.h"
#include "lib/icrc.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/cm-check.h"
#include "tests/unit/parse-check.h"

static void
round_trip(const struct cm_msg *m)
{
    uint8_t frame[CM_FRAME_LEN], again[CM_FRAME_LEN];
    struct cm_msg back;

    REQUIRE(m->private_len <= CM_PRIVATE_SIZE);
    REQUIRE(*cm_attribute_name(m->attribute) != '?');
    cm_frame_build(frame, m);
    REQUIRE(cm_frame_parse(frame, sizeof frame, &back) == DROP_none);
    REQUIRE(!cm_msg_differs(m, &back));
    cm_frame_build(again, &back);
    REQUIRE(!memcmp(frame, again, sizeof frame));
}

/* Whatever it is. */
static void
as_frame(const uint8_t *data, size_t size)
{
    uint8_t *exact = malloc(size ? size : 1);
    struct parsed h;
    struct cm_msg m;

    memcpy(exact, data, size);
    if (!parse_check(exact, size, &h) && cm_is(exact, &h)) {
        if (!cm_parse(exact, &h, &m)) {
            round_trip(&m);
        }
        uint8_t *icrc = exact + h.icrc_ofs;
        icrc_store(icrc, icrc_compute(exact + h.ip.ofs, (size_t) (icrc - exact) - h.ip.ofs));
        enum drop_reason why = cm_parse(exact, &h, &m);
        REQUIRE(why != DROP_icrc);
        if (!why) {
            round_trip(&m);
        }
    }
    free(exact);
}

static void
as_body(struct fuzz_input in)
{
    uint8_t frame[CM_FRAME_LEN];
    struct cm_msg m = {.attribute = CM_RTU};
    size_t n;

    cm_frame_build(frame, &m);
    frame[CM_ATTRIBUTE_OFS + 1] = fuzz_byte(&in);
    const uint8_t *body = fuzz_bytes(&in, CM_BODY_LEN, &n);
    memcpy(frame + CM_BODY_OFS, body, n);
    cm_frame_mend(frame);
    enum drop_reason why = cm_frame_parse(frame, sizeof frame, &m);
    REQUIRE(!why || why == DROP_cm_attribute);
    if (!why) {
        round_trip(&m);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_frame(data, size);
    as_body((struct fuzz_input){data, size});
    return 0;
}
