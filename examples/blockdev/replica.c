/* SPDX-License-Identifier: Apache-2.0
 *
 * A replica of a disk: takes writes from a group, and keeps them in a file.
 *
 *     blockdev-replica GROUP HOST SOURCE IMAGE
 *
 * The group's RDMA WRITEs put data into this program's memory, where they would
 * be lost with it: HOST's RDMA device acknowledges them all the same.  So each
 * write is put into the file, then fdatasync() is called, and then the source is
 * told by an ordinary queue pair.
 *
 * IMAGE.generation says what the image is worth: "NUMBER clean" or "NUMBER open".
 *
 * A session begins when the source takes the connection and ends when it is
 * gone.  The next one begins with new queue pairs, so nothing of an old one is
 * left.  The program may be killed at any time.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <rocecast.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link.h"

#define PATIENCE_MSEC 30000
#define RETRY_MSEC    200
/* A receive for each slot, and for writes that write nothing. */
#define N_RECEIVES    (2 * N_SLOTS)

static const char *host, *source;
static struct rocecast *registry;
static struct rocecast_group *group;
static struct in6_addr own_address, source_address;
static volatile sig_atomic_t told_to_end;

static int image;
static char generation_file[4096];
static uint64_t image_size; /* 0: the image is new. */
static uint64_t generation;
static bool clean;

/* Of a session. */
static struct rdma_event_channel *events;
static struct link *link_; /* NULL: the source is not connected. */
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char *ring;
static struct rocecast_request *joining; /* NULL: not yet, or done. */
static bool registered;                  /* with the group, or about to be. */
static bool came;                        /* something has come from the group. */
static uint64_t next;                    /* write that comes next; those before are durable. */
static bool untold;                      /* the source does not know 'next'. */
static unsigned char *fresh; /* a bit for each block: written by the group in this session. */

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "blockdev-replica: ");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

static void
end(int signal_number)
{
    (void) signal_number;
    told_to_end = 1;
}

/*
 * The image.
 */

static void
save_generation(void)
{
    char new_file[sizeof generation_file + 4];

    snprintf(new_file, sizeof new_file, "%s.new", generation_file);
    FILE *f = fopen(new_file, "w");
    if (!f || fprintf(f, "%" PRIu64 " %s\n", generation, clean ? "clean" : "open") < 0 || fflush(f)
        || fsync(fileno(f)) || fclose(f) || rename(new_file, generation_file)) {
        fail("%s: %s", generation_file, strerror(errno));
    }
}

static void
open_image(const char *name)
{
    char word[6];
    struct stat st;

    image = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (image < 0 || fstat(image, &st)) {
        fail("%s: %s", name, strerror(errno));
    }
    image_size = (uint64_t) st.st_size;
    if ((size_t) snprintf(generation_file, sizeof generation_file, "%s.generation", name)
        >= sizeof generation_file) {
        fail("%s: the name is too long", name);
    }
    FILE *f = fopen(generation_file, "r");
    clean = !image_size; /* one that nobody knows may be anything. */
    if (f) {
        if (fscanf(f, "%" SCNu64 " %5s", &generation, word) != 2
            || (strcmp(word, "clean") && strcmp(word, "open"))) {
            fail("%s: is to have a number and 'clean' or 'open'", generation_file);
        }
        clean = !strcmp(word, "clean");
        fclose(f);
    } else if (errno != ENOENT) {
        fail("%s: %s", generation_file, strerror(errno));
    }
}

/* Are these bytes of the disk? */
static bool
is_inside(uint64_t offset, uint32_t length)
{
    return offset <= image_size && length <= image_size - offset;
}

static void
put(const void *data, uint32_t length, uint64_t offset)
{
    if (pwrite(image, data, length, (off_t) offset) != (ssize_t) length) {
        fail("image: %s", errno ? strerror(errno) : "short write");
    }
}

static void
sync_image(void)
{
    if (fdatasync(image)) {
        fail("image: %s", strerror(errno));
    }
}

static bool
is_fresh(uint64_t block)
{
    return fresh[block / 8] >> block % 8 & 1;
}

/*
 * Messages from the source.
 */

static void
take_size(uint64_t size)
{
    if (image_size && image_size != size) {
        fail("the image has %" PRIu64 " bytes, and the disk %" PRIu64, image_size, size);
    }
    if (!image_size && ftruncate(image, (off_t) size)) {
        fail("image: %s", strerror(errno));
    }
    image_size = size;
    free(fresh);
    fresh = calloc(size / BLOCK_SIZE / 8 + 1, 1);
    if (!fresh) {
        fail("out of memory");
    }
}

static bool
answer_read(const struct message *m)
{
    struct message *data = link_prepare(link_);

    if (!data || !is_inside(m->offset, m->length)) {
        return false;
    }
    data->type = MSG_DATA;
    data->value = m->value;
    data->offset = m->offset;
    data->length = m->length;
    if (pread(image, message_data(data), m->length, (off_t) m->offset) != (ssize_t) m->length) {
        fail("image: cannot read %" PRIu32 " bytes at %" PRIu64, m->length, m->offset);
    }
    link_send(link_, data, data->length);
    return true;
}

/* The data may be older than what the group has brought, and are not newer than what it will. */
static bool
resync(const struct message *m)
{
    const char *data = message_data(m);

    if (m->offset % BLOCK_SIZE || m->length % BLOCK_SIZE || !is_inside(m->offset, m->length)) {
        return false;
    }
    for (uint32_t done = 0; done < m->length; done += BLOCK_SIZE) {
        if (!is_fresh((m->offset + done) / BLOCK_SIZE)) {
            put(data + done, BLOCK_SIZE, m->offset + done);
        }
    }
    sync_image();
    return link_say(link_, MSG_WRITTEN, 0, m->offset, 0);
}

static void
post_receives(unsigned n)
{
    struct ibv_recv_wr *bad, wr = {.num_sge = 0};

    while (n--) {
        if (ibv_post_recv(qp, &wr, &bad)) {
            fail("receives: %s", strerror(errno));
        }
    }
}

/* Registers with the group.  The request goes on in take_joined(). */
static void
join(void)
{
    if (rocecast_qp_init(qp, ROCECAST_RECEIVER)) {
        fail("%s", rocecast_error());
    }
    post_receives(N_RECEIVES);
    if (rocecast_member_join_start(group, host, qp, mr, 0, PATIENCE_MSEC, &joining)) {
        fail("%s", rocecast_error());
    }
    registered = true;
}

static bool
take_message(void *aux, const struct message *m)
{
    (void) aux;
    switch (m->type) {
    case MSG_WELCOME: take_size(m->offset); return true;
    case MSG_JOIN:
        if (!fresh || registered) {
            return false;
        }
        next = m->value;
        join();
        return true;
    case MSG_READ: return answer_read(m);
    case MSG_RESYNC: return fresh && resync(m);
    case MSG_SAVE:
        generation = m->value;
        clean = m->flags & MSG_CLEAN;
        save_generation();
        return link_say(link_, MSG_SAVED, generation, 0, 0);
    default: return false;
    }
}

/*
 * Writes from the group.
 */

/* Puts a write into the image.  False: it is not the one that the immediate says. */
static bool
apply(uint32_t imm)
{
    const char *slot = ring + next % N_SLOTS * SLOT_SIZE;
    struct slot_header h;

    memcpy(&h, slot, sizeof h);
    uint64_t offset = be64toh(h.offset);
    uint32_t length = be32toh(h.length);
    if ((next & IMM_SEQUENCE) != imm || be64toh(h.sequence) != next || length > SLOT_DATA
        || offset % BLOCK_SIZE || length % BLOCK_SIZE || !is_inside(offset, length)) {
        return false;
    }
    put(slot + sizeof h, length, offset);
    for (uint64_t b = offset / BLOCK_SIZE; b < (offset + length) / BLOCK_SIZE; b++) {
        fresh[b / 8] |= (unsigned char) (1 << b % 8);
    }
    next++;
    return true;
}

/* Takes what there is, and makes it durable together. */
static bool
take_writes(void)
{
    struct ibv_wc wc[N_RECEIVES];
    struct ibv_cq *which;
    uint64_t before = next;
    void *context;

    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    if (poll(&fd, 1, 0) == 1 && !ibv_get_cq_event(channel, &which, &context)) {
        ibv_ack_cq_events(which, 1);
        ibv_req_notify_cq(cq, 0);
    }
    int n = ibv_poll_cq(cq, N_RECEIVES, wc);
    if (n > 0 && !came && wc[0].status == IBV_WC_SUCCESS) {
        /* The low bits say how far it is from the write that the source named. */
        next += (ntohl(wc[0].imm_data) - next) & IMM_SEQUENCE;
        before = next;
        came = link_say(link_, MSG_FIRST, next, 0, 0);
        if (!came) {
            return false;
        }
    }
    for (int i = 0; i < n; i++) {
        if (wc[i].status != IBV_WC_SUCCESS) {
            return false;
        }
        if (!(ntohl(wc[i].imm_data) & IMM_IDLE) && !apply(ntohl(wc[i].imm_data))) {
            fprintf(stderr, "blockdev-replica: write %" PRIu64 " is not in its slot\n", next);
            return false;
        }
    }
    if (next != before) {
        sync_image();
        untold = true;
    }
    if (n > 0) {
        post_receives((unsigned) n);
    }
    untold = untold && !link_say(link_, MSG_DURABLE, next, 0, 0);
    return true;
}

/*
 * Sessions.
 */

/* False: it has failed for good; only another session helps. */
static bool
take_joined(void)
{
    int status = joining ? rocecast_request_poll(joining, NULL) : 0;

    if (!joining || status == EINPROGRESS) {
        return true;
    }
    if (status && status != ESTALE) {
        fprintf(stderr, "blockdev-replica: %s\n", rocecast_error());
    }
    rocecast_request_close(joining);
    joining = NULL;
    if (status == ESTALE) { /* an epoch has begun that this program had not heard of. */
        join();
        return true;
    }
    return !status;
}

/* False: the group goes on without this member, or not at all. */
static bool
take_events(void)
{
    struct rocecast_event e = {.size = sizeof e};
    bool ok = true;

    while (!rocecast_next_event(group, &e) && e.type != ROCECAST_EVENT_NONE) {
        bool is_own = !strcmp(e.host, host);
        bool is_out = e.type == ROCECAST_EVENT_MEMBER_LOST || e.type == ROCECAST_EVENT_MEMBER_FAILED
                      || e.type == ROCECAST_EVENT_RESTART_NEEDED;

        if (registered && (e.type == ROCECAST_EVENT_EPOCH || (is_own && is_out))) {
            ok = false;
        }
    }
    return ok;
}

static bool
wait_event(enum rdma_cm_event_type wanted)
{
    struct rdma_cm_event *e;

    if (rdma_get_cm_event(events, &e)) {
        return false;
    }
    bool ok = e->event == wanted;
    rdma_ack_cm_event(e);
    return ok;
}

/* Has the source gone? */
static bool
is_disconnected(void)
{
    struct pollfd fd = {.fd = events->fd, .events = POLLIN};

    return poll(&fd, 1, 0) == 1 && !wait_event(RDMA_CM_EVENT_ESTABLISHED);
}

static bool
resolve(struct rdma_cm_id *id)
{
    struct sockaddr_in6 own = {.sin6_family = AF_INET6, .sin6_addr = own_address};
    struct sockaddr_in6 peer = {
        .sin6_family = AF_INET6, .sin6_addr = source_address, .sin6_port = htons(BLOCKDEV_PORT)};

    return !rdma_resolve_addr(id, (struct sockaddr *) &own, (struct sockaddr *) &peer, 1000)
           && wait_event(RDMA_CM_EVENT_ADDR_RESOLVED) && !rdma_resolve_route(id, 1000)
           && wait_event(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* What the group writes into, and its queue pair. */
static void
make_ring(struct ibv_context *ctx)
{
    channel = ibv_create_comp_channel(ctx);
    cq = channel ? ibv_create_cq(ctx, N_RECEIVES, NULL, channel, 0) : NULL;
    ring = aligned_alloc(BLOCK_SIZE, RING_SIZE);
    if (!cq || !ring || ibv_req_notify_cq(cq, 0)) {
        fail("completion queue: %s", strerror(errno));
    }
    memset(ring, 0xff, RING_SIZE); /* no slot has a header that could be one. */
    mr = ibv_reg_mr(pd, ring, RING_SIZE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    struct ibv_qp_init_attr attr = {.send_cq = cq,
                                    .recv_cq = cq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_recv_wr = N_RECEIVES}};
    qp = mr ? ibv_create_qp(pd, &attr) : NULL;
    if (!qp) {
        fail("queue pair: %s", strerror(errno));
    }
}

/* False: the source is not there. */
static bool
begin_session(void)
{
    char name[HOST_NAME_SIZE] = "";
    struct rdma_conn_param param = {.private_data = name,
                                    .private_data_len = sizeof name,
                                    .retry_count = 7,
                                    .rnr_retry_count = 7};
    struct rdma_cm_id *id;

    events = rdma_create_event_channel();
    if (!events || rdma_create_id(events, &id, NULL, RDMA_PS_TCP)) {
        fail("RDMA-CM: %s", strerror(errno));
    }
    if (!resolve(id)) {
        rdma_destroy_id(id);
        return false;
    }
    pd = ibv_alloc_pd(id->verbs);
    struct link *l = pd ? link_create(id, pd) : NULL;
    if (!l) {
        fail("queue pair: %s", strerror(errno));
    }
    make_ring(id->verbs);
    link_ = l;
    strncpy(name, host, sizeof name - 1);
    return !rdma_connect(id, &param) && wait_event(RDMA_CM_EVENT_ESTABLISHED)
           && link_say(link_, MSG_HELLO, generation, image_size, clean ? MSG_CLEAN : 0);
}

static void
end_session(void)
{
    rocecast_request_close(joining);
    joining = NULL;
    registered = came = untold = false;
    link_destroy(link_);
    link_ = NULL;
    if (qp) {
        ibv_destroy_qp(qp);
        ibv_dereg_mr(mr);
        ibv_destroy_cq(cq);
        ibv_destroy_comp_channel(channel);
        free(ring);
        qp = NULL;
    }
    if (pd) {
        ibv_dealloc_pd(pd);
        pd = NULL;
    }
    rdma_destroy_event_channel(events);
}

static void
serve(void)
{
    bool ok = true;

    while (ok && !told_to_end) {
        struct pollfd fds[] = {
            {.fd = events->fd, .events = POLLIN},
            {.fd = link_fd(link_), .events = POLLIN},
            {.fd = channel->fd, .events = POLLIN},
            {.fd = rocecast_fd(group), .events = POLLIN},
            {.fd = joining ? rocecast_request_fd(joining) : -1, .events = POLLIN},
        };
        poll(fds, sizeof fds / sizeof *fds, untold ? 1 : 1000);
        ok = !is_disconnected() && link_run(link_, take_message, NULL) && take_joined()
             && take_writes() && take_events();
    }
}

int
main(int argc, char *argv[])
{
    struct sigaction sa = {.sa_handler = end};

    if (argc != 5) {
        fprintf(stderr, "usage: blockdev-replica GROUP HOST SOURCE IMAGE\n");
        return 1;
    }
    host = argv[2];
    source = argv[3];
    if (strlen(host) >= HOST_NAME_SIZE) {
        fail("%s: the name is too long", host);
    }
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    open_image(argv[4]);
    if (rocecast_open(NULL, PATIENCE_MSEC, &registry)
        || rocecast_group_open(registry, argv[1], PATIENCE_MSEC, &group)
        || rocecast_host_address(registry, host, PATIENCE_MSEC, &own_address)
        || rocecast_host_address(registry, source, PATIENCE_MSEC, &source_address)) {
        fail("%s", rocecast_error());
    }
    while (!told_to_end) {
        if (begin_session()) {
            serve();
        }
        end_session();
        if (!told_to_end) {
            poll(NULL, 0, RETRY_MSEC);
        }
    }
    rocecast_close(registry);
    return 0;
}
