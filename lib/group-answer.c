/* SPDX-License-Identifier: Apache-2.0
 *
 * Private data of a group's connections.
 */
#include "lib/group-answer.h"

struct group_answer_wire {
    be64_t va;
    be32_t rkey;
    be64_t len;
    be32_t epoch;
    be16_t n_members;
    be16_t zero;
    uint8_t magic[8];
};
static_assert(sizeof(struct group_answer_wire) == GROUP_ANSWER_LEN, "a group's answer");

struct receiver_request_wire {
    uint8_t magic[8];
    be64_t va;
    be32_t rkey;
    be64_t len;
};
static_assert(sizeof(struct receiver_request_wire) == RECEIVER_REQUEST_LEN, "a receiver's request");

void
group_answer_put(const struct group_answer *answer, uint8_t data[GROUP_ANSWER_LEN])
{
    struct group_answer_wire wire = {
        .va = be64_put(answer->va),
        .rkey = be32_put(answer->rkey),
        .len = be64_put(answer->len),
        .epoch = be32_put(answer->epoch),
        .n_members = be16_put(answer->n_members),
    };

    memcpy(wire.magic, "rocecast", sizeof wire.magic);
    memcpy(data, &wire, sizeof wire);
}

bool
group_answer_get(struct group_answer *answer, const uint8_t *data, size_t len)
{
    const struct group_answer_wire *wire = (const struct group_answer_wire *) data;

    if (len < sizeof *wire || memcmp(wire->magic, "rocecast", sizeof wire->magic)) {
        return false;
    }
    answer->va = be64_get(wire->va);
    answer->rkey = be32_get(wire->rkey);
    answer->len = be64_get(wire->len);
    answer->epoch = be32_get(wire->epoch);
    answer->n_members = be16_get(wire->n_members);
    return true;
}

bool
receiver_request_get(struct receiver_request *request, const uint8_t *data, size_t len)
{
    const struct receiver_request_wire *wire = (const struct receiver_request_wire *) data;

    if (len < sizeof *wire || memcmp(wire->magic, "receiver", sizeof wire->magic)) {
        return false;
    }
    request->va = be64_get(wire->va);
    request->rkey = be32_get(wire->rkey);
    request->len = be64_get(wire->len);
    return true;
}
