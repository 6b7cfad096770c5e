/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections.  The input is a string of events: messages whose IDs mostly fit, rows of a
 * configuration that may say anything, data packets, time, another life of the node.  After each:
 * no message makes more than one; what is shown changes only with the version; states are such as
 * the role has; nothing is without bound.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/cm-conn.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

#define MAX_EVENTS   400
#define MAX_ROWS     8
#define MAX_CONNS    128
#define N_ADDRS      2
#define N_SMALL      6 /* values of an ID, a queue pair, a transaction. */
#define PASSIVE_BIT  0x80000000u
#define MAX_MESSAGES 100 /* of a time that passes: few connections, each a few times a second. */

static struct {
    struct cm_conns *conns;
    uint64_t now;
    uint32_t life;
    size_t n_sent;
    struct cm_conn_config rows[MAX_ROWS];
    size_t n_rows;
    /* What was shown. */
    uint64_t version;
    size_t n;
    uint32_t ids[MAX_CONNS];
    struct cm_known known[MAX_CONNS];
} t;

static struct in6_addr
addr(uint8_t kind, uint32_t number)
{
    struct in6_addr a = {{{0xfd, kind}}};

    a.s6_addr[15] = (uint8_t) (1 + number);
    return a;
}

static void
note_sent(void *aux, const struct in6_addr *proxy, const struct in6_addr *host,
          const struct cm_msg *m)
{
    (void) aux;
    REQUIRE(proxy->s6_addr[1] == 1 && host->s6_addr[1] == 2);
    REQUIRE(m->private_len <= CM_PRIVATE_SIZE);
    REQUIRE(m->attribute != CM_REQ || (m->local_id && !m->remote_id && m->ip_header));
    t.n_sent++;
}

static bool
fits(enum cm_role role, enum cm_state state)
{
    switch (state) {
    case CM_REQUESTED:
    case CM_ACCEPTED: return role == CM_PASSIVE;
    case CM_CONNECTING:
    case CM_REFUSED:
    case CM_ANSWERED: return role == CM_ACTIVE;
    case CM_ESTABLISHED:
    case CM_CLOSING:
    case CM_ENDED: return true;
    }
    return false;
}

static bool
is_same(const struct cm_known *a, const struct cm_known *b)
{
    return a->state == b->state && a->cause == b->cause && a->remote_id == b->remote_id
           && a->tid == b->tid && a->qpn == b->qpn && a->reason == b->reason
           && a->private_len == b->private_len
           && !memcmp(a->private_data, b->private_data, sizeof a->private_data);
}

static void
look(void)
{
    uint64_t version = cm_conns_version(t.conns);
    size_t n = cm_conns_n(t.conns);

    REQUIRE(n <= MAX_CONNS);
    REQUIRE(version != t.version || n == t.n);
    for (size_t i = 0; i < n; i++) {
        struct cm_conn_info info;

        cm_conns_get(t.conns, i, &info);
        REQUIRE(info.id);
        REQUIRE(fits(info.role, info.known->state));
        REQUIRE((info.known->state == CM_ENDED) == (info.known->cause != CM_NOT_ENDED));
        REQUIRE(info.known->private_len <= CM_PRIVATE_SIZE);
        for (size_t j = 0; j < i; j++) {
            REQUIRE(t.ids[j] != info.id);
        }
        REQUIRE(version != t.version || (t.ids[i] == info.id && is_same(&t.known[i], info.known)));
        t.ids[i] = info.id;
        t.known[i] = *info.known;
    }
    t.version = version;
    t.n = n;
}

static uint32_t
small(struct fuzz_input *in)
{
    return fuzz_below(in, N_SMALL);
}

static void
choose_private_data(struct fuzz_input *in, uint16_t *len, uint8_t *data, uint16_t max)
{
    *len = fuzz_below(in, 4) ? (uint16_t) fuzz_below(in, 3) : max;
    memset(data, (int) fuzz_below(in, 3), CM_PRIVATE_SIZE);
}

static void
input(struct fuzz_input *in)
{
    static const enum cm_attribute attributes[] = {
        CM_REQ,  CM_REQ,  CM_REP, CM_REP, CM_RTU, CM_MRA,      CM_REJ,     CM_DREQ,
        CM_DREP, CM_DREQ, CM_RTU, CM_REJ, CM_REQ, CM_SIDR_REQ, CM_SIDR_REP};
    struct in6_addr proxy = addr(1, fuzz_below(in, N_ADDRS));
    struct in6_addr host = addr(2, fuzz_below(in, N_ADDRS));
    struct cm_msg m = {
        .attribute = FUZZ_CHOOSE(in, attributes), .local_id = small(in), .tid = small(in)};
    uint8_t how = fuzz_byte(in);

    m.remote_id = how & 1 ? small(in) : 0;
    if (m.attribute != CM_REQ && !(how & 1) && t.n) {
        struct cm_conn_info info;
        cm_conns_get(t.conns, fuzz_below(in, (uint32_t) t.n), &info);
        m.remote_id = info.id;
        proxy = how & 2 ? proxy : info.proxy;
        host = how & 4 ? host : info.host;
        if (!(how & 8) && info.known->remote_id) {
            m.local_id = info.known->remote_id;
        }
    }
    m.qpn = small(in);
    m.remote_qpn = small(in);
    m.reason = (uint16_t) small(in);
    m.service = CM_SERVICE_TCP | small(in);
    m.about = (enum cm_about) fuzz_below(in, 3);
    m.ip_header = how < 240;
    m.transport = how % 64 == 63;
    m.ip_src = host;
    m.ip_dst = proxy;
    choose_private_data(in, &m.private_len, m.private_data, CM_PRIVATE_SIZE);
    size_t before = t.n_sent;
    cm_conns_input(t.conns, &proxy, &host, &m, t.now);
    REQUIRE(t.n_sent - before <= 1);
    look();
    /* The same again is no news; but a REJ without our ID may be for the next of several connections that
     * the registry has given the same remote ID. */
    if (m.attribute == CM_REJ && !m.remote_id) {
        cm_conns_input(t.conns, &proxy, &host, &m, t.now);
        look();
    } else if (cm_conns_input(t.conns, &proxy, &host, &m, t.now) == DROP_none) {
        REQUIRE(cm_conns_version(t.conns) == t.version);
    }
}

static void
choose_known(struct fuzz_input *in, struct cm_conn_config *row)
{
    row->known = (struct cm_known){.state = (enum cm_state) fuzz_below(in, 8),
                                   .cause = (enum cm_cause) fuzz_below(in, 6),
                                   .remote_id = small(in),
                                   .tid = small(in),
                                   .qpn = small(in)};
    choose_private_data(in, &row->known.private_len, row->known.private_data, UINT16_MAX);
}

/* What the registry makes of a row. */
static void
change_row(struct fuzz_input *in)
{
    uint32_t i = fuzz_below(in, MAX_ROWS);
    struct cm_conn_config *row = &t.rows[i];

    if (i >= t.n_rows) {
        i = (uint32_t) t.n_rows++;
        row = &t.rows[i];
        memset(row, 0, sizeof *row);
        row->proxy = addr(1, fuzz_below(in, N_ADDRS));
        row->host = addr(2, fuzz_below(in, N_ADDRS));
        row->qpn = small(in);
        if (fuzz_below(in, 2) && t.n) {
            struct cm_conn_info info;
            cm_conns_get(t.conns, fuzz_below(in, (uint32_t) t.n), &info);
            row->id = info.id;
            row->role = info.role;
            row->proxy = info.proxy;
            row->host = info.host;
            row->known = *info.known;
        } else {
            row->id = small(in) | (fuzz_below(in, 4) ? 0 : PASSIVE_BIT);
            row->role = (enum cm_role) fuzz_below(in, 2);
            choose_known(in, row);
        }
    }
    row->decision = (enum cm_decision) fuzz_below(in, 4);
    row->ready = fuzz_below(in, 2);
    row->keepalive_msec = fuzz_below(in, 3) * 1000;
    row->reason = (uint16_t) small(in);
    choose_private_data(in, &row->private_len, row->private_data, UINT16_MAX);
}

static void
configure(void)
{
    cm_conns_configure(t.conns, t.rows, t.n_rows, t.now);
}

static void
pass(struct fuzz_input *in)
{
    uint64_t until = t.now + (UINT64_C(1000) << fuzz_below(in, 18));
    size_t n = 0;

    while (cm_conns_deadline(t.conns) <= until) {
        uint64_t when = cm_conns_deadline(t.conns);
        size_t before = t.n_sent;

        t.now = when > t.now ? when : t.now;
        cm_conns_timer(t.conns, t.now);
        REQUIRE(cm_conns_deadline(t.conns) > t.now);
        REQUIRE(t.n_sent - before <= t.n + MAX_ROWS);
        look();
        REQUIRE(++n < MAX_MESSAGES * MAX_CONNS);
    }
    t.now = until;
}

static void
start(void)
{
    cm_conns_destroy(t.conns);
    t.conns = cm_conns_create(t.life++ * 3, note_sent, NULL);
    t.version = UINT64_MAX;
    t.n = 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    memset(&t, 0, sizeof t);
    t.now = 1000;
    start();
    configure();
    for (unsigned i = 0; i < MAX_EVENTS && in.n; i++) {
        struct in6_addr proxy, host;

        switch (fuzz_below(&in, 8)) {
        case 0:
            change_row(&in);
            configure();
            break;
        case 1:
            t.n_rows = fuzz_below(&in, (uint32_t) t.n_rows + 1);
            configure();
            break;
        case 2: pass(&in); break;
        case 3:
            proxy = addr(1, fuzz_below(&in, N_ADDRS));
            host = addr(2, fuzz_below(&in, N_ADDRS));
            cm_conns_traffic(t.conns, &proxy, &host, small(&in));
            break;
        case 4:
            if (fuzz_below(&in, 4) == 0) {
                start();
                configure();
            }
            break;
        default: input(&in); break;
        }
        look();
    }
    cm_conns_destroy(t.conns);
    return 0;
}
