/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of frames in pcap files (microseconds, Ethernet).
 */
#ifndef LIB_PCAP_WRITE_H
#define LIB_PCAP_WRITE_H 1

#include <stdbool.h>

#include "lib/packet.h"

struct pcap_writer;

/* Creates 'path' with mode 0600; an existing regular file is emptied if 'replace', else refused.
 * NULL on failure; *errp then gets a malloc'd sentence. */
struct pcap_writer *pcap_writer_open(const char *path, bool replace, char **errp);

/* Adds a frame with the time of day.  A capture must not disturb what it watches:
 * errors are kept for pcap_writer_error(), and a NULL writer takes nothing. */
void pcap_writer_put(struct pcap_writer *, const struct packet *);

/* Frames in the file, and 0 or the errno value of the first write that failed: the file ends
 * before that frame.  ENOENT if the file has all frames but was removed. */
uint64_t pcap_writer_n_frames(const struct pcap_writer *);
int pcap_writer_error(const struct pcap_writer *);

/* NULL is allowed. */
void pcap_writer_close(struct pcap_writer *);

#endif /* lib/pcap-write.h */
