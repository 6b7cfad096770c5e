/* SPDX-License-Identifier: Apache-2.0
 *
 * Captures of frames in pcap files.
 *
 * The format is simple enough to write without libpcap, which would want each
 * frame in one piece.  Numbers are in this machine's byte order: the magic
 * tells a reader which.
 *
 * Each frame is one write to the file, and a frame that is not written whole is
 * cut off again: whoever reads the file meanwhile finds whole frames only.
 * What was on a wire is nobody's but the capturing user's business: mode 0600, whatever the file
 * had before, and no symbolic link is followed to a file elsewhere.
 * The file is locked, so that no two captures, of whichever processes, write
 * over each other.
 */
#include "lib/pcap-write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/why.h"

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
    int fd;
    off_t size; /* of what was written whole. */
    uint64_t n_frames;
    int error; /* of the first write that failed. */
};

/* Adds all of 'iov' to the file, or nothing. */
static bool
append(struct pcap_writer *w, const struct iovec *iov, int n)
{
    size_t len = 0;
    for (int i = 0; i < n; i++) {
        len += iov[i].iov_len;
    }

    ssize_t written = writev(w->fd, iov, n);
    if (written == (ssize_t) len) {
        w->size += written;
        return true;
    }
    w->error = written < 0 ? errno : ENOSPC;
    if (ftruncate(w->fd, w->size)) {
        w->error = errno;
    }
    return false;
}

/* Opens 'path' without waiting, should it be a pipe or the like; such are refused.  -1: *why. */
static int
open_file(const char *path, bool replace, const char **why)
{
    struct stat st;
    int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags | (replace ? 0 : O_EXCL), 0600);

    if (fd < 0) {
        *why = errno == EEXIST  ? "exists already"
               : errno == ELOOP ? "a symbolic link"
                                : strerror(errno);
        return -1;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        *why = "not a regular file";
    } else if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        *why = "another capture writes to it";
    } else if (fchmod(fd, 0600) || ftruncate(fd, 0)) {
        *why = strerror(errno);
    } else {
        return fd;
    }
    close(fd);
    return -1;
}

struct pcap_writer *
pcap_writer_open(const char *path, bool replace, char **errp)
{
    const char *why;
    int fd = open_file(path, replace, &why);
    if (fd < 0) {
        say_why(errp, "%s: cannot be written (%s)", path, why);
        return NULL;
    }

    struct pcap_writer *w = malloc(sizeof *w);
    if (!w) {
        abort();
    }
    *w = (struct pcap_writer){.fd = fd};
    struct file_hdr hdr = {
        .magic = PCAP_MAGIC_USEC,
        .version_major = 2,
        .version_minor = 4,
        .snaplen = PACKET_HEADROOM + PACKET_ROOM,
        .linktype = LINKTYPE_ETHERNET,
    };
    append(w, &(struct iovec){&hdr, sizeof hdr}, 1);
    return w;
}

void
pcap_writer_put(struct pcap_writer *w, const struct packet *p)
{
    if (!w || w->error) {
        return;
    }

    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct record_hdr hdr = {
        .sec = (uint32_t) now.tv_sec,
        .usec = (uint32_t) (now.tv_nsec / 1000),
        .caplen = (uint32_t) packet_size(p),
        .len = (uint32_t) packet_size(p),
    };
    struct iovec iov[4] = {{&hdr, sizeof hdr}};
    int n = packet_iov(p, iov + 1);
    w->n_frames += append(w, iov, n + 1);
}

uint64_t
pcap_writer_n_frames(const struct pcap_writer *w)
{
    return w->n_frames;
}

int
pcap_writer_error(const struct pcap_writer *w)
{
    struct stat st;

    if (w->error) {
        return w->error;
    }
    return !fstat(w->fd, &st) && !st.st_nlink ? ENOENT : 0;
}

void
pcap_writer_close(struct pcap_writer *w)
{
    if (w) {
        close(w->fd);
        free(w);
    }
}
