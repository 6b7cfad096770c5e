/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of ports share: a network namespace for each test, and ports that must work.
 */
#ifndef TESTS_NET_PORT_FIXTURE_H
#define TESTS_NET_PORT_FIXTURE_H 1

#include <check.h>

#include "lib/packet.h"
#include "lib/port.h"

#define WAIT_MSEC 3000

extern struct packet_pool *pool;

/* Of each test: a new network namespace, and the pool. */
void setup(void);
void teardown(void);

/* A command that must succeed. */
void sh(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An ethtool command that has a number as argument and answer. */
uint32_t ethtool(const char *netdev, uint32_t cmd, uint32_t data);

struct port *must_open(enum port_kind, const char *netdev, int netns_fd);
/* Opens a tap that is up; its carrier comes with this queue. */
struct port *must_open_tap(const char *netdev);
/* Waits until a device that has a carrier is started: up to a second after that
 * comes, the kernel throws away what is sent on it. */
void wait_started(const char *netdev);

/* One frame of what port_recv() gave for this port: 0 and *p, or why there is none.  ENOBUFS,
 * EMSGSIZE: one was lost. */
int recv_one(struct port *, struct packet_pool *from, struct packet **p);
int send_one(struct port *, struct packet *);
/* The next frame, or NULL when none came in time. */
struct packet *next(struct port *, int msec);

/* tests/net/test-port-tap.c */
Suite *port_tap_suite(void);

#endif /* tests/net/port-fixture.h */
