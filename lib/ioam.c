/* SPDX-License-Identifier: Apache-2.0
 *
 * IOAM pre-allocated trace: the sender's header, a transit node's part, and the reader's.
 *
 * The list of elements behind the trace header has RemainingLen free words in front.  A node writes
 * its element at their end and lowers RemainingLen, so the newest element stands first.
 */
#include "lib/ioam.h"

#include "lib/ip6-option.h"

#define OPT_TYPE_PREALLOCATED 0 /* IOAM Option-Type, RFC 9197 section 4.1. */

/* The option in front of the trace, RFC 9486 section 3. */
struct ioam_option {
    uint8_t type;
    uint8_t len; /* of what follows it. */
    uint8_t reserved;
    uint8_t opt_type;
};
static_assert(sizeof(struct ioam_option) == 4, "IOAM option");

#define OPTION_OWN_LEN (sizeof(struct ioam_option) - IP6_OPTION_HDR_LEN)

/* RFC 9197 section 4.4.1. */
struct trace_hdr {
    be16_t namespace_id;
    be16_t lens; /* NodeLen 5, Flags 4, RemainingLen 7. */
    be24_t type;
    uint8_t reserved;
};
static_assert(sizeof(struct trace_hdr) == IOAM_TRACE_HDR_LEN, "trace header");

#define LENS_OVERFLOW       0x0400u
#define LENS_REMAINING      0x007fu

/* Bits of Trace-Type, as the RFC counts them: 0 is the highest of 24. */
#define TYPE_HAS(TYPE, BIT) ((TYPE) >> (23 - (BIT)) & 1)
#define BIT_HOP_NODE        0
#define BIT_SECONDS         2
#define BIT_FRACTION        3
#define BIT_NAMESPACE       5
#define BIT_QUEUE           6
#define BIT_HOP_NODE_WIDE   8
#define BIT_WIDE_LAST       10
#define BIT_UNDEFINED_LAST  21
#define BIT_OPAQUE          22

#define NOT_KNOWN           0xffffffffu
/* An opaque snapshot without content: Length 0, and the Schema ID for none. */
#define NO_SNAPSHOT         0x00ffffffu

static unsigned
node_len(const struct trace_hdr *hdr)
{
    return be16_get(hdr->lens) >> 11;
}

static unsigned
remaining_len(const struct trace_hdr *hdr)
{
    return be16_get(hdr->lens) & LENS_REMAINING;
}

static bool
is_wide(unsigned bit)
{
    return bit >= BIT_HOP_NODE_WIDE && bit <= BIT_WIDE_LAST;
}

/* The NodeLen that a Trace-Type means. */
static unsigned
type_node_len(uint32_t type)
{
    unsigned n = 0;

    for (unsigned bit = 0; bit <= BIT_UNDEFINED_LAST; bit++) {
        n += TYPE_HAS(type, bit) ? (is_wide(bit) ? 2 : 1) : 0;
    }
    return n;
}

/* Is this the trace of a namespace that is known here, and do its lengths fit? */
static bool
trace_sound(const struct trace_hdr *hdr, uint8_t trace_len)
{
    uint16_t namespace_id = be16_get(hdr->namespace_id);

    return (namespace_id == 0 || namespace_id == IOAM_NAMESPACE)
           && node_len(hdr) == type_node_len(be24_get(hdr->type))
           && remaining_len(hdr) * 4 <= trace_len - sizeof *hdr;
}

void
ioam_build(uint8_t *at, uint8_t next_header, unsigned slots)
{
    unsigned list_len = IOAM_ELEMENT_LEN * slots, len = IOAM_HBH_LEN(slots);
    struct ioam_option *option = (struct ioam_option *) (at + 4);
    struct trace_hdr *hdr = (struct trace_hdr *) (option + 1);
    unsigned pad = len - 16 - list_len;

    assert(slots >= 1 && slots <= IOAM_MAX_SLOTS);
    memset(at, 0, len);
    at[0] = next_header;
    at[1] = (uint8_t) (len / 8 - 1);
    at[2] = IP6_OPTION_PADN; /* of 2 bytes: the option begins at a multiple of 4. */
    option->type = IOAM_OPTION;
    option->len = (uint8_t) (OPTION_OWN_LEN + sizeof *hdr + list_len);
    option->opt_type = OPT_TYPE_PREALLOCATED;
    hdr->namespace_id = be16_put(IOAM_NAMESPACE);
    hdr->lens = be16_put((uint16_t) (IOAM_ELEMENT_LEN / 4 << 11 | list_len / 4));
    hdr->type = be24_put(IOAM_TRACE_TYPE);
    if (pad) {
        at[len - pad] = IP6_OPTION_PADN;
        at[len - pad + 1] = (uint8_t) (pad - IP6_OPTION_HDR_LEN);
    }
}

uint8_t *
ioam_find(uint8_t *ip, uint32_t len, uint8_t *trace_len)
{
    const struct ip6_hdr_wire *hdr = (const struct ip6_hdr_wire *) ip;
    uint8_t *hbh = ip + IP6_HDR_LEN;

    if (len < IP6_HDR_LEN + 8 || hdr->nh != IP6_NH_HOPOPT) {
        return NULL;
    }
    uint32_t room = len - IP6_HDR_LEN, hbh_len = (hbh[1] + 1u) * 8;
    if (hbh_len > room || hbh_len > be16_get(hdr->plen)) {
        return NULL;
    }
    struct ip6_options o = ip6_options(hbh, hbh_len);
    struct ip6_option option;
    while (ip6_options_next(&o, &option)) {
        if (option.type == IOAM_OPTION && option.ofs % 4 == 0
            && option.len >= OPTION_OWN_LEN + sizeof(struct trace_hdr)
            && option.len % 4 == OPTION_OWN_LEN
            && ((const struct ioam_option *) (hbh + option.ofs))->opt_type
                   == OPT_TYPE_PREALLOCATED) {
            *trace_len = (uint8_t) (option.len - OPTION_OWN_LEN);
            return hbh + option.ofs + sizeof(struct ioam_option);
        }
    }
    return NULL;
}

static void
put_word(uint8_t **at, uint32_t value)
{
    be32_t word = be32_put(value);

    memcpy(*at, &word, sizeof word);
    *at += sizeof word;
}

/* The first word of a bit's field. */
static uint32_t
first_word(const struct ioam_element *e, unsigned bit)
{
    switch (bit) {
    case BIT_HOP_NODE: return (uint32_t) e->hop_limit << 24 | (e->node_id & 0xffffff);
    case BIT_SECONDS: return e->seconds;
    case BIT_FRACTION: return e->usec;
    case BIT_NAMESPACE: return e->sent_bytes;
    case BIT_QUEUE: return e->queue_bytes;
    }
    return NOT_KNOWN;
}

static void
put_element(uint8_t *at, uint32_t type, const struct ioam_element *e)
{
    for (unsigned bit = 0; bit <= BIT_UNDEFINED_LAST; bit++) {
        if (!TYPE_HAS(type, bit)) {
            continue;
        }
        if (bit == BIT_HOP_NODE_WIDE) {
            put_word(&at, (uint32_t) e->hop_limit << 24); /* node_id has 56 bits. */
            put_word(&at, e->node_id & 0xffffff);
            continue;
        }
        put_word(&at, first_word(e, bit));
        if (is_wide(bit)) {
            put_word(&at, NOT_KNOWN);
        }
    }
    if (TYPE_HAS(type, BIT_OPAQUE)) {
        put_word(&at, NO_SNAPSHOT);
    }
}

enum ioam_result
ioam_fill(uint8_t *trace, uint8_t trace_len, const struct ioam_element *e)
{
    struct trace_hdr *hdr = (struct trace_hdr *) trace;

    if (!trace_sound(hdr, trace_len)) {
        return IOAM_IGNORED;
    }
    uint16_t lens = be16_get(hdr->lens);
    uint32_t type = be24_get(hdr->type);
    unsigned n = node_len(hdr) + TYPE_HAS(type, BIT_OPAQUE), remaining = remaining_len(hdr);

    if (lens & LENS_OVERFLOW || remaining < n) {
        hdr->lens = be16_put(lens | LENS_OVERFLOW);
        return IOAM_OVERFLOW;
    }
    put_element(trace + sizeof *hdr + (remaining - n) * 4, type, e);
    hdr->lens = be16_put((uint16_t) (lens - n));
    return IOAM_FILLED;
}

static uint32_t
get_word(const uint8_t *element, unsigned i)
{
    be32_t word;

    memcpy(&word, element + i * sizeof word, sizeof word);
    return be32_get(word);
}

bool
ioam_read(const uint8_t *trace, uint8_t trace_len, unsigned i, struct ioam_element *e)
{
    const struct trace_hdr *hdr = (const struct trace_hdr *) trace;

    if (be24_get(hdr->type) != IOAM_TRACE_TYPE || !trace_sound(hdr, trace_len)) {
        return false;
    }
    unsigned first = (unsigned) sizeof *hdr + remaining_len(hdr) * 4;
    if (i >= (trace_len - first) / IOAM_ELEMENT_LEN) {
        return false;
    }
    const uint8_t *at = trace + first + i * IOAM_ELEMENT_LEN;
    *e = (struct ioam_element){
        .hop_limit = at[0],
        .node_id = get_word(at, 0) & 0xffffff,
        .seconds = get_word(at, 1),
        .usec = get_word(at, 2),
        .sent_bytes = get_word(at, 3),
        .queue_bytes = get_word(at, 4),
    };
    return true;
}

uint8_t
ioam_compact(const uint8_t *trace, uint8_t trace_len, uint8_t *out)
{
    struct trace_hdr hdr;

    memcpy(&hdr, trace, sizeof hdr);
    unsigned free_len = remaining_len(&hdr) * 4, list_len = trace_len - (unsigned) sizeof hdr;
    if (free_len > list_len) {
        free_len = 0; /* unsound: nobody can say which slots are empty. */
    } else {
        hdr.lens = be16_put(be16_get(hdr.lens) & (uint16_t) ~LENS_REMAINING);
    }
    memcpy(out, &hdr, sizeof hdr);
    memcpy(out + sizeof hdr, trace + sizeof hdr + free_len, list_len - free_len);
    return (uint8_t) (trace_len - free_len);
}
