/* SPDX-License-Identifier: Apache-2.0
 *
 * Frames as text: one line that says what a frame is, and frames from hexadecimal digits.
 */
#ifndef LIB_PACKET_TEXT_H
#define LIB_PACKET_TEXT_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_TEXT_SIZE 512

/* What an Ethernet frame is: addresses, hop limit, SRH, uSIDs of a program, and the RoCE or ICMPv6 message inside.
 * Cut off if it does not fit. */
void packet_text(const uint8_t *frame, size_t len, char text[PACKET_TEXT_SIZE]);

/* What a NAK says, from its AETH syndrome. */
const char *nak_text(uint8_t syndrome);

/* An Ethernet frame from pairs of hexadecimal digits; blanks, newlines and colons may be between
 * bytes.  False: *errp gets a malloc'd sentence, which names the place, counted from 1. */
bool packet_from_text(const char *text, uint8_t *bytes, size_t size, size_t *len, char **errp);

#endif /* lib/packet-text.h */
