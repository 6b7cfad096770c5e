/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of frames in pcap files.
 *
 * The format is simple enough to write without libpcap, which would want each
 * frame in one piece.  Numbers are in this machine's byte order: the magic
 * tells a reader which.
 */
#include "lib/pcap-write.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct file_hdr {
    uint32_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    int32_t thiszone;
    uint32_t sigfigs;
    uint32_t snaplen;
    uint32_t linktype;
};
static_assert(sizeof(struct file_hdr) == 24, "pcap file header");

struct record_hdr {
    uint32_t sec;
    uint32_t usec;
    uint32_t caplen;
    uint32_t len;
};
static_assert(sizeof(struct record_hdr) == 16, "pcap record header");

#define PCAP_MAGIC_USEC   0xa1b2c3d4u
#define LINKTYPE_ETHERNET 1

struct pcap_writer {
    FILE *stream;
    int error; /* of the first write that failed. */
};

static void
put_bytes(struct pcap_writer *w, const void *bytes, size_t len)
{
    if (!w->error && fwrite(bytes, len, 1, w->stream) != 1) {
        w->error = errno;
    }
}

struct pcap_writer *
pcap_writer_open(const char *path, char **errp)
{
    FILE *stream = fopen(path, "wbe");
    if (!stream) {
        if (asprintf(errp, "%s: cannot be written (%s)", path, strerror(errno)) < 0) {
            abort();
        }
        return NULL;
    }

    struct pcap_writer *w = malloc(sizeof *w);
    if (!w) {
        abort();
    }
    *w = (struct pcap_writer){.stream = stream};
    const struct file_hdr hdr = {
        .magic = PCAP_MAGIC_USEC,
        .version_major = 2,
        .version_minor = 4,
        .snaplen = PACKET_HEADROOM + PACKET_ROOM,
        .linktype = LINKTYPE_ETHERNET,
    };
    put_bytes(w, &hdr, sizeof hdr);
    return w;
}

void
pcap_writer_put(struct pcap_writer *w, const struct packet *p)
{
    if (!w) {
        return;
    }

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const struct record_hdr hdr = {
        .sec = (uint32_t) now.tv_sec,
        .usec = (uint32_t) (now.tv_nsec / 1000),
        .caplen = (uint32_t) packet_size(p),
        .len = (uint32_t) packet_size(p),
    };
    put_bytes(w, &hdr, sizeof hdr);

    struct iovec iov[3];
    int n = packet_iov(p, iov);
    for (int i = 0; i < n; i++) {
        put_bytes(w, iov[i].iov_base, iov[i].iov_len);
    }
}

int
pcap_writer_close(struct pcap_writer *w)
{
    int error = 0;

    if (w) {
        error = fclose(w->stream) ? errno : 0;
        error = w->error ? w->error : error;
        free(w);
    }
    return error;
}
