/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a run (see content.h).
 *
 * A generated block is a row of sectors, each with a stamp and a body:
 *
 *      0                8            12           16
 *     | block's number | CRC of body | CRC of both | body ...
 *
 * All little endian, CRC-32C.  A sector that is shorter than the stamp has as
 * much of it as fits: of the number the low bytes.
 *
 * A slot keeps its bodies for the whole run, so a block costs only its stamps.
 * Every sector has one, so that no sector of a block can be taken for that of an
 * earlier one.
 *
 * The region is generated with numbers that are 0.  Poison is the complement: all
 * bits of its numbers are 1, which no block has.
 */
#include "bench/castbench/content.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_ISAL
#include <isa-l/crc.h>
#endif

#define N_ROUNDS 4 /* rounds of the cipher behind PATTERN_RANDOM. */

struct stamp {
    uint64_t number;
    uint32_t body_crc;
    uint32_t crc; /* of the above. */
};

static size_t
min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t
data_ofs(const struct content *c)
{
    return c->pattern == PATTERN_APPEND ? APPEND_DATA : 0;
}

struct content
content_init(enum pattern pattern, uint32_t size, uint64_t n_blocks, size_t region_max,
             uint64_t seed)
{
    struct content c = {
        .pattern = pattern, .size = size, .seed = seed, .stamped = true, .sector = SECTOR_MAX};
    size_t max = region_max ? region_max : REGION_MAX;
    uint64_t fit = max > data_ofs(&c) ? (max - data_ofs(&c)) / size : 0;

    c.n_slots = n_blocks && n_blocks < fit ? n_blocks : fit;
    c.region_len = c.n_slots ? data_ofs(&c) + c.n_slots * size : 0;
    return c;
}

struct content
content_init_file(uint32_t size, uint64_t n_blocks, size_t file_len)
{
    struct content c = {.pattern = PATTERN_SEQ, .size = size, .sector = SECTOR_MAX};
    uint64_t in_file = file_len / size + !!(file_len % size);

    c.n_slots = n_blocks && n_blocks < in_file ? n_blocks : in_file;
    c.region_len = c.n_slots < in_file ? c.n_slots * size : file_len;
    return c;
}

/* splitmix64: any seed gives bytes without visible order. */
static uint64_t
mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t
next_random(uint64_t *state)
{
    return mix(*state += 0x9e3779b97f4a7c15);
}

/* PATTERN_RANDOM: the slot of block 'i' < n_slots, or with 'back' the block of slot 'i'.  A Feistel
 * cipher permutes the numbers of some even number of bits.  It is repeated until the result is a
 * slot.  That ends, since 'i' itself is on the cycle. */
static uint64_t
permute(const struct content *c, uint64_t i, bool back)
{
    unsigned bits = 1; /* of each half. */

    while (UINT64_C(1) << 2 * bits < c->n_slots) {
        bits++;
    }
    const uint64_t mask = (UINT64_C(1) << bits) - 1;
    do {
        uint64_t left = i >> bits, right = i & mask;

        for (unsigned k = 0; k < N_ROUNDS; k++) {
            uint64_t key = mix(c->seed + (back ? N_ROUNDS - 1 - k : k));
            uint64_t next = left ^ (mix(key ^ right) & mask);
            left = right;
            right = next;
        }
        i = right << bits | left;
    } while (i >= c->n_slots);
    return i;
}

size_t
content_block_ofs(const struct content *c, uint64_t block)
{
    uint64_t i = block % c->n_slots;

    return data_ofs(c) + (c->pattern == PATTERN_RANDOM ? permute(c, i, false) : i) * c->size;
}

/* Bytes of the slot at 'ofs'. */
static size_t
slot_len(const struct content *c, size_t ofs)
{
    return min_size(c->region_len - ofs, c->size);
}

uint32_t
content_block_len(const struct content *c, uint64_t block)
{
    return (uint32_t) slot_len(c, content_block_ofs(c, block));
}

uint64_t
content_bytes(const struct content *c, uint64_t first, uint64_t end)
{
    uint64_t round_len = c->region_len - data_ofs(c);
    uint64_t rounds = end / c->n_slots - first / c->n_slots;

    /* Only a round's last block may be shorter. */
    return rounds * round_len + end % c->n_slots * c->size - first % c->n_slots * c->size;
}

uint64_t
content_tail(const struct content *c, uint64_t block)
{
    return content_bytes(c, 0, block + 1);
}

/*
 * Sectors.
 */

static uint32_t
crc32c(const void *data, size_t n)
{
#ifdef HAVE_ISAL
    /* It only reads, whatever its prototype says. */
    return ~crc32_iscsi((unsigned char *) (uintptr_t) data, (int) n, UINT32_MAX);
#else
    static const uint32_t half_bytes[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *p = data;
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        crc = crc >> 4 ^ half_bytes[crc & 15];
        crc = crc >> 4 ^ half_bytes[crc & 15];
    }
    return ~crc;
#endif
}

static uint32_t
body_crc(const unsigned char *sector, size_t len)
{
    return len > sizeof(struct stamp)
               ? crc32c(sector + sizeof(struct stamp), len - sizeof(struct stamp))
               : 0;
}

/* Writes the stamp that is there before the first block.  The body must be there already. */
static void
sector_generate(unsigned char *sector, size_t len)
{
    struct stamp s = {.body_crc = htole32(body_crc(sector, len))};

    memcpy(sector, &s, min_size(len, sizeof s));
}

static void
sector_stamp(unsigned char *sector, size_t len, uint64_t block)
{
    struct stamp s = {0};
    size_t n = min_size(len, sizeof s);

    if (n < sizeof s.number) {
        block %= (UINT64_C(1) << 8 * n) - 1; /* never all bits 1. */
    }
    memcpy(&s, sector, n);
    s.number = htole64(block);
    s.crc = htole32(crc32c(&s, offsetof(struct stamp, crc)));
    memcpy(sector, &s, n);
}

static void
complement(unsigned char *to, const unsigned char *from, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        to[i] = (unsigned char) ~from[i];
    }
}

/* What a sector is before any block, given what it is to be then. */
static void
sector_poison(const struct content *c, unsigned char *sector, size_t len)
{
    if (c->stamped) {
        sector_generate(sector, len);
    }
    complement(sector, sector, len);
}

/* Is the stamp that of a block?  '*block' is which one. */
static bool
sector_block(const unsigned char *sector, size_t len, uint64_t n_blocks, uint64_t *block)
{
    unsigned char stamp[sizeof(struct stamp)];
    size_t n = min_size(len, sizeof stamp);
    uint64_t number;

    if (n < sizeof number) {
        return false;
    }
    memcpy(&number, sector, sizeof number);
    *block = le64toh(number);
    memcpy(stamp, sector, n);
    sector_stamp(stamp, n, *block);
    /* Without checksums any number looks like a block's. */
    return !memcmp(stamp, sector, n) && (n == sizeof stamp || *block < n_blocks);
}

/*
 * Regions.
 */

void
content_generate(const struct content *c, unsigned char *region)
{
    uint64_t state = c->seed;

    memset(region, 0, min_size(data_ofs(c), c->region_len));
    for (size_t ofs = data_ofs(c); ofs < c->region_len; ofs += sizeof state) {
        uint64_t v = next_random(&state);
        memcpy(region + ofs, &v, min_size(c->region_len - ofs, sizeof v));
    }
    for (size_t ofs = data_ofs(c); ofs < c->region_len; ofs += c->size) {
        for (size_t i = 0; i < c->size; i += c->sector) {
            sector_generate(region + ofs + i, min_size(c->size - i, c->sector));
        }
    }
}

void
content_stamp(const struct content *c, unsigned char *region, uint64_t block)
{
    size_t ofs = content_block_ofs(c, block);

    for (size_t i = 0; i < c->size && c->stamped; i += c->sector) {
        sector_stamp(region + ofs + i, min_size(c->size - i, c->sector), block);
    }
}

void
content_poison(const struct content *c, unsigned char *region, const unsigned char *generated)
{
    complement(region, generated, c->region_len);
}

void
content_finish(const struct content *c, unsigned char *region, struct block_range range)
{
    uint64_t n = range.end - range.first, n_last = n < c->n_slots ? n : c->n_slots;

    for (uint64_t block = range.end - n_last; block < range.end; block++) {
        content_stamp(c, region, block);
    }
    for (uint64_t block = range.end; block < range.end + c->n_slots - n_last; block++) {
        unsigned char *slot = region + content_block_ofs(c, block);
        complement(slot, slot, content_block_len(c, block));
    }
    if (c->pattern == PATTERN_APPEND && c->n_slots) {
        /* Nothing writes what is between tail and records. */
        complement(region, region, APPEND_DATA);
        if (n) {
            uint64_t log_tail = content_tail(c, range.end - 1);
            memcpy(region, &log_tail, sizeof log_tail);
        }
    }
}

bool
content_find(const struct content *c, const unsigned char *region, uint64_t n_blocks,
             uint64_t *lowest, uint64_t *highest)
{
    bool found = false;

    for (size_t ofs = 0; ofs < c->region_len; ofs += c->size) {
        uint64_t block;

        if (sector_block(region + ofs, min_size(c->size, c->sector), n_blocks, &block)
            && block < n_blocks && content_block_ofs(c, block) == ofs) {
            *lowest = found && *lowest < block ? *lowest : block;
            *highest = found && *highest > block ? *highest : block;
            found = true;
        }
    }
    return found;
}

bool
content_finish_begun(const struct content *c, unsigned char *expected, struct block_range range,
                     const unsigned char *region)
{
    size_t ofs = content_block_ofs(c, range.end);
    /* The slot had the block before, if that was one of them. */
    bool is_poison = range.end < c->n_slots || range.end - c->n_slots < range.first;

    for (size_t i = 0; i < c->size; i += c->sector) {
        size_t len = min_size(c->size - i, c->sector);
        unsigned char sector[SECTOR_MAX];

        memcpy(sector, expected + ofs + i, len);
        if (is_poison) {
            complement(sector, sector, len);
        }
        sector_stamp(sector, len, range.end);
        if (memcmp(sector, region + ofs + i, len) != 0) {
            return false;
        }
        memcpy(expected + ofs + i, sector, len);
    }
    return true;
}

/*
 * Comparison.
 */

static void
explain_header(const unsigned char *region, const unsigned char *expected, size_t bad, char *why,
               size_t size)
{
    const uint64_t never = UINT64_MAX;
    uint64_t is, should;

    memcpy(&is, region, sizeof is);
    memcpy(&should, expected, sizeof should);
    if (bad >= sizeof is) {
        snprintf(why, size, "something was written between the log's tail and its records");
    } else if (should == never) {
        snprintf(why, size, "the log's tail is %" PRIu64 ", should never have been written", is);
    } else if (is == never) {
        snprintf(why, size, "the log's tail was never written, should be %" PRIu64, should);
    } else {
        snprintf(why, size, "the log's tail is %" PRIu64 ", should be %" PRIu64, is, should);
    }
}

/* Explains a sector of 'len' bytes.  Byte 'bad' is its first that differs from 'expected'. */
static void
explain_sector(const struct content *c, const unsigned char *sector, const unsigned char *expected,
               size_t len, size_t bad, uint64_t block, struct block_range range, char *why,
               size_t size)
{
    unsigned char poison[SECTOR_MAX];
    uint64_t found = block;
    char should[64] = "no block should be here";
    bool is_wanted = block >= range.first && block < range.end;
    bool known = c->stamped && sector_block(sector, len, range.end, &found)
                 && (found != block || !is_wanted);

    memcpy(poison, expected, len);
    sector_poison(c, poison, len);
    if (is_wanted) {
        snprintf(should, sizeof should, "block %" PRIu64 " should be here", block);
    }
    if (known) {
        struct stamp s = {0};
        memcpy(&s, sector, min_size(len, sizeof s));
        bool whole = le32toh(s.body_crc) == body_crc(sector, len);
        snprintf(why, size, "%s, block %" PRIu64 " is%s", should, found,
                 whole ? "" : ", with other bytes");
    } else if (!is_wanted) {
        snprintf(why, size, "%s, something else is", should);
    } else if (!memcmp(sector, poison, len)) {
        snprintf(why, size, "%s, nothing was ever written", should);
    } else if (!memcmp(sector + bad, poison + bad, len - bad)) {
        snprintf(why, size, "block %" PRIu64 " ends here, the rest was never written", block);
    } else {
        snprintf(why, size, "block %" PRIu64 "'s bytes are damaged", block);
    }
}

static void
explain(const struct content *c, const unsigned char *region, const unsigned char *expected,
        struct block_range range, size_t bad, char *why, size_t size)
{
    if (bad < data_ofs(c)) {
        explain_header(region, expected, bad, why, size);
        return;
    }
    uint64_t slot = (bad - data_ofs(c)) / c->size;
    size_t in_slot = (bad - data_ofs(c)) % c->size;
    size_t ofs = bad - in_slot % c->sector;
    size_t len = min_size(slot_len(c, bad - in_slot) - (in_slot - in_slot % c->sector), c->sector);
    uint64_t block = c->pattern == PATTERN_RANDOM ? permute(c, slot, true) : slot;

    if (block < range.end) {
        block += (range.end - 1 - block) / c->n_slots * c->n_slots; /* the slot's last. */
    }
    explain_sector(c, region + ofs, expected + ofs, len, bad - ofs, block, range, why, size);
}

size_t
content_compare(const struct content *c, const unsigned char *region, const unsigned char *expected,
                struct block_range range, size_t *first_bad, char *why, size_t size)
{
    size_t n_ok = 0, first = c->region_len;

    for (size_t ofs = 0; ofs < c->region_len; ofs += SECTOR_MAX) {
        size_t len = min_size(c->region_len - ofs, SECTOR_MAX);

        if (!memcmp(region + ofs, expected + ofs, len)) {
            n_ok += len;
            continue;
        }
        for (size_t i = ofs; i < ofs + len; i++) {
            bool ok = region[i] == expected[i];
            n_ok += ok;
            first = ok || first < i ? first : i;
        }
    }
    if (first < c->region_len) {
        *first_bad = first;
        explain(c, region, expected, range, first, why, size);
    }
    return n_ok;
}

/*
 * Files.
 */

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
