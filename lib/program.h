/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs: the segments that a source gives a packet, as containers of uSIDs, and the header that
 * it puts in front: H.Encaps.Red (RFC 8986 section 5.2).  One container needs no SRH; the header is
 * 40 bytes.  Of more, the first is only in the destination address:
 *
 *     IPv6(SA, DA = containers[0]) | SRH(Segments Left n - 1, Last Entry n - 2, containers[n - 1..1])
 */
#ifndef LIB_PROGRAM_H
#define LIB_PROGRAM_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_MAX 4 /* containers: with F3216, 24 uSIDs. */

struct program {
    uint8_t n; /* containers; 0: there is no program. */
    struct in6_addr containers[PROGRAM_MAX];
};

#define PROGRAM_ENCAP_MAX (40 + 8 + 16 * (PROGRAM_MAX - 1))

/* Bytes in front of the packet: IPv6 header, and SRH if there is one. */
size_t program_encap_len(const struct program *);

/* Writes them to 'out', for 'len' bytes of the protocol 'nh' behind them.  The hop limit is 64; 'tc' is
 * all of the outer traffic class. */
void program_header(const struct program *, const struct in6_addr *src, uint8_t nh, uint16_t len,
                    uint8_t tc, uint32_t flow_label, uint8_t *out);
/* The same for an IPv6 packet. */
void program_encap(const struct program *, const struct in6_addr *src, uint16_t inner_len,
                   uint8_t tc, uint32_t flow_label, uint8_t *out);

/* As text: containers, joined by commas.  program_parse() returns false if it is none, or has more
 * than PROGRAM_MAX. */
#define PROGRAM_TEXT_SIZE (PROGRAM_MAX * INET6_ADDRSTRLEN)
void program_format(const struct program *, char text[PROGRAM_TEXT_SIZE]);
bool program_parse(const char *text, struct program *);

/* The uSIDs of containers of the address plan, " | " between containers: "0100 0500 0300".  The text
 * of what is left of a program ends that of the whole. */
#define PROGRAM_USIDS_SIZE (PROGRAM_MAX * (6 * 5 + 2))
void program_format_usids(const struct program *, char text[PROGRAM_USIDS_SIZE]);
/* Reads them from the beginning of 'text'; returns what is behind them, NULL: there are none. */
const char *program_parse_usids(const char *text, struct program *);

#endif /* lib/program.h */
