/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections of a node with hosts that say what a test wants.
 */
#include "tests/unit/cm-conn-fixture.h"

#include <arpa/inet.h>
#include <check.h>
#include <string.h>

#define MAX_SENT 4096

struct cm_conn_fixture cm;

static struct {
    struct cm_msg msgs[MAX_SENT];
    size_t first, n;
} sent;
static uint32_t n_lives;

struct in6_addr
cm_addr(const char *text)
{
    struct in6_addr addr;

    ck_assert_int_eq(inet_pton(AF_INET6, text, &addr), 1);
    return addr;
}

static void
note_sent(void *aux, const struct in6_addr *from, const struct in6_addr *to,
          const struct cm_msg *msg)
{
    ck_assert_ptr_eq(aux, &sent);
    ck_assert_mem_eq(from, &cm.proxy, sizeof cm.proxy);
    ck_assert_mem_eq(to, &cm.host, sizeof cm.host);
    ck_assert_uint_lt(sent.n, MAX_SENT);
    sent.msgs[sent.n++] = *msg;
}

void
cm_conn_setup(void)
{
    cm.proxy = cm_addr("fd00:ffff::1");
    cm.host = cm_addr("fd00:1::1");
    cm.now = 1000 * CM_SEC;
    memset(cm.configs, 0, sizeof cm.configs);
    cm.n_configs = 0;
    n_lives = 0;
    cm_forget_sent();
    cm.conns = cm_conns_create(CM_FIRST_ID, note_sent, &sent);
    cm_configure();
}

void
cm_conn_teardown(void)
{
    cm_conns_destroy(cm.conns);
    cm.conns = NULL;
}

struct cm_msg
cm_sent(enum cm_attribute attribute)
{
    ck_assert_msg(sent.first < sent.n, "no %s was sent", cm_attribute_name(attribute));
    struct cm_msg m = sent.msgs[sent.first++];
    ck_assert_str_eq(cm_attribute_name(m.attribute), cm_attribute_name(attribute));
    return m;
}

void
cm_nothing_sent(void)
{
    ck_assert_msg(sent.first == sent.n, "%s was sent",
                  cm_attribute_name(sent.msgs[sent.first].attribute));
}

size_t
cm_n_sent(void)
{
    return sent.n - sent.first;
}

void
cm_forget_sent(void)
{
    sent.first = sent.n = 0;
}

enum drop_reason
cm_input(struct cm_msg m)
{
    size_t before = sent.n;
    enum drop_reason why = cm_conns_input(cm.conns, &cm.proxy, &cm.host, &m, cm.now);

    ck_assert_uint_le(sent.n - before, 1);
    return why;
}

struct cm_msg
cm_req(uint32_t local_id, uint32_t qpn)
{
    return (struct cm_msg){
        .attribute = CM_REQ,
        .tid = UINT64_C(0x500000000) | local_id,
        .local_id = local_id,
        .qpn = qpn,
        .psn = psn_make(CM_HOST_PSN),
        .service = CM_SERVICE_TCP | CM_PORT,
        .transport = CM_TRANSPORT_RC,
        .mtu_code = 3,
        .ip_header = true,
        .sport = 40000,
        .ip_src = cm.host,
        .ip_dst = cm.proxy,
        .private_len = CM_REQ_PRIVATE_LEN,
        .private_data = "who I am",
    };
}

struct cm_msg
cm_of(enum cm_attribute attribute, uint32_t local_id, uint32_t remote_id)
{
    return (struct cm_msg){
        .attribute = attribute,
        .tid = UINT64_C(0x600000000) | local_id,
        .local_id = local_id,
        .remote_id = remote_id,
    };
}

struct cm_msg
cm_rep(uint32_t local_id, uint32_t qpn)
{
    struct cm_msg m = cm_of(CM_REP, local_id, CM_ACTIVE_ID);

    m.qpn = qpn;
    m.psn = psn_make(CM_HOST_PSN);
    m.private_len = CM_REP_PRIVATE_LEN;
    memcpy(m.private_data, "my region", 9);
    return m;
}

struct cm_msg
cm_rej(uint32_t local_id, uint32_t remote_id, enum cm_about about, uint16_t reason)
{
    struct cm_msg m = cm_of(CM_REJ, local_id, remote_id);

    m.about = about;
    m.reason = reason;
    return m;
}

struct cm_msg
cm_dreq(uint32_t local_id, uint32_t remote_id)
{
    struct cm_msg m = cm_of(CM_DREQ, local_id, remote_id);

    m.remote_qpn = CM_DQPN;
    return m;
}

void
cm_configure(void)
{
    cm_conns_configure(cm.conns, cm.configs, cm.n_configs, cm.now);
}

void
cm_wait(uint64_t usec)
{
    uint64_t until = cm.now + usec;

    while (cm_conns_deadline(cm.conns) <= until) {
        uint64_t when = cm_conns_deadline(cm.conns);
        cm.now = when > cm.now ? when : cm.now;
        cm_conns_timer(cm.conns, cm.now);
    }
    cm.now = until;
}

const struct cm_known *
cm_known(uint32_t id)
{
    for (size_t i = 0; i < cm_conns_n(cm.conns); i++) {
        struct cm_conn_info info;
        cm_conns_get(cm.conns, i, &info);
        if (info.id == id) {
            return info.known;
        }
    }
    return NULL;
}

enum cm_state
cm_state(uint32_t id)
{
    const struct cm_known *known = cm_known(id);

    ck_assert_msg(known, "connection %x is not there", id);
    return known->state;
}

enum cm_cause
cm_cause(uint32_t id)
{
    ck_assert_str_eq(cm_state_name(cm_state(id)), "ended");
    return cm_known(id)->cause;
}

void
cm_register(void)
{
    for (size_t i = 0; i < cm_conns_n(cm.conns); i++) {
        struct cm_conn_info info;
        size_t row = 0;

        cm_conns_get(cm.conns, i, &info);
        while (row < cm.n_configs && cm.configs[row].id != info.id) {
            row++;
        }
        if (row == cm.n_configs) {
            ck_assert_uint_lt(cm.n_configs, sizeof cm.configs / sizeof *cm.configs);
            cm.configs[cm.n_configs++] = (struct cm_conn_config){
                .id = info.id, .role = info.role, .proxy = info.proxy, .host = info.host};
        }
        cm.configs[row].known = *info.known;
    }
}

void
cm_start_again(void)
{
    cm_conns_destroy(cm.conns);
    cm.conns = cm_conns_create(CM_FIRST_ID + 0x10000 * ++n_lives, note_sent, &sent);
}

void
cm_restart(void)
{
    cm_start_again();
    cm_configure();
}
