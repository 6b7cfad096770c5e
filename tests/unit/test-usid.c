/* SPDX-License-Identifier: Apache-2.0
 *
 * Containers of uSIDs against a transcription of RFC 9800's pseudo-code that moves bit by bit, and
 * headers of programs against bytes that scapy has built (tests/vectors/gen-programs.py).
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/parse.h"
#include "lib/prng.h"
#include "lib/program.h"
#include "lib/usid.h"
#include "tests/unit/hex.h"
#include "tests/unit/pcap-file.h"
#include "tests/unit/suites.h"

#define N_RANDOM 20000
#define BITS     128

/*
 * RFC 9800 section 4.1.1, on an address as an array of bits.
 */

struct bits {
    bool bit[BITS];
};

static struct bits
to_bits(const struct in6_addr *addr)
{
    struct bits b;

    for (unsigned i = 0; i < BITS; i++) {
        b.bit[i] = addr->s6_addr[i / 8] >> (7 - i % 8) & 1;
    }
    return b;
}

static struct in6_addr
from_bits(const struct bits *b)
{
    struct in6_addr addr = {.s6_addr = {0}};

    for (unsigned i = 0; i < BITS; i++) {
        addr.s6_addr[i / 8] |= (uint8_t) (b->bit[i] << (7 - i % 8));
    }
    return addr;
}

/* N01: DA.Argument, behind LBL + LNFL bits. */
static bool
naive_argument_is_zero(const struct bits *da, unsigned lbl, unsigned lnfl)
{
    for (unsigned i = lbl + lnfl; i < BITS; i++) {
        if (da->bit[i]) {
            return false;
        }
    }
    return true;
}

/* N05: "Copy DA.Argument into the bits [LBL..(LBL+AL-1)] of the Destination Address", N06: "Set the
 * bits [(LBL+AL)..127] of the Destination Address to zero", with AL = 128 - LBL - LNFL. */
static void
naive_shift(struct bits *da, unsigned lbl, unsigned lnfl)
{
    unsigned al = BITS - lbl - lnfl;
    struct bits before = *da;

    for (unsigned i = 0; i < al; i++) {
        da->bit[lbl + i] = before.bit[lbl + lnfl + i];
    }
    for (unsigned i = lbl + al; i < BITS; i++) {
        da->bit[i] = false;
    }
}

static unsigned
below(uint64_t *r, unsigned limit)
{
    return (unsigned) prng_below(r, limit);
}

static struct in6_addr
random_address(uint64_t *r)
{
    struct in6_addr addr = IN6ADDR_ANY_INIT;

    for (size_t i = 0; i < sizeof addr.s6_addr; i++) {
        addr.s6_addr[i] = (uint8_t) below(r, 256);
    }
    return addr;
}

/* Random lengths, any that there can be; arguments that are zero, nearly zero, or anything. */
START_TEST(shifts_like_the_rfc)
    {
        uint64_t r = 1;
        unsigned n_zero = 0;

        for (unsigned n = 0; n < N_RANDOM; n++) {
            unsigned lbl = 1 + below(&r, BITS - 2);
            unsigned lnfl = 1 + below(&r, BITS - 1 - lbl);
            unsigned plen = lbl + lnfl, kind = below(&r, 3);
            struct in6_addr da = random_address(&r);
            struct bits b = to_bits(&da);

            for (unsigned i = plen; i < BITS && kind < 2; i++) {
                b.bit[i] = false;
            }
            if (kind == 1) {
                b.bit[plen + below(&r, BITS - plen)] = true;
            }
            da = from_bits(&b);
            n_zero += naive_argument_is_zero(&b, lbl, lnfl);
            ck_assert_int_eq(usid_argument_is_zero(&da, plen),
                             naive_argument_is_zero(&b, lbl, lnfl));

            unsigned len = 1 + below(&r, BITS);
            bool next_is_zero = true;
            for (unsigned i = plen; i < plen + len && i < BITS; i++) {
                next_is_zero = next_is_zero && !b.bit[i];
            }
            ck_assert_int_eq(usid_next_is_zero(&da, plen, len), next_is_zero);

            usid_shift(&da, lbl, plen);
            naive_shift(&b, lbl, lnfl);
            struct in6_addr want = from_bits(&b);
            ck_assert_mem_eq(&da, &want, sizeof da);
        }
        ck_assert_uint_gt(n_zero, N_RANDOM / 4);
    }
END_TEST

#define MAX_STEPS      40
#define MAX_CONTAINERS MAX_STEPS

/* A program of random steps.  Each has a uSID that is not 0: what is 0 would end a container. */
static size_t
random_steps(uint64_t *r, struct usid_step steps[MAX_STEPS])
{
    struct in6_addr blocks[2] = {random_address(r), random_address(r)};
    unsigned lens[2] = {1 + below(r, 64), 1 + below(r, 64)};
    size_t n = 1 + below(r, MAX_STEPS);

    for (size_t i = 0; i < n; i++) {
        unsigned which = below(r, 8) == 0;
        unsigned plen = lens[which] + 1 + below(r, below(r, 4) ? 20 : 60);
        struct in6_addr random = random_address(r);
        struct bits sid = to_bits(&random), block = to_bits(&blocks[which]);

        memcpy(sid.bit, block.bit, lens[which] * sizeof *sid.bit);
        sid.bit[lens[which] + below(r, plen - lens[which])] = true;
        steps[i] = (struct usid_step){from_bits(&sid), (uint8_t) lens[which], (uint8_t) plen};
    }
    return n;
}

/* Nodes that do what RFC 9800 says come by all steps, in order, and no container could have had the
 * first step of the next. */
static void
walk(const struct usid_step *steps, size_t n_steps, const struct in6_addr *containers, size_t n)
{
    size_t container = 0;
    unsigned used = 0;
    struct bits da = to_bits(&containers[0]);

    for (size_t i = 0; i < n_steps; i++) {
        const struct usid_step *s = &steps[i];
        unsigned lnfl = s->plen - s->block_len;
        struct bits sid = to_bits(&s->sid);

        ck_assert_mem_eq(da.bit, sid.bit, s->plen * sizeof *sid.bit);
        used += used ? lnfl : s->plen;
        if (!naive_argument_is_zero(&da, s->block_len, lnfl)) {
            naive_shift(&da, s->block_len, lnfl);
            continue;
        }
        if (i + 1 < n_steps) {
            const struct usid_step *next = &steps[i + 1];
            struct bits other = to_bits(&next->sid);
            bool same_block = next->block_len == s->block_len
                              && !memcmp(sid.bit, other.bit, s->block_len * sizeof *sid.bit);

            ck_assert(!same_block || used + next->plen - next->block_len > BITS);
            ck_assert_uint_lt(++container, n);
            da = to_bits(&containers[container]);
            used = 0;
        }
    }
    ck_assert_uint_eq(container, n - 1);
}

START_TEST(packs_what_can_be_walked)
    {
        uint64_t r = 2;
        unsigned n_long = 0;

        for (unsigned i = 0; i < N_RANDOM / 10; i++) {
            struct in6_addr containers[MAX_CONTAINERS], again[MAX_CONTAINERS];
            struct usid_step steps[MAX_STEPS];
            size_t n_steps = random_steps(&r, steps);
            size_t n = usid_pack(steps, n_steps, containers, MAX_CONTAINERS);

            ck_assert_uint_ge(n, 1);
            walk(steps, n_steps, containers, n);
            ck_assert_uint_eq(usid_pack(steps, n_steps, again, n), n);
            ck_assert_uint_eq(usid_pack(steps, n_steps, again, n - 1), 0);
            n_long += n > 1;
        }
        ck_assert_uint_gt(n_long, 100);
        ck_assert_uint_eq(usid_pack(NULL, 0, NULL, 0), 0);
    }
END_TEST

START_TEST(lengths)
    {
        static const struct {
            unsigned block_len, plen;
            bool ok;
        } cases[] = {
            {32, 48, true}, {32, 64, true},  {16, 32, true},   {48, 64, true},  {8, 120, true},
            {0, 16, false}, {48, 48, false}, {64, 48, false},  {30, 48, false}, {32, 50, false},
            {8, 8, false},  {32, 0, false},  {32, 128, false},
        };

        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            ck_assert_msg(usid_lengths_ok(cases[i].block_len, cases[i].plen) == cases[i].ok, "%zu",
                          i);
        }
    }
END_TEST

/*
 * Programs.
 */

#define PROGRAMS_FILE "tests/vectors/programs-scapy.pcap"

static const char *const programs[] = {
    "5f00:0:100:500:300::",
    "5f00:0:200:600:400::",
    "5f00:0:101:201:301:202:102:e003",
    "5f00:0:100:600:300:400:500:200,5f00:0:600:300::",
    "5f00:0:1:2:3:4:5:6,5f00:0:7:8:9:a:b:c,5f00:0:d:e:f:10:11:12,5f00:0:13::",
};

/* H.Encaps.Red: RFC 8986 section 5.2.  One container costs 40 bytes. */
START_TEST(encap_same_as_scapy)
    {
        static const size_t lens[] = {40, 40, 40, 64, 96};
        const struct in6_addr src = hex_addr("5f00:0:a1::1");
        struct program program;
        uint32_t frame_len;
        uint8_t *frame = pcap_file_frame(PROGRAMS_FILE, (unsigned) _i, &frame_len);
        uint32_t packet_len = frame_len - (uint32_t) sizeof(struct eth_hdr);

        ck_assert(program_parse(programs[_i], &program));
        size_t len = program_encap_len(&program);
        ck_assert_uint_eq(len, lens[_i]);
        ck_assert_uint_le(len, PROGRAM_ENCAP_MAX);
        uint8_t *out = malloc(len); /* exactly, for sanitizers. */
        program_encap(&program, &src, (uint16_t) (packet_len - len), 2, 0x12345, out);
        ck_assert_mem_eq(out, frame + sizeof(struct eth_hdr), len);
        free(out);
        free(frame);
    }
END_TEST

START_TEST(text)
    {
        static const char *const bad[] = {
            "",
            ",",
            "5f00::,",
            ",5f00::",
            "5f00::,,5f00::",
            "5f00::/32",
            "5f00:: ",
            "5f00:0:100:500:300:0:0:0:0",
            "1.2.3.4",
            "0000:0000:0000:0000:0000:0000:0000:0000000000000000000000000000",
            "5f00::,5f00::,5f00::,5f00::,5f00::",
        };
        struct program program;
        char out[PROGRAM_TEXT_SIZE];

        for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
            ck_assert(program_parse(programs[i], &program));
            program_format(&program, out);
            ck_assert_str_eq(out, programs[i]);
        }
        /* The longest text there is. */
        program.n = PROGRAM_MAX;
        for (size_t i = 0; i < PROGRAM_MAX; i++) {
            memset(&program.containers[i], 0xff, sizeof program.containers[i]);
        }
        program_format(&program, out);
        ck_assert_uint_eq(strlen(out), PROGRAM_MAX * 39 + PROGRAM_MAX - 1);
        program.n = 0;
        program_format(&program, out);
        ck_assert_str_eq(out, "");

        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            ck_assert_msg(!program_parse(bad[i], &program), "%s", bad[i]);
        }
    }
END_TEST

Suite *
usid_suite(void)
{
    Suite *s = suite_create("usid");
    TCase *tc = tcase_create("usid");

    tcase_add_test(tc, shifts_like_the_rfc);
    tcase_add_test(tc, packs_what_can_be_walked);
    tcase_add_test(tc, lengths);
    tcase_add_loop_test(tc, encap_same_as_scapy, 0, sizeof programs / sizeof *programs);
    tcase_add_test(tc, text);
    suite_add_tcase(s, tc);
    return s;
}
