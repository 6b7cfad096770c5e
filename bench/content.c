/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a run (see content.h).
 */
#include "bench/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct content
content_init(uint32_t size, uint64_t count, size_t file_len)
{
    struct content c = {.size = size, .count = count, .stamped = !file_len};

    if (file_len) {
        uint64_t n_blocks = (file_len + size - 1) / size;
        if (!c.count) {
            c.count = n_blocks;
        }
        c.region_len = c.count < n_blocks ? c.count * size : file_len;
    } else {
        uint64_t fit = REGION_MAX / size;
        c.region_len = (c.count < fit ? c.count : fit) * size;
    }
    c.n_slots = (c.region_len + size - 1) / size;
    return c;
}

size_t
content_block_ofs(const struct content *c, uint64_t block)
{
    return block % c->n_slots * c->size;
}

uint32_t
content_block_len(const struct content *c, uint64_t block)
{
    size_t left = c->region_len - content_block_ofs(c, block);

    return left < c->size ? (uint32_t) left : c->size;
}

uint64_t
content_total(const struct content *c)
{
    return c->count / c->n_slots * c->region_len + c->count % c->n_slots * c->size;
}

/* splitmix64: any seed gives bytes without visible order. */
static uint64_t
next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void
content_generate(const struct content *c, unsigned char *region, uint64_t seed)
{
    for (size_t ofs = 0; ofs < c->region_len; ofs += sizeof(uint64_t)) {
        uint64_t v = next_random(&seed);
        size_t left = c->region_len - ofs;
        memcpy(region + ofs, &v, left < sizeof v ? left : sizeof v);
    }
}

void
content_stamp(const struct content *c, unsigned char *region, uint64_t block)
{
    uint32_t len = content_block_len(c, block);

    if (c->stamped) {
        memcpy(region + content_block_ofs(c, block), &block,
               len < sizeof block ? len : sizeof block);
    }
}

void
content_finish(const struct content *c, unsigned char *region)
{
    for (uint64_t block = c->count - c->n_slots; block < c->count; block++) {
        content_stamp(c, region, block);
    }
}

size_t
content_compare(const unsigned char *a, const unsigned char *b, size_t len, size_t *first_bad)
{
    size_t n_ok = 0;

    for (size_t i = 0; i < len; i++) {
        if (a[i] == b[i]) {
            n_ok++;
        } else if (n_ok == i) {
            *first_bad = i;
        }
    }
    return n_ok;
}

int
content_file_len(const char *path, size_t *len)
{
    struct stat st;

    if (stat(path, &st)) {
        return errno;
    }
    *len = (size_t) st.st_size;
    return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
}

int
content_file_read(const char *path, unsigned char *buf, size_t len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = 0;

    if (fd < 0) {
        return errno;
    }
    for (size_t n = 0; n < len && !error;) {
        ssize_t got = read(fd, buf + n, len - n);
        if (got > 0) {
            n += (size_t) got;
        } else {
            error = got ? errno : EIO;
        }
    }
    close(fd);
    return error;
}

int
content_file_write(const char *dir, const char *name, const unsigned char *buf, size_t len)
{
    char path[4096];
    int error = 0;

    if ((size_t) snprintf(path, sizeof path, "%s/%s.bin", dir, name) >= sizeof path) {
        return ENAMETOOLONG;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        return errno;
    }
    for (size_t n = 0; n < len && !error;) {
        ssize_t put = write(fd, buf + n, len - n);
        if (put >= 0) {
            n += (size_t) put;
        } else {
            error = errno;
        }
    }
    if (close(fd) && !error) {
        error = errno;
    }
    return error;
}
