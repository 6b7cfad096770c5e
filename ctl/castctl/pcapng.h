/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes pcapng files (draft-ietf-opsawg-pcapng): frames of several ports, with the names of ports and addresses.
 */
#ifndef CTL_CASTCTL_PCAPNG_H
#define CTL_CASTCTL_PCAPNG_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/wire.h"

/* Blocks in the order in which they must come.  Errors of writing are those of the stream. */

/* One section, and who has written it. */
void pcapng_section(FILE *, const char *application);
/* A port of Ethernet frames with times in microseconds.  Ports are numbered as they come, from 0 on. */
void pcapng_port(FILE *, const char *name, const char *description);

struct pcapng_name {
    struct in6_addr address;
    const char *name;
};
void pcapng_names(FILE *, const struct pcapng_name[], size_t n);

enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_INBOUND, PCAPNG_OUTBOUND };
struct pcapng_frame {
    uint32_t port;
    int64_t usec; /* since 1970. */
    const uint8_t *bytes;
    uint32_t len, whole_len; /* in the file, and as it was on the wire. */
    enum pcapng_direction direction;
};
void pcapng_frame(FILE *, const struct pcapng_frame *);

#endif /* ctl/castctl/pcapng.h */
