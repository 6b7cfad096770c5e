/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads classic pcap files of this machine's byte order (the test vectors).
 */
#ifndef TESTS_UNIT_PCAP_FILE_H
#define TESTS_UNIT_PCAP_FILE_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pcap_file {
    uint8_t *bytes;
    size_t size;
    size_t ofs; /* of the next record. */
};

/* Fails the test if 'path' cannot be read. */
void pcap_file_open(struct pcap_file *, const char *path);
void pcap_file_close(struct pcap_file *);

/* The next frame, in a buffer of exactly its size that the caller frees, so
 * that sanitizers notice any access past it; NULL at the end of the file. */
uint8_t *pcap_file_next(struct pcap_file *, uint32_t *len);

/* Frame 'i' (from 0) of the file 'path', likewise; it must exist. */
uint8_t *pcap_file_frame(const char *path, unsigned i, uint32_t *len);

#endif /* tests/unit/pcap-file.h */
