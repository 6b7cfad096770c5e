/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of a Hop-by-Hop or Destination Options header (RFC 8200 section 4.2), one after the
 * other.
 */
#ifndef LIB_IP6_OPTION_H
#define LIB_IP6_OPTION_H 1

#include <stdbool.h>
#include <stdint.h>

#define IP6_EXT_HDR_LEN    2 /* next header and length. */
#define IP6_OPTION_HDR_LEN 2 /* type and length. */
#define IP6_OPTION_PAD1    0
#define IP6_OPTION_PADN    1

struct ip6_option {
    uint32_t ofs; /* of its type, from the extension header on. */
    uint8_t type;
    uint8_t len;         /* of 'data'. */
    const uint8_t *data; /* refers to the header. */
};

struct ip6_options {
    const uint8_t *hdr;
    uint32_t ofs, len;
    bool sound; /* false: an option runs over the header's end. */
};

/* 'hdr' is the extension header, all 'len' bytes of which are there. */
static inline struct ip6_options
ip6_options(const uint8_t *hdr, uint32_t len)
{
    return (struct ip6_options){.hdr = hdr, .ofs = IP6_EXT_HDR_LEN, .len = len, .sound = true};
}

/* Goes to the next one that is no padding; false: there is none. */
static inline bool
ip6_options_next(struct ip6_options *o, struct ip6_option *option)
{
    while (o->ofs < o->len) {
        uint32_t ofs = o->ofs, rest = o->len - ofs;
        const uint8_t *at = o->hdr + ofs;

        if (at[0] == IP6_OPTION_PAD1) {
            o->ofs++;
            continue;
        }
        if (rest < IP6_OPTION_HDR_LEN || rest - IP6_OPTION_HDR_LEN < at[1]) {
            o->sound = false;
            return false;
        }
        o->ofs += IP6_OPTION_HDR_LEN + at[1];
        if (at[0] != IP6_OPTION_PADN) {
            *option = (struct ip6_option){ofs, at[0], at[1], at + IP6_OPTION_HDR_LEN};
            return true;
        }
    }
    return false;
}

#endif /* lib/ip6-option.h */
