/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections of a node with hosts that say what a test wants: one network of messages, a
 * clock and a configuration.
 */
#ifndef TESTS_UNIT_CM_CONN_FIXTURE_H
#define TESTS_UNIT_CM_CONN_FIXTURE_H 1

#include "lib/cm-conn.h"
#include "lib/drop.h"

#define CM_FIRST_ID  0x80001000u
#define CM_ACTIVE_ID 7u   /* of the active connection. */
#define CM_HOST_ID   0x11 /* the host's communication ID. */
#define CM_HOST_QPN  17u
#define CM_HOST_PSN  9000u /* that it expects first. */
#define CM_DQPN      257u  /* the Designated QPN. */
#define CM_PORT      7183
#define CM_SEC       UINT64_C(1000000)

extern struct cm_conn_fixture {
    struct cm_conns *conns;
    uint64_t now;
    struct in6_addr proxy, host;
    /* The configuration; cm_configure() applies it. */
    struct cm_conn_config configs[8];
    size_t n_configs;
} cm;

void cm_conn_setup(void);
void cm_conn_teardown(void);

struct in6_addr cm_addr(const char *text);

/* What was sent, the first that has not been looked at. */
struct cm_msg cm_sent(enum cm_attribute);
void cm_nothing_sent(void);
size_t cm_n_sent(void);
void cm_forget_sent(void);

/* From the host to the proxy. */
enum drop_reason cm_input(struct cm_msg);
struct cm_msg cm_req(uint32_t local_id, uint32_t qpn);
/* Of a connection: IDs as they should be. */
struct cm_msg cm_of(enum cm_attribute, uint32_t local_id, uint32_t remote_id);
struct cm_msg cm_rep(uint32_t local_id, uint32_t qpn);
struct cm_msg cm_rej(uint32_t local_id, uint32_t remote_id, enum cm_about, uint16_t reason);
struct cm_msg cm_dreq(uint32_t local_id, uint32_t remote_id);

void cm_configure(void);
/* Time passes; timers run. */
void cm_wait(uint64_t usec);
/* NULL: it is not there. */
const struct cm_known *cm_known(uint32_t id);
enum cm_state cm_state(uint32_t id);
enum cm_cause cm_cause(uint32_t id);
/* Does the registry's part: rows as the connections are, decisions as they were. */
void cm_register(void);
/* Another life of the node; and one that gets the configuration. */
void cm_start_again(void);
void cm_restart(void);

#endif /* tests/unit/cm-conn-fixture.h */
