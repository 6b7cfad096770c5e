/* SPDX-License-Identifier: Apache-2.0
 *
 * What behaviours are tried with (see probe.h).
 */
#include "bench/castprobe/probe.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <string.h>

#include "lib/roce.h"

#define PATIENCE_MS     3000 /* for what should come. */
#define MAX_COMPLETIONS 16   /* of a check. */

static bool __attribute__((format(printf, 2, 3)))
probe_fail(struct probe *p, const char *format, ...)
{
    va_list args;

    if (!*p->error) {
        va_start(args, format);
        vsnprintf(p->error, sizeof p->error, format, args);
        va_end(args);
    }
    return false;
}

static bool
failed(const struct probe *p)
{
    return *p->error;
}

json_t *
probe_ask(struct probe *p, json_t *request)
{
    if (failed(p)) {
        json_decref(request);
        return NULL;
    }
    json_t *answer = control_send(&p->control, request) ? control_receive(&p->control) : NULL;
    if (!answer) {
        p->gone = true;
        probe_fail(p, "the target has closed the connection");
        return NULL;
    }
    const char *error = json_string_value(json_object_get(answer, "error"));
    if (error) {
        probe_fail(p, "the target says: %s", error);
        json_decref(answer);
        return NULL;
    }
    return answer;
}

/* A number of the answer; takes the request. */
static int
ask_number(struct probe *p, json_t *request, const char *key)
{
    json_t *answer = probe_ask(p, request);
    int value = (int) json_integer_value(json_object_get(answer, key));

    json_decref(answer);
    return value;
}

void
probe_qp(struct probe *p, struct probe_qp q)
{
    char address[INET6_ADDRSTRLEN];

    /* Packets of the queue pair before have another destination. */
    p->peer_qpn++;
    p->start = psn_make(q.start_psn);
    inet_ntop(AF_INET6, &p->peer.own, address, sizeof address);
    json_t *answer =
        probe_ask(p, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "op", "qp",
                               "peer", address, "dest_qpn", (int) p->peer_qpn, "start_psn",
                               (int) q.start_psn, "mtu", (int) p->mtu, "timeout", q.timeout,
                               "retry_cnt", q.retry_cnt, "rnr_retry", q.rnr_retry, "min_rnr_timer",
                               PROBE_MIN_RNR_TIMER, "traffic_class", q.traffic_class));
    p->qpn = (uint32_t) json_integer_value(json_object_get(answer, "qpn"));
    p->rkey = (uint32_t) json_integer_value(json_object_get(answer, "rkey"));
    p->va = (uint64_t) json_integer_value(json_object_get(answer, "va"));
    json_decref(answer);
}

void
probe_recv(struct probe *p, int n)
{
    json_decref(
        probe_ask(p, json_pack("{s:s, s:i, s:i}", "op", "recv", "n", n, "len", (int) p->mtu)));
}

void
probe_post(struct probe *p, int n, int packets, bool is_send)
{
    json_decref(probe_ask(p, json_pack("{s:s, s:i, s:i, s:b}", "op", "send", "n", n, "len",
                                       packets * (int) p->mtu, "send", is_send)));
}

struct craft
craft_request(const struct probe *p, uint8_t opcode, int psn)
{
    return (struct craft){
        .opcode = opcode,
        .dest_qpn = p->qpn,
        .psn = psn_add(p->start, psn),
        .ack_req = true,
        .pkey = ROCE_PKEY_DEFAULT,
        .mig_req = true,
        .va = p->va,
        .rkey = p->rkey,
        .dma_len = PROBE_LEN,
        .fill = PROBE_FILL,
        .len = PROBE_LEN,
        .hop_limit = 64,
    };
}

struct craft
craft_write(const struct probe *p, int psn)
{
    return craft_request(p, RC_WRITE_ONLY, psn);
}

struct craft
craft_response(const struct probe *p, uint8_t syndrome, int psn)
{
    struct craft c = craft_request(p, RC_ACK, psn);

    c.ack_req = false;
    c.len = 0;
    c.syndrome = syndrome;
    return c;
}

void
probe_send(struct probe *p, struct craft c)
{
    if (!failed(p) && !peer_send(&p->peer, &c)) {
        probe_fail(p, "%s", p->peer.error);
    }
}

void
probe_send_message(struct probe *p, int psn, int n)
{
    for (int i = 0; i < n; i++) {
        struct craft c = craft_request(p,
                                       i == 0       ? RC_WRITE_FIRST
                                       : i == n - 1 ? RC_WRITE_LAST
                                                    : RC_WRITE_MIDDLE,
                                       psn + i);

        c.ack_req = i == n - 1;
        c.len = p->mtu;
        c.dma_len = (uint32_t) n * p->mtu;
        probe_send(p, c);
    }
}

void
probe_respond(struct probe *p, uint8_t syndrome, int psn)
{
    probe_send(p, craft_response(p, syndrome, psn));
}

void
probe_listen(struct probe *p, unsigned n)
{
    struct seen s;

    p->n_seen = 0;
    while (!failed(p) && p->n_seen < PROBE_MAX_SEEN
           && peer_receive(&p->peer, &s, p->n_seen < n ? PATIENCE_MS : p->quiet_ms)) {
        if (s.dest_qpn == p->peer_qpn) {
            p->seen[p->n_seen++] = s;
        }
    }
}

void
probe_reaches(struct probe *p)
{
    char address[INET6_ADDRSTRLEN];
    int n = 0;

    inet_ntop(AF_INET6, &p->peer.other, address, sizeof address);
    for (int tries = 0; tries < 20 && !n && !failed(p); tries++) {
        if (!peer_send_plain(&p->peer, p->port)) {
            probe_fail(p, "%s", p->peer.error);
        }
        probe_listen(p, 0);
        n = ask_number(p, json_pack("{s:s, s:s}", "op", "hear", "address", address), "n");
    }
    if (!n) {
        probe_fail(p, "packets from %s do not reach the target", address);
    }
}

/*
 * Words.
 */

void
say(struct probe *p, const char *format, ...)
{
    va_list args;

    if (failed(p)) {
        return;
    }
    fputs(p->said ? ", " : "", p->out);
    p->said = true;
    va_start(args, format);
    vfprintf(p->out, format, args);
    va_end(args);
}

#define FAR 0x2000 /* what is farther from the start is not told relatively to it. */

static void
psn_text(const struct probe *p, psn_t psn, char text[16])
{
    int32_t distance = psn_cmp(psn, p->start);

    if (distance >= -FAR && distance <= FAR) {
        snprintf(text, 16, "%+d", distance);
    } else {
        snprintf(text, 16, "PSN 0x%06x", psn.v);
    }
}

static void
say_response(struct probe *p, const struct seen *s)
{
    char psn[16];

    psn_text(p, s->psn, psn);
    switch (aeth_class(s->syndrome)) {
    case AETH_CLASS_ACK: say(p, "ACK %s MSN %u", psn, s->msn); break;
    case AETH_CLASS_RNR: say(p, "RNR 0x%02x %s", s->syndrome, psn); break;
    case AETH_CLASS_RESERVED:
    case AETH_CLASS_NAK: say(p, "NAK 0x%02x %s", s->syndrome, psn); break;
    }
}

/* Request packets that follow one another, from the i-th on; returns how many. */
static unsigned
say_requests(struct probe *p, unsigned i)
{
    char first[16], last[16], asked[16];
    unsigned n = 1;

    while (i + n < p->n_seen && p->seen[i + n].opcode != RC_ACK
           && psn_eq(p->seen[i + n].psn, psn_add(p->seen[i + n - 1].psn, 1))) {
        n++;
    }
    psn_text(p, p->seen[i].psn, first);
    psn_text(p, p->seen[i + n - 1].psn, last);
    say(p, n > 1 ? "data %s..%s" : "data %s", first, last);
    for (unsigned k = i; k < i + n; k++) {
        if (p->seen[k].ack_req) {
            psn_text(p, p->seen[k].psn, asked);
            fprintf(p->out, " AckReq %s", asked);
        }
    }
    return n;
}

static void
say_other(struct probe *p, const struct seen *s)
{
    const char *name = roce_opcode_info(s->opcode)->name;

    if (name) {
        say(p, "%s", name);
    } else {
        say(p, "opcode 0x%02x", s->opcode);
    }
}

void
say_answers(struct probe *p, unsigned n)
{
    probe_listen(p, n);
    if (!p->n_seen) {
        say(p, "silence");
    }
    for (unsigned i = 0; i < p->n_seen && !failed(p);) {
        const struct seen *s = &p->seen[i];

        if (!s->icrc_ok) {
            say(p, "a packet with a wrong ICRC");
        }
        if (s->opcode == RC_ACK) {
            say_response(p, s);
            i++;
        } else if (roce_opcode_info(s->opcode)->flags & ROCE_F_REQUEST) {
            i += say_requests(p, i);
        } else {
            say_other(p, s);
            i++;
        }
    }
}

void
say_written(struct probe *p, int ofs)
{
    int byte = ask_number(
        p, json_pack("{s:s, s:i, s:i}", "op", "memory", "ofs", ofs, "len", PROBE_LEN), "byte");

    say(p, byte == PROBE_FILL ? "written" : byte == 0 ? "not written" : "memory 0x%02x", byte);
}

static const struct {
    enum ibv_wc_status status;
    const char *name;
} statuses[] = {
    {IBV_WC_SUCCESS, "success"},
    {IBV_WC_WR_FLUSH_ERR, "flushed"},
    {IBV_WC_BAD_RESP_ERR, "bad response"},
    {IBV_WC_REM_INV_REQ_ERR, "remote invalid request"},
    {IBV_WC_REM_ACCESS_ERR, "remote access error"},
    {IBV_WC_REM_OP_ERR, "remote operation error"},
    {IBV_WC_RETRY_EXC_ERR, "retry exceeded"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "RNR retry exceeded"},
};

static void
say_status(struct probe *p, int status, unsigned times)
{
    for (unsigned i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if ((int) statuses[i].status == status) {
            say(p, "%u %s", times, statuses[i].name);
            return;
        }
    }
    say(p, "%u status %d", times, status);
}

/* Appends what has completed: 'n' at most, within 'ms'. */
static void
ask_completions(struct probe *p, json_t *list, int n, unsigned ms)
{
    json_t *answer =
        probe_ask(p, json_pack("{s:s, s:i, s:i}", "op", "poll", "n", n, "ms", (int) ms));

    json_array_extend(list, json_object_get(answer, "completions"));
    json_decref(answer);
}

void
say_completions(struct probe *p, int n)
{
    json_t *list = json_array();

    ask_completions(p, list, n ? n : 1, n ? PATIENCE_MS : p->quiet_ms);
    ask_completions(p, list, MAX_COMPLETIONS, 0);
    size_t size = json_array_size(list);
    if (!size) {
        say(p, "0 completed");
    }
    for (size_t i = 0, k; i < size; i = k) {
        int status = (int) json_integer_value(json_array_get(list, i));

        for (k = i; k < size && (int) json_integer_value(json_array_get(list, k)) == status; k++) {
            continue;
        }
        say_status(p, status, (unsigned) (k - i));
    }
    json_decref(list);
}

void
say_state(struct probe *p)
{
    int state = ask_number(p, json_pack("{s:s}", "op", "state"), "state");

    if (state == IBV_QPS_RTS) {
        say(p, "in RTS");
    } else if (state == IBV_QPS_ERR) {
        say(p, "in error");
    } else {
        say(p, "state %d", state);
    }
}
