/* SPDX-License-Identifier: Apache-2.0
 *
 * dp-flooder: sends RoCE packets, bare or tunnelled, by a packet socket, each with the next PSN and
 * a valid ICRC.
 *
 * Frames are made elsewhere (bench/dp/frames.py), one for each group or answering branch.  Of each
 * in turn a run of packets is sent, with consecutive PSNs; then those of the next.  Packets leave
 * in bursts of so many a system call.  A burst is due when the rate says so; one that is late
 * leaves at once, so that the rate is kept on average.
 *
 * At the end one line of JSON says how many the kernel has taken.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/icrc.h"
#include "lib/wire.h"

#define FRAME_MAX 9216

static const char usage[] =
    "usage: dp-flooder -n PACKETS [-b BURST] [-k RUN] [-r RATE] [-p PSN] <FRAMES\n"
    "\n"
    "  -n PACKETS  how many, in all\n"
    "  -b BURST    packets in a system call (64; 1..4096)\n"
    "  -k RUN      packets of one frame before those of the next (BURST)\n"
    "  -r RATE     packets a second (0: as fast as it goes)\n"
    "  -p PSN      of each frame's first packet (0)\n"
    "\n"
    "FRAMES, a line each: NETDEV, offset of the BTH, the frame as hexadecimal digits.  The innermost\n"
    "IPv6 header is directly in front of UDP header and BTH.\n";

struct frame {
    int ifindex;
    size_t bth_ofs;
    size_t len;
    uint32_t psn; /* of the next packet. */
    uint8_t *bytes;
};

struct options {
    uint64_t n;
    unsigned long burst, run, rate, psn;
};

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("dp-flooder: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

static void *
must_alloc(size_t n, size_t size)
{
    void *p = calloc(n, size);

    if (!p) {
        fail("out of memory");
    }
    return p;
}

static unsigned long
parse_number(char option, const char *text, unsigned long min, unsigned long max)
{
    char *end;
    unsigned long v = strtoul(text, &end, 0);

    if (!*text || *end || *text == '-' || v < min || v > max) {
        fail("-%c %s: must be %lu..%lu", option, text, min, max);
    }
    return v;
}

static struct options
parse_options(int argc, char *argv[])
{
    struct options o = {.burst = 64};
    int c;

    while ((c = getopt(argc, argv, "n:b:k:r:p:h")) != -1) {
        switch (c) {
        case 'n': o.n = parse_number('n', optarg, 1, UINT32_MAX); break;
        case 'b': o.burst = parse_number('b', optarg, 1, 4096); break;
        case 'k': o.run = parse_number('k', optarg, 1, UINT32_MAX); break;
        case 'r': o.rate = parse_number('r', optarg, 0, 100000000); break;
        case 'p': o.psn = parse_number('p', optarg, 0, PSN_MASK); break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(1);
        }
    }
    if (!o.n || optind != argc) {
        fputs(usage, stderr);
        exit(1);
    }
    o.run = o.run ? o.run : o.burst;
    return o;
}

/* One line of FRAMES. */
static struct frame
parse_frame(char *line, size_t number)
{
    char *netdev = strtok(line, " \n"), *ofs = strtok(NULL, " \n"), *hex = strtok(NULL, " \n");
    struct frame f = {0};
    size_t digits = hex ? strlen(hex) : 0;

    if (!hex || digits % 2 || digits / 2 > FRAME_MAX) {
        fail("frame %zu: not NETDEV OFFSET HEX, or longer than %d bytes", number, FRAME_MAX);
    }
    f.ifindex = (int) if_nametoindex(netdev);
    if (!f.ifindex) {
        fail("frame %zu: %s: %s", number, netdev, strerror(errno));
    }
    f.len = digits / 2;
    f.bth_ofs = strtoul(ofs, NULL, 10);
    if (f.bth_ofs < sizeof(struct eth_hdr) + IP6_HDR_LEN + sizeof(struct udp_hdr)
        || f.bth_ofs + sizeof(struct bth) + ROCE_ICRC_LEN > f.len) {
        fail("frame %zu: no BTH at %s in %zu bytes", number, ofs, f.len);
    }
    f.bytes = must_alloc(f.len, 1);
    for (size_t i = 0; i < f.len; i++) {
        if (sscanf(&hex[2 * i], "%2hhx", &f.bytes[i]) != 1) {
            fail("frame %zu: not hexadecimal", number);
        }
    }
    const uint8_t *ip = f.bytes + f.bth_ofs - sizeof(struct udp_hdr) - IP6_HDR_LEN;
    if (!icrc_ok(ip, (size_t) (f.bytes + f.len - ROCE_ICRC_LEN - ip))) {
        fail("frame %zu: its ICRC is wrong", number);
    }
    return f;
}

static struct frame *
read_frames(size_t *n, uint32_t psn)
{
    struct frame *frames = NULL;
    char *line = NULL;
    size_t size = 0;

    for (*n = 0; getline(&line, &size, stdin) > 0; ++*n) {
        frames = realloc(frames, (*n + 1) * sizeof *frames);
        if (!frames) {
            fail("out of memory");
        }
        frames[*n] = parse_frame(line, *n + 1);
        frames[*n].psn = psn;
    }
    free(line);
    if (!*n) {
        fail("no frame on standard input");
    }
    return frames;
}

/* Writes the frame's next packet to 'out'. */
static void
stamp(struct frame *f, uint8_t *out)
{
    const size_t psn_ofs = f->bth_ofs + offsetof(struct bth, psn);
    const size_t icrc_ofs = f->len - ROCE_ICRC_LEN;
    const be24_t psn = be24_put(f->psn);
    uint8_t diff[sizeof psn.b];

    memcpy(out, f->bytes, f->len);
    memcpy(out + psn_ofs, psn.b, sizeof psn.b);
    for (size_t i = 0; i < sizeof diff; i++) {
        diff[i] = f->bytes[psn_ofs + i] ^ psn.b[i];
    }
    icrc_store(out + icrc_ofs,
               icrc_load(f->bytes + icrc_ofs)
                   ^ icrc_shift(icrc_diff(diff, sizeof diff), icrc_ofs - psn_ofs - sizeof diff));
    f->psn = (f->psn + 1) & PSN_MASK;
}

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}

static void
sleep_until(uint64_t when)
{
    const struct timespec ts = {(time_t) (when / 1000000000), (long) (when % 1000000000)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR) {
    }
}

/* Sends the first 'n'; returns how many the kernel has taken. */
static uint64_t
send_burst(int fd, struct mmsghdr *msgs, unsigned int n)
{
    uint64_t n_sent = 0;

    for (unsigned int at = 0; at < n;) {
        int sent = sendmmsg(fd, msgs + at, n - at, 0);

        if (sent < 0 && errno != ENOBUFS && errno != EAGAIN) {
            fail("sendmmsg: %s", strerror(errno));
        }
        n_sent += sent > 0 ? (uint64_t) sent : 0;
        at += sent > 0 ? (unsigned int) sent : 1; /* one for which there was no room. */
    }
    return n_sent;
}

int
main(int argc, char *argv[])
{
    const struct options o = parse_options(argc, argv);
    size_t n_frames, current = 0, in_run = 0;
    struct frame *frames = read_frames(&n_frames, (uint32_t) o.psn);
    struct mmsghdr *msgs = must_alloc(o.burst, sizeof *msgs);
    struct sockaddr_ll *to = must_alloc(o.burst, sizeof *to);
    struct iovec *iov = must_alloc(o.burst, sizeof *iov);
    uint8_t *room = must_alloc(o.burst, FRAME_MAX);
    uint64_t n_sent = 0, n_made = 0;
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd < 0) {
        fail("packet socket: %s", strerror(errno));
    }
    const int size = 32 << 20;
    (void) setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    (void) prctl(PR_SET_TIMERSLACK, 1UL);
    for (size_t i = 0; i < o.burst; i++) {
        iov[i].iov_base = room + i * FRAME_MAX;
        to[i] = (struct sockaddr_ll){.sll_family = AF_PACKET, .sll_halen = 6};
        msgs[i].msg_hdr = (struct msghdr){
            .msg_name = &to[i], .msg_namelen = sizeof to[i], .msg_iov = &iov[i], .msg_iovlen = 1};
    }

    uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (n_made < o.n) {
        unsigned int n = (unsigned int) (o.n - n_made < o.burst ? o.n - n_made : o.burst);

        for (unsigned int i = 0; i < n; i++) {
            struct frame *f = &frames[current];

            stamp(f, iov[i].iov_base);
            iov[i].iov_len = f->len;
            to[i].sll_ifindex = f->ifindex;
            if (++in_run == o.run) {
                in_run = 0;
                current = (current + 1) % n_frames;
            }
        }
        if (o.rate) {
            sleep_until(start + n_made * 1000000000 / o.rate);
        }
        n_sent += send_burst(fd, msgs, n);
        n_made += n;
    }
    printf("{\"made\": %" PRIu64 ", \"sent\": %" PRIu64 ", \"wall_ns\": %" PRIu64
           ", \"cpu_ns\": %" PRIu64 "}\n",
           n_made, n_sent, clock_ns(CLOCK_MONOTONIC) - start,
           clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu);
    for (size_t i = 0; i < n_frames; i++) {
        free(frames[i].bytes);
    }
    free(frames);
    free(msgs);
    free(to);
    free(iov);
    free(room);
    close(fd);
    return 0;
}
