/* SPDX-License-Identifier: Apache-2.0
 *
 * Joining frames into super-frames.  What lib/port-gso.c makes of a super-frame must be the frames,
 * but for the UDP checksum, which is 0 before and right after.
 */
#include <netinet/in.h>
#include <stdlib.h>

#include "lib/icrc.h"
#include "lib/inet-csum.h"
#include "lib/port-uso.h"
#include "tests/unit/suites.h"
#include "tests/unit/uso-frames.h"

#define N_BUFFERS 200

static const struct uso_flow flows[] = {
    {{2, [5] = 1}, {.s6_addr = {0xfd, [15] = 1}}, 49152},
    {{2, [5] = 2}, {.s6_addr = {0xfd, [15] = 2}}, 49152},
    {{2, [5] = 1}, {.s6_addr = {0xfd, [15] = 1}}, 49153},
};

static struct packet_pool *pool;
static struct packet *frames[N_BUFFERS / 2];
static size_t n_frames;
static struct gso *gso;
static uint32_t psn;

static void
setup(void)
{
    pool = packet_pool_create(N_BUFFERS);
    gso = calloc(1, sizeof *gso);
}

static void
forget_frames(void)
{
    while (n_frames) {
        packet_put(frames[--n_frames]);
    }
}

static void
teardown(void)
{
    forget_frames();
    packet_pool_destroy(pool);
    free(gso);
}

static void
add(size_t flow, size_t len)
{
    ck_assert_uint_lt(n_frames, sizeof frames / sizeof *frames);
    frames[n_frames++] = uso_frame(pool, &flows[flow], psn_make(psn), len, psn % 2);
    psn++;
}

/* The frame that was cut out of a super-frame. */
static void
check_segment(const struct packet *p, uint8_t *segment, size_t len)
{
    uint8_t want[PACKET_ROOM];
    const struct ip6_hdr_wire *ip = (const struct ip6_hdr_wire *) (segment + 14);
    struct udp_hdr *udp = (struct udp_hdr *) (segment + 54);

    ck_assert_uint_eq(len, packet_flatten(p, want, sizeof want));
    ck_assert_uint_ne(be16_get(udp->csum), 0);
    ck_assert_uint_eq(
        be16_get(inet_csum_ip6(&ip->src, &ip->dst, IP6_NH_UDP, udp, be16_get(udp->len))), 0);
    ck_assert(icrc_ok(segment + 14, len - 14 - 4));
    udp->csum = be16_put(0);
    ck_assert_mem_eq(segment, want, len);
}

/* Joins frames[first, first + n) and cuts them again. */
static void
check_run(size_t first, size_t n)
{
    struct virtio_net_hdr vnet;
    uint8_t segment[PACKET_ROOM];
    size_t len = uso_join(frames + first, n, &vnet, gso->frame);

    ck_assert_uint_eq(vnet.hdr_len, 62);
    ck_assert(gso_start(gso, &vnet, len, sizeof segment));
    for (size_t i = first; i < first + n; i++) {
        check_segment(frames[i], segment, gso_next(gso, segment, sizeof segment));
    }
    ck_assert_uint_eq(gso_next(gso, segment, sizeof segment), 0);
}

/* Frames of {flow, length}, and how many of them go together. */
static const struct {
    struct {
        size_t flow, len;
    } frames[6];
    size_t n;
} runs[] = {
    {{{0, 200}}, 1},
    {{{0, 200}, {0, 200}}, 2},
    {{{0, 200}, {0, 200}, {0, 200}, {0, 200}}, 4},
    {{{0, 200}, {0, 200}, {0, 199}}, 3},
    {{{0, 200}, {0, 199}, {0, 199}}, 2},
    {{{0, 200}, {0, 100}, {0, 200}}, 2},
    {{{0, 200}, {0, 201}}, 1},
    {{{0, USO_FRAME_MIN}, {0, USO_FRAME_MIN}, {0, USO_FRAME_MIN}}, 3},
    {{{0, USO_FRAME_MIN}, {0, PACKET_ROOM}}, 1},
    {{{0, PACKET_ROOM}, {0, USO_FRAME_MIN}}, 2},
    {{{0, 200}, {1, 200}}, 1},
    {{{0, 200}, {2, 200}}, 1},
    {{{0, 200}, {0, 200}, {1, 200}, {0, 200}}, 2},
    {{{0, 200}, {0, 200}, {2, 100}}, 2},
    {{{1, 200}, {1, 200}, {0, 200}}, 2},
};

START_TEST(how_many)
    {
        for (size_t i = 0; runs[_i].frames[i].len; i++) {
            add(runs[_i].frames[i].flow, runs[_i].frames[i].len);
        }
        ck_assert_uint_eq(uso_count(frames, n_frames), runs[_i].n);
        ck_assert_uint_eq(uso_count(frames, 1), 1);
        if (runs[_i].n > 1) {
            check_run(0, runs[_i].n);
        }
    }
END_TEST

/* As many as a super-frame has room for: 64, and 65,535 bytes of UDP. */
START_TEST(limits)
    {
        static const size_t lens[] = {USO_FRAME_MIN, 1085, 1086, 1110, 4206, 9014, PACKET_ROOM};
        static const size_t want[] = {64, 64, 63, 62, 15, 7, 7};

        for (size_t i = 0; i < USO_MAX_FRAMES + 1; i++) {
            add(0, lens[_i]);
        }
        ck_assert_uint_eq(uso_count(frames, n_frames), want[_i]);
        check_run(0, want[_i]);
    }
END_TEST

/* Header fields, by their bytes in the frame. */
enum {
    LENGTHS = 1, /* wrong in any one frame. */
    KIND,        /* says what kind of packet it is: no super-frame of another kind. */
    FLOW,        /* the same in all frames. */
};

static int
field(size_t ofs)
{
    if (ofs == 18 || ofs == 19 || ofs == 58 || ofs == 59) {
        return LENGTHS;
    }
    if (ofs == 12 || ofs == 13 || ofs == 20 || ofs == 56 || ofs == 57 || ofs == 60 || ofs == 61) {
        return KIND;
    }
    return FLOW;
}

/* Every bit of the headers counts. */
START_TEST(headers_differ)
    {
        size_t ofs = (size_t) _i / 8;
        uint8_t bit = (uint8_t) (1 << _i % 8);
        bool version = ofs == 14 && bit >= 0x10;

        add(0, 200);
        add(0, 200);
        ck_assert_uint_eq(uso_count(frames, 2), 2);
        frames[1]->data[ofs] ^= bit;
        ck_assert_uint_eq(uso_count(frames, 2), 1);
        frames[0]->data[ofs] ^= bit;
        ck_assert_uint_eq(uso_count(frames, 2), field(ofs) == FLOW && !version ? 2 : 1);
        frames[1]->data[ofs] ^= bit;
        ck_assert_uint_eq(uso_count(frames, 2), 1);
    }
END_TEST

/* Frames that are no longer than their headers, or whose headers are not in one piece. */
START_TEST(too_short)
    {
        static const uint8_t lengths[] = {18, 58};

        add(0, 200);
        add(0, 200);
        for (size_t i = 0; i < 2; i++) {
            struct packet *whole = uso_frame(pool, flows, psn_make(9), 200, false);
            struct packet *split = packet_replicate(whole, 0, 61, 0), *saved = frames[i];

            packet_put(whole);
            frames[i] = split;
            ck_assert_uint_eq(uso_count(frames, 2), 1);
            frames[i] = saved;
            packet_put(split);
        }
        for (uint32_t len = 0; len <= 62; len++) {
            struct packet *p = uso_frame(pool, flows, psn_make(9), 200, false), *saved = frames[0];

            p->len = len;
            for (size_t i = 0; i < sizeof lengths; i++) {
                be16_t says = be16_put((uint16_t) (len - 54));
                memcpy(p->data + lengths[i], &says, sizeof says);
            }
            frames[0] = p;
            ck_assert_uint_eq(uso_count(frames, 2), 1);
            frames[0] = saved;
            saved = frames[1];
            frames[1] = p;
            ck_assert_uint_eq(uso_count(frames, 2), 1);
            frames[1] = saved;
            packet_put(p);
        }
    }
END_TEST

struct made {
    size_t flow, len;
};

/* May made[i] be joined with what begins with made[first]? */
static bool
model_joins(const struct made *made, size_t first, size_t i)
{
    size_t segment = made[first].len - 62;

    return made[i].flow == made[first].flow && made[i].len <= made[first].len
           && made[i - 1].len == made[first].len && i - first < 64
           && (i - first + 1) * segment + 8 <= 65535;
}

START_TEST(random_vectors)
    {
        static const size_t lens[] = {USO_FRAME_MIN, 600, 1110, 4206, 9014};
        unsigned short seed[3] = {7, 0, (unsigned short) _i};
        struct made made[sizeof frames / sizeof *frames];
        size_t n = 1 + (size_t) nrand48(seed) % (sizeof made / sizeof *made);

        struct made next = {0, *lens};

        for (size_t i = 0; i < n; i++) {
            next.flow = nrand48(seed) % 8 ? next.flow : (size_t) nrand48(seed) % 3;
            next.len = nrand48(seed) % 8 ? next.len : lens[nrand48(seed) % 5];
            made[i] = next;
            add(next.flow, next.len);
        }
        for (size_t i = 0, count; i < n; i += count) {
            count = uso_count(frames + i, n - i);
            size_t want = 1;
            while (i + want < n && model_joins(made, i, i + want)) {
                want++;
            }
            ck_assert_uint_eq(count, want);
            if (count > 1) {
                check_run(i, count);
            }
        }
    }
END_TEST

Suite *
port_uso_suite(void)
{
    Suite *s = suite_create("port_uso");
    TCase *tc = tcase_create("port_uso");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, how_many, 0, sizeof runs / sizeof *runs);
    tcase_add_loop_test(tc, limits, 0, 7);
    tcase_add_loop_test(tc, headers_differ, 0, 62 * 8);
    tcase_add_test(tc, too_short);
    tcase_add_loop_test(tc, random_vectors, 0, 100);
    suite_add_tcase(s, tc);
    return s;
}
