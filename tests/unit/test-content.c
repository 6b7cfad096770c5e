/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of castbench's runs: that a receiver which gets every block has what is expected, and
 * that whatever else it has is found and named.
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/castbench/content.h"
#include "tests/unit/suites.h"

#define ARRAY_LEN(A) (sizeof(A) / sizeof *(A))
#define SECTOR       SECTOR_MAX
#define STAMP_LEN    16

static struct content content;
static uint64_t n_blocks;
static struct block_range blocks; /* that the receiver is to have. */
static unsigned char *source, *region, *expected;
static char why[128];

static void
teardown(void)
{
    free(source);
    free(region);
    free(expected);
    source = region = expected = NULL;
}

/* Regions before the first block.  Bytes of a file are any. */
static void
start(struct content c, uint64_t n)
{
    teardown();
    content = c;
    n_blocks = n;
    blocks = (struct block_range){0, n};
    ck_assert_uint_gt(c.n_slots, 0);
    source = malloc(c.region_len);
    region = malloc(c.region_len);
    expected = malloc(c.region_len);
    ck_assert(source && region && expected);
    if (c.stamped) {
        content_generate(&c, source);
    } else {
        for (size_t i = 0; i < c.region_len; i++) {
            source[i] = (unsigned char) rand();
        }
    }
    memcpy(expected, source, c.region_len);
    content_finish(&c, expected, blocks);
    content_poison(&c, region, source);
    size_t n_equal = 0;
    for (size_t i = 0; i < c.region_len; i++) {
        n_equal += region[i] == source[i];
    }
    ck_assert_uint_eq(n_equal, 0);
}

static void
send_block(uint64_t block)
{
    size_t ofs = content_block_ofs(&content, block);

    memcpy(region + ofs, source + ofs, content_block_len(&content, block));
    if (content.pattern == PATTERN_APPEND) {
        uint64_t tail = content_tail(&content, block);
        memcpy(region, &tail, sizeof tail);
    }
}

/* All blocks in their order, while the source prepares up to 'ahead' of them. */
static void
send_all(uint64_t ahead)
{
    uint64_t n_stamped = 0;

    for (uint64_t block = 0; block < n_blocks; block++) {
        while (n_stamped < n_blocks && n_stamped < block + ahead) {
            content_stamp(&content, source, n_stamped++);
        }
        send_block(block);
    }
}

static size_t
compare(size_t *first_bad)
{
    return content_compare(&content, region, expected, blocks, first_bad, why, sizeof why);
}

static void
assert_right(void)
{
    size_t first_bad = 12345;
    size_t n_ok = compare(&first_bad);

    ck_assert_msg(n_ok == content.region_len, "at %zu of %zu: %s", first_bad, content.region_len,
                  why);
    ck_assert_uint_eq(first_bad, 12345);
    ck_assert_mem_eq(region, expected, content.region_len);
}

/*
 * Shapes.
 */

static const uint32_t sizes[] = {1, 3, 7, 8, 11, 15, 16, 17, 64, 4095, 4096, 4097, 4104, 1u << 20};
static const enum pattern patterns[] = {PATTERN_SEQ, PATTERN_RANDOM, PATTERN_APPEND};

#define N_SHAPES (ARRAY_LEN(sizes) * ARRAY_LEN(patterns))

START_TEST(all_arrive)
    {
        uint32_t size = sizes[(size_t) _i % ARRAY_LEN(sizes)];
        enum pattern pattern = patterns[(size_t) _i / ARRAY_LEN(sizes)];
        bool large = size > 100000;

        srand((unsigned) _i);
        for (int k = 0; k < (large ? 3 : 40); k++) {
            uint64_t fit = 1 + (uint64_t) (rand() % (large ? 4 : 40));
            size_t max =
                (pattern == PATTERN_APPEND ? APPEND_DATA : 0) + fit * size + (size_t) rand() % size;
            uint64_t n = (uint64_t) rand() % (fit * 3);
            struct content c =
                content_init(pattern, size, rand() % 2 ? n : 0, max, (uint64_t) rand());

            ck_assert_uint_le(c.region_len, max);
            c.sector = SECTOR_MAX >> rand() % 7;
            start(c, n);
            send_all(1 + (uint64_t) rand() % c.n_slots);
            assert_right();
        }
    }
END_TEST

/* n_slots different slots of the region, the same in every round, and as content_bytes() says. */
START_TEST(slots)
    {
        uint32_t size = sizes[(size_t) _i % ARRAY_LEN(sizes)];
        enum pattern pattern = patterns[(size_t) _i / ARRAY_LEN(sizes)];

        for (unsigned n = 1; n < 70; n++) {
            struct content c = content_init(pattern, size, n, (size_t) size * 100 + 64, n / 2);
            size_t data = pattern == PATTERN_APPEND ? APPEND_DATA : 0;
            bool used[70] = {false};
            uint64_t bytes = 0;

            ck_assert_uint_eq(c.n_slots, n);
            ck_assert_uint_eq(c.region_len, data + (size_t) n * size);
            for (uint64_t block = 0; block < n; block++) {
                size_t ofs = content_block_ofs(&c, block) - data;

                ck_assert_uint_eq(ofs % size, 0);
                ck_assert_uint_lt(ofs / size, n);
                ck_assert(!used[ofs / size]);
                used[ofs / size] = true;
                ck_assert_uint_eq(content_block_ofs(&c, block + 3 * (uint64_t) n), ofs + data);
                ck_assert_uint_eq(content_block_len(&c, block), size);
                bytes += size;
                ck_assert_uint_eq(content_bytes(&c, 0, block + 1), bytes);
                ck_assert_uint_eq(content_tail(&c, block), bytes);
            }
        }
    }
END_TEST

START_TEST(random_order)
    {
        enum { N = 1000 };
        struct content c[3];
        unsigned n_same_seed = 0, n_same = 0, n_next = 0;

        for (unsigned i = 0; i < 3; i++) {
            c[i] = content_init(PATTERN_RANDOM, 512, N, 0, i / 2);
        }
        for (uint64_t block = 0; block < N; block++) {
            size_t ofs = content_block_ofs(&c[0], block);

            n_same_seed += ofs == content_block_ofs(&c[1], block);
            n_same += ofs == content_block_ofs(&c[2], block);
            n_next += ofs + 512 == content_block_ofs(&c[0], block + 1);
        }
        ck_assert_uint_eq(n_same_seed, N);
        /* By chance about one. */
        ck_assert_uint_lt(n_same, 10);
        ck_assert_uint_lt(n_next, 10);
    }
END_TEST

START_TEST(no_room)
    {
        ck_assert_uint_eq(content_init(PATTERN_SEQ, 100, 5, 99, 0).n_slots, 0);
        ck_assert_uint_eq(content_init(PATTERN_SEQ, 100, 5, 100, 0).n_slots, 1);
        ck_assert_uint_eq(content_init(PATTERN_RANDOM, 100, 0, 99, 0).region_len, 0);
        ck_assert_uint_eq(content_init(PATTERN_APPEND, 36, 5, 99, 0).n_slots, 0);
        ck_assert_uint_eq(content_init(PATTERN_APPEND, 36, 5, 99, 0).region_len, 0);
        ck_assert_uint_eq(content_init(PATTERN_APPEND, 35, 5, 99, 0).n_slots, 1);
        ck_assert_uint_eq(content_init(PATTERN_APPEND, 1, 5, 10, 0).n_slots, 0);
        ck_assert_uint_eq(content_init(PATTERN_SEQ, REGION_MAX, 0, 0, 0).n_slots, 1);
        ck_assert_uint_eq(content_init(PATTERN_SEQ, REGION_MAX + 1, 0, 0, 0).n_slots, 0);
        ck_assert_uint_eq(content_init(PATTERN_APPEND, REGION_MAX, 0, 0, 0).n_slots, 0);
        ck_assert_uint_eq(content_init_file(4096, 0, 0).n_slots, 0);
    }
END_TEST

/*
 * Stamps.
 */

static uint32_t
slow_crc32c(const unsigned char *p, size_t n)
{
    uint32_t crc = UINT32_MAX;

    for (size_t i = 0; i < n * 8; i++) {
        uint32_t bit = (crc ^ (uint32_t) p[i / 8] >> i % 8) & 1;
        crc = crc >> 1 ^ (bit ? 0x82f63b78 : 0);
    }
    return ~crc;
}

static uint32_t
get32(const unsigned char *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return le32toh(v);
}

START_TEST(stamps)
    {
        uint32_t size = sizes[_i];
        uint64_t block = UINT64_C(0x123456789abc);
        size_t n;

        ck_assert_uint_eq(slow_crc32c((const unsigned char *) "123456789", 9), 0xe3069283);
        start(content_init(PATTERN_SEQ, size, 1, 0, 7), 1);
        content_stamp(&content, source, block);
        for (size_t ofs = 0; ofs < size; ofs += n) {
            unsigned char *sector = source + ofs;
            uint64_t number = htole64(block);

            n = size - ofs < SECTOR ? size - ofs : SECTOR;
            if (n >= sizeof number) {
                ck_assert_mem_eq(sector, &number, sizeof number);
            }
            if (n >= STAMP_LEN) {
                ck_assert_uint_eq(get32(sector + 8),
                                  slow_crc32c(sector + STAMP_LEN, n - STAMP_LEN));
                ck_assert_uint_eq(get32(sector + 12), slow_crc32c(sector, 12));
            }
        }
    }
END_TEST

/* No block, however short, is right where nothing was written. */
START_TEST(not_by_chance)
    {
        unsigned n_equal = 0;

        start(content_init(PATTERN_SEQ, sizes[_i], 1, 0, 7), 0);
        for (uint64_t block = 0; block < 100000 && sizes[_i] < 100; block++) {
            content_stamp(&content, source, block);
            n_equal += !memcmp(source, region, sizes[_i]);
        }
        ck_assert_uint_eq(n_equal, 0);
    }
END_TEST

/*
 * What is wrong.
 */

#define N_SLOTS 5

/* A region that is right, of blocks of 'size' bytes, after 'n' of them. */
static void
right_region(uint32_t size, uint64_t n, int pattern)
{
    size_t data = patterns[pattern] == PATTERN_APPEND ? APPEND_DATA : 0;

    start(content_init(patterns[pattern], size, 0, data + N_SLOTS * (size_t) size, 3), n);
    send_all(1);
    assert_right();
    content_generate(&content, source); /* content_poison()'s argument. */
}

static unsigned char *
at(uint64_t block)
{
    return region + content_block_ofs(&content, block);
}

/* The comparison says so of byte 'first' of the region, and that 'n_bad' are wrong; 0: however
 * many are.  Then the region is right again. */
static void
assert_wrong(const unsigned char *first, size_t n_bad, const char *text)
{
    size_t first_bad = 0, n_ok = compare(&first_bad), n_equal = 0;

    for (size_t i = 0; i < content.region_len; i++) {
        n_equal += region[i] == expected[i];
    }
    ck_assert_uint_eq(n_ok, n_equal);
    ck_assert_uint_lt(n_ok, content.region_len);
    ck_assert_uint_eq(first_bad, first - region);
    ck_assert_str_eq(why, text);
    ck_assert(!n_bad || n_ok == content.region_len - n_bad);
    memcpy(region, expected, content.region_len);
}

static void
poison(unsigned char *p, size_t len)
{
    unsigned char *all = malloc(content.region_len);

    ck_assert(all);
    content_poison(&content, all, source);
    memcpy(p, all + (p - region), len);
    free(all);
}

START_TEST(wrong_blocks)
    {
        right_region(10000, 12, _i);

        at(8)[5000] ^= 4;
        assert_wrong(at(8) + 5000, 1, "block 8's bytes are damaged");
        at(8)[0] ^= 4;
        assert_wrong(at(8), 1, "block 8's bytes are damaged");
        at(8)[9999] ^= 1;
        at(8)[9000] ^= 1;
        assert_wrong(at(8) + 9000, 2, "block 8's bytes are damaged");

        content_stamp(&content, region, 6);
        assert_wrong(at(11), 0, "block 11 should be here, block 6 is");
        at(11)[100] ^= 1;
        content_stamp(&content, region, 6);
        assert_wrong(at(11), 0, "block 11 should be here, block 6 is, with other bytes");
        content_stamp(&content, region, 1);
        memcpy(at(11), expected + (at(11) - region), 2 * SECTOR);
        assert_wrong(at(11) + 2 * SECTOR, 0, "block 11 should be here, block 1 is");
        memcpy(at(8), at(7), 10000);
        assert_wrong(at(8), 0, "block 8 should be here, block 7 is");
        content_stamp(&content, region, 16); /* more than there are. */
        assert_wrong(at(11), 0, "block 11 should be here, block 16 is");

        poison(at(9), 10000);
        assert_wrong(at(9), 0, "block 9 should be here, nothing was ever written");
        poison(at(9) + SECTOR, 10000 - SECTOR);
        assert_wrong(at(9) + SECTOR, 0, "block 9 should be here, nothing was ever written");
        poison(at(9) + 9000, 1000);
        assert_wrong(at(9) + 9000, 1000, "block 9 ends here, the rest was never written");
        poison(at(9) + 5000, 1000);
        assert_wrong(at(9) + 5000, 1000, "block 9's bytes are damaged");
        assert_right();
    }
END_TEST

/* Packets of a second round that never come, while those of the first lie there: as long as there
 * is a sector in each, each is missed. */
START_TEST(missing_packet)
    {
        enum { SIZE = 10000 };
        size_t packet = (size_t) SECTOR_MIN << _i;

        content = content_init(patterns[_i % 3], SIZE, 0, APPEND_DATA + N_SLOTS * SIZE, 3);
        content.sector = (uint32_t) packet;
        start(content, N_SLOTS + 2);
        for (size_t ofs = 0; ofs < SIZE; ofs += packet) {
            size_t len = SIZE - ofs < packet ? SIZE - ofs : packet;
            unsigned char old[SECTOR];
            size_t first_bad = 0;

            for (uint64_t block = 0; block < n_blocks; block++) {
                content_stamp(&content, source, block);
                memcpy(old, at(block) + ofs, len);
                send_block(block);
            }
            assert_right();
            memcpy(at(n_blocks - 1) + ofs, old, len);
            ck_assert_uint_lt(compare(&first_bad), content.region_len);
            ck_assert_uint_eq(first_bad, (size_t) (at(n_blocks - 1) - region) + ofs);
            ck_assert_str_eq(why, "block 6 should be here, block 1 is");
        }
    }
END_TEST

/* In every slot the block is known that was the last there. */
START_TEST(wrong_block_names)
    {
        const uint32_t size = 20;
        char text[64];

        for (uint64_t n = 1; n < 120; n += 7) {
            start(content_init(patterns[_i], size, n < 41 ? n : 41, 0, 5), n);
            send_all(1);
            for (uint64_t block = n > 41 ? n - 41 : 0; block < n; block++) {
                at(block)[17] ^= 1;
                snprintf(text, sizeof text, "block %u's bytes are damaged", (unsigned) block);
                assert_wrong(at(block) + 17, 1, text);
            }
        }
    }
END_TEST

/* Fewer blocks than slots: what is in the others. */
START_TEST(unwritten_slots)
    {
        right_region(10000, 3, _i);

        memcpy(at(4), source + content_block_ofs(&content, 4), 10000);
        content_stamp(&content, region, 4);
        assert_wrong(at(4), 0, "no block should be here, block 4 is");
        memcpy(at(4), at(1), 10000);
        assert_wrong(at(4), 0, "no block should be here, block 1 is");
        at(3)[777] ^= 2;
        assert_wrong(at(3) + 777, 1, "no block should be here, something else is");
        poison(at(2), 10000);
        assert_wrong(at(2), 0, "block 2 should be here, nothing was ever written");
    }
END_TEST

START_TEST(wrong_short_blocks)
    {
        uint32_t size = sizes[_i];

        for (int p = 0; p < (int) ARRAY_LEN(patterns) && size < 100; p++) {
            right_region(size, 12, p);
            poison(at(9), size);
            assert_wrong(at(9), 0, "block 9 should be here, nothing was ever written");
            content_stamp(&content, region, 6);
            assert_wrong(at(11), 0,
                         size >= 8 ? "block 11 should be here, block 6 is"
                                   : "block 11's bytes are damaged");
            at(8)[size - 1] ^= 0x40;
            assert_wrong(at(8) + size - 1, 1, "block 8's bytes are damaged");
        }
    }
END_TEST

static void
set_tail(uint64_t tail)
{
    memcpy(region, &tail, sizeof tail);
}

START_TEST(wrong_tail)
    {
        right_region(4096, 2, PATTERN_APPEND);
        set_tail(4096);
        assert_wrong(region + 1, 1, "the log's tail is 4096, should be 8192");
        poison(region, 8);
        assert_wrong(region, 8, "the log's tail was never written, should be 8192");
        poison(at(1), 4096);
        set_tail(0);
        assert_wrong(region + 1, 0, "the log's tail is 0, should be 8192");
        region[8] ^= 1;
        assert_wrong(region + 8, 1, "something was written between the log's tail and its records");
        region[APPEND_DATA - 1] ^= 1;
        assert_wrong(region + APPEND_DATA - 1, 1,
                     "something was written between the log's tail and its records");
        region[APPEND_DATA] ^= 1;
        assert_wrong(region + APPEND_DATA, 1, "block 0's bytes are damaged");

        right_region(4096, 0, PATTERN_APPEND);
        set_tail(4096);
        assert_wrong(region, 0, "the log's tail is 4096, should never have been written");
    }
END_TEST

START_TEST(short_of_room_for_why)
    {
        size_t first_bad;
        char little[10];

        right_region(10000, 12, PATTERN_SEQ);
        at(8)[5000] ^= 4;
        content_compare(&content, region, expected, blocks, &first_bad, little, sizeof little);
        ck_assert_str_eq(little, "block 8's");
    }
END_TEST

/*
 * Receivers that come late and go early.
 */

/* A region that got blocks 'first' to 'end' - 1, and of block 'end' so many bytes. */
static void
late_region(uint32_t size, enum pattern pattern, uint64_t first, uint64_t end, size_t partial)
{
    content = content_init(pattern, size, 0, N_SLOTS * (size_t) size, 3);
    content.sector = 1024;
    start(content, end);
    for (uint64_t block = 0; block <= end; block++) {
        content_stamp(&content, source, block);
        if (block >= first && block < end) {
            send_block(block);
        }
    }
    memcpy(at(end), source + content_block_ofs(&content, end), partial);
    blocks = (struct block_range){first, end};
    content_generate(&content, expected);
    content_finish(&content, expected, blocks);
}

#define LATE_SIZE 2500 /* sectors of 1024, 1024 and 452 bytes. */

START_TEST(late_and_gone)
    {
        static const size_t partials[] = {0, 1024, 2048, LATE_SIZE};
        enum pattern pattern = patterns[_i % 2];

        for (uint64_t first = 0; first < 14; first++) {
            for (uint64_t end = first; end < first + 14; end++) {
                for (size_t k = 0; k < ARRAY_LEN(partials); k++) {
                    uint64_t lowest = 99, highest = 99;
                    size_t partial = partials[k];

                    late_region(LATE_SIZE, pattern, first, end, partial);
                    bool found = content_find(&content, region, end + 1, &lowest, &highest);
                    ck_assert_int_eq(found, end > first || partial);
                    if (found) {
                        uint64_t newest = partial ? end : end - 1;
                        uint64_t kept = newest >= N_SLOTS ? newest - N_SLOTS + 1 : 0;

                        ck_assert_uint_eq(highest, newest);
                        ck_assert_uint_eq(lowest, kept > first ? kept : first);
                    }
                    bool whole = content_finish_begun(&content, expected, blocks, region);
                    ck_assert_int_eq(whole, partial == LATE_SIZE);
                    assert_right();
                }
            }
        }
    }
END_TEST

/* What came before the first block, or is missing behind it, is no less wrong than in a receiver
 * that was there all the time. */
START_TEST(wrong_late)
    {
        size_t first_bad;

        late_region(LATE_SIZE, PATTERN_SEQ, 3, 5, 0);
        content_stamp(&content, source, 2);
        send_block(2);
        assert_wrong(at(2), 0, "no block should be here, block 2 is");

        late_region(LATE_SIZE, PATTERN_SEQ, 3, 5, 0);
        content_generate(&content, source); /* content_poison()'s argument. */
        poison(at(3), LATE_SIZE);
        assert_wrong(at(3), 0, "block 3 should be here, nothing was ever written");

        /* Of the block that was arriving the second packet is there, and not the first. */
        late_region(LATE_SIZE, PATTERN_SEQ, 3, 5, 0);
        memcpy(at(5) + 1024, source + content_block_ofs(&content, 5) + 1024, 1024);
        ck_assert(!content_finish_begun(&content, expected, blocks, region));
        ck_assert_uint_lt(compare(&first_bad), content.region_len);
        ck_assert_uint_eq(first_bad, content_block_ofs(&content, 5) + 1024);
    }
END_TEST

/*
 * Bytes of a file.
 */

START_TEST(file_bytes)
    {
        srand((unsigned) _i);
        for (int k = 0; k < 100; k++) {
            uint32_t size = 1 + (uint32_t) rand() % 9000;
            size_t len = 1 + (size_t) rand() % 50000;
            uint64_t in_file = (len + size - 1) / size, n = (uint64_t) rand() % (3 * in_file);
            struct content c = content_init_file(size, n, len);
            uint64_t bytes = 0;

            n = n ? n : in_file;
            ck_assert_uint_eq(c.n_slots, n < in_file ? n : in_file);
            ck_assert_uint_eq(c.region_len, n < in_file ? n * size : len);
            start(c, n);
            for (uint64_t block = 0; block < n; block++) {
                bytes += content_block_len(&c, block);
                ck_assert_uint_eq(content_bytes(&c, 0, block + 1), bytes);
                ck_assert_uint_eq(content_bytes(&c, n / 2, n / 2 + block),
                                  content_bytes(&c, 0, n / 2 + block)
                                      - content_bytes(&c, 0, n / 2));
            }
            send_all(c.n_slots);
            assert_right();
            ck_assert_mem_eq(region, source, c.region_len);
        }
    }
END_TEST

START_TEST(wrong_file_bytes)
    {
        start(content_init_file(5000, 0, 12345), 2);
        content = content_init_file(5000, 0, 12345);
        send_all(1);
        assert_right();
        at(0)[0] ^= 1;
        assert_wrong(at(0), 1, "block 0's bytes are damaged");
        poison(at(1), 5000);
        assert_wrong(at(1), 5000, "block 1 should be here, nothing was ever written");
        memcpy(at(2), source + 10000, 2345);
        assert_wrong(at(2), 2345, "no block should be here, something else is");
    }
END_TEST

Suite *
content_suite(void)
{
    Suite *suite = suite_create("content");
    TCase *tcase = tcase_create("content");

    tcase_add_checked_fixture(tcase, NULL, teardown);
    tcase_add_loop_test(tcase, all_arrive, 0, N_SHAPES);
    tcase_add_loop_test(tcase, slots, 0, N_SHAPES);
    tcase_add_test(tcase, random_order);
    tcase_add_test(tcase, no_room);
    tcase_add_loop_test(tcase, stamps, 0, ARRAY_LEN(sizes));
    tcase_add_loop_test(tcase, not_by_chance, 0, ARRAY_LEN(sizes));
    tcase_add_loop_test(tcase, wrong_blocks, 0, ARRAY_LEN(patterns));
    tcase_add_loop_test(tcase, missing_packet, 0, 7); /* up to SECTOR_MAX. */
    tcase_add_loop_test(tcase, wrong_block_names, 0, ARRAY_LEN(patterns));
    tcase_add_loop_test(tcase, unwritten_slots, 0, ARRAY_LEN(patterns));
    tcase_add_loop_test(tcase, wrong_short_blocks, 0, ARRAY_LEN(sizes));
    tcase_add_test(tcase, wrong_tail);
    tcase_add_test(tcase, short_of_room_for_why);
    tcase_add_loop_test(tcase, late_and_gone, 0, 2);
    tcase_add_test(tcase, wrong_late);
    tcase_add_loop_test(tcase, file_bytes, 0, 4);
    tcase_add_test(tcase, wrong_file_bytes);
    suite_add_tcase(suite, tcase);
    return suite;
}
