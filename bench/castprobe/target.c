/* SPDX-License-Identifier: Apache-2.0
 *
 * The end with the device (see target.h).
 *
 * A request is {"op": NAME, ...}; its arguments are numbers, but an address.  What does not fit is
 * refused, since the other end may be anybody.
 */
#include "bench/castprobe/target.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>

#include "bench/castprobe/control.h"
#include "bench/castprobe/device.h"

struct target {
    struct device device;
    int hear_fd; /* UDP; to see which packets reach this machine. */
};

static json_t *
answer_error(const char *text)
{
    return json_pack("{s:s}", "error", text);
}

static json_t *
answer_done(struct device *d, bool done)
{
    return done ? json_object() : answer_error(d->error);
}

static json_t *
do_hello(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    char address[INET6_ADDRSTRLEN], driver[64];
    struct utsname host;

    (void) request;
    uname(&host);
    device_driver(d, driver, sizeof driver);
    inet_ntop(AF_INET6, &d->gid, address, sizeof address);
    return json_pack("{s:i, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:i}", "version",
                     CONTROL_VERSION, "name", ibv_get_device_name(d->ctx->device), "driver", driver,
                     "firmware", d->attr.fw_ver, "address", address, "vendor_id",
                     (json_int_t) d->attr.vendor_id, "part_id", (json_int_t) d->attr.vendor_part_id,
                     "kernel", host.release, "machine", host.machine, "mtu", (int) d->mtu);
}

static json_t *
do_qp(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    struct device_qp q;
    const char *peer;
    int dest_qpn, start_psn, mtu;

    if (json_unpack(request, "{s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "peer", &peer,
                    "dest_qpn", &dest_qpn, "start_psn", &start_psn, "mtu", &mtu, "timeout",
                    &q.timeout, "retry_cnt", &q.retry_cnt, "rnr_retry", &q.rnr_retry,
                    "min_rnr_timer", &q.min_rnr_timer, "traffic_class", &q.traffic_class)
        || inet_pton(AF_INET6, peer, &q.peer) != 1) {
        return answer_error("qp: an argument is missing, or not of its kind");
    }
    q.dest_qpn = (uint32_t) dest_qpn & 0xffffff;
    q.start_psn = (uint32_t) start_psn & 0xffffff;
    q.mtu = (uint32_t) mtu;
    if (!device_qp_create(d, &q)) {
        return answer_error(d->error);
    }
    return json_pack("{s:I, s:I, s:I}", "qpn", (json_int_t) d->qp->qp_num, "rkey",
                     (json_int_t) d->mr->rkey, "va", (json_int_t) (uintptr_t) d->buffer);
}

static json_t *
do_recv(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    int n, len;

    if (json_unpack(request, "{s:i, s:i}", "n", &n, "len", &len) || !d->qp || n < 0
        || n > DEVICE_WRS || len < 0 || len > (int) DEVICE_BUFFER) {
        return answer_error("recv: no queue pair, or too much");
    }
    return answer_done(d, device_post_recv(d, (unsigned) n, (uint32_t) len));
}

static json_t *
do_send(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    int n, len, is_send;

    if (json_unpack(request, "{s:i, s:i, s:b}", "n", &n, "len", &len, "send", &is_send) || !d->qp
        || n < 0 || n > DEVICE_WRS || len < 0 || len > (int) DEVICE_BUFFER) {
        return answer_error("send: no queue pair, or too much");
    }
    return answer_done(d, device_post_send(d, is_send ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
                                           (unsigned) n, (uint32_t) len));
}

static json_t *
do_poll(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    struct ibv_wc wc[DEVICE_WRS];
    json_t *list = json_array();
    int n, ms;

    if (json_unpack(request, "{s:i, s:i}", "n", &n, "ms", &ms) || n < 0 || n > DEVICE_WRS || ms < 0
        || ms > 60000) {
        json_decref(list);
        return answer_error("poll: too much");
    }
    unsigned got = device_poll(d, wc, (unsigned) n, (unsigned) ms);
    for (unsigned i = 0; i < got; i++) {
        json_array_append_new(list, json_integer(wc[i].status));
    }
    return json_pack("{s:o}", "completions", list);
}

/* Of the buffer's bytes: the value of all, or -1 if they are not alike. */
static json_t *
do_memory(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    int ofs, len;

    if (json_unpack(request, "{s:i, s:i}", "ofs", &ofs, "len", &len) || ofs < 0 || len < 1
        || ofs > (int) DEVICE_BUFFER || len > (int) DEVICE_BUFFER - ofs) {
        return answer_error("memory: not in the buffer");
    }
    const uint8_t *b = d->buffer + ofs;
    bool alike = !memcmp(b, b + 1, (size_t) len - 1);
    return json_pack("{s:i}", "byte", alike ? *b : -1);
}

static json_t *
do_state(struct target *t, json_t *request)
{
    struct device *d = &t->device;
    (void) request;
    return json_pack("{s:i}", "state", device_qp_state(d));
}

/* How many datagrams have come from this address since it was asked last. */
static json_t *
do_hear(struct target *t, json_t *request)
{
    struct in6_addr address;
    struct sockaddr_in6 from;
    socklen_t len = sizeof from;
    const char *text;
    char byte;
    int n = 0;

    if (json_unpack(request, "{s:s}", "address", &text)
        || inet_pton(AF_INET6, text, &address) != 1) {
        return answer_error("hear: not an address");
    }
    while (recvfrom(t->hear_fd, &byte, 1, MSG_DONTWAIT, (struct sockaddr *) &from, &len) >= 0) {
        n += !memcmp(&from.sin6_addr, &address, sizeof address);
    }
    return json_pack("{s:i}", "n", n);
}

static const struct {
    const char *name;
    json_t *(*function)(struct target *, json_t *request);
} operations[] = {
    {"hello", do_hello}, {"qp", do_qp},         {"recv", do_recv},   {"send", do_send},
    {"poll", do_poll},   {"memory", do_memory}, {"state", do_state}, {"hear", do_hear},
};

static json_t *
answer(struct target *t, json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "op"));

    for (size_t i = 0; name && i < sizeof operations / sizeof *operations; i++) {
        if (!strcmp(name, operations[i].name)) {
            return operations[i].function(t, request);
        }
    }
    return answer_error("unknown operation");
}

static void
serve(struct target *t, struct control *c)
{
    json_t *request;
    bool there = true;

    while (there && (request = control_receive(c))) {
        there = control_send(c, answer(t, request));
        json_decref(request);
    }
    device_qp_destroy(&t->device);
}

int
target_run(const char *name, int gid_index, uint16_t port, bool once)
{
    char address[INET6_ADDRSTRLEN];
    struct target t;
    struct control c;
    bool well = true;

    if (!device_open(&t.device, name, gid_index)) {
        fprintf(stderr, "castprobe: %s\n", t.device.error);
        return 2;
    }
    t.hear_fd = control_hear(port);
    int listener = t.hear_fd < 0 ? -1 : control_listen(port);
    if (listener < 0) {
        fprintf(stderr, "castprobe: port %u: %s\n", port, strerror(errno));
        device_close(&t.device);
        return 2;
    }
    inet_ntop(AF_INET6, &t.device.gid, address, sizeof address);
    printf("%s, %s: waiting on port %u\n", ibv_get_device_name(t.device.ctx->device), address,
           port);
    fflush(stdout);
    do {
        well = control_accept(&c, listener);
        if (well) {
            serve(&t, &c);
            control_close(&c);
        } else {
            fprintf(stderr, "castprobe: port %u: %s\n", port, strerror(errno));
        }
    } while (well && !once);
    device_close(&t.device);
    return well ? 0 : 2;
}
