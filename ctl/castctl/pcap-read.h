/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads pcap files: what captures of agents are, and tcpdump's, of either byte order, in micro- or nanoseconds.
 */
#ifndef CTL_CASTCTL_PCAP_READ_H
#define CTL_CASTCTL_PCAP_READ_H 1

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/packet.h"

struct pcap_reader {
    const char *name;
    const char *command; /* for messages. */
    FILE *stream;
    bool swapped;
    unsigned int per_usec; /* units of the times' second half in a microsecond. */
    uint8_t frame[PACKET_ROOM];
    uint32_t len; /* of the frame that was read last; it was sent with more if it was cut off. */
    uint32_t whole_len;
    int64_t usec; /* when, since 1970. */
};

/* Fails with CTL_REFUSED if there is no such file of Ethernet frames.  'name' and 'command' must last. */
void pcap_reader_open(struct pcap_reader *, const char *name, const char *command);
/* The next frame; false: there is none, or not all of it yet, and it is there another time. */
bool pcap_reader_next(struct pcap_reader *);
void pcap_reader_close(struct pcap_reader *);

#endif /* ctl/castctl/pcap-read.h */
