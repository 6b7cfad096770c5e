/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of frames in pcap files (microseconds, Ethernet).
 */
#ifndef LIB_PCAP_WRITE_H
#define LIB_PCAP_WRITE_H 1

#include "lib/packet.h"

struct pcap_writer;

/* Creates or empties 'path'.  NULL on failure; *errp then gets a malloc'd sentence. */
struct pcap_writer *pcap_writer_open(const char *path, char **errp);

/* Adds a frame with the time of day.  A capture must not disturb what it watches:
 * errors are kept for pcap_writer_close(), and a NULL writer takes nothing. */
void pcap_writer_put(struct pcap_writer *, const struct packet *);

/* Completes the file.  0, or the errno value of the first write that failed; the
 * file ends there.  NULL is allowed. */
int pcap_writer_close(struct pcap_writer *);

#endif /* lib/pcap-write.h */
