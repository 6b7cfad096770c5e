/* SPDX-License-Identifier: Apache-2.0
 *
 * Clients of the registry at a broker: each has a connection of its own to the registry, on which it
 * is passed on what its rights allow.
 */
#ifndef CTL_BROKER_BROKER_H
#define CTL_BROKER_BROKER_H 1

#include <stdbool.h>

struct json;
struct svec;

struct broker;

/* 'db' is one remote, of the registry's server.  Clients named in 'controllers' and 'operators', which
 * must stay as they are, have these roles; others are agents or hosts, as the registry has them. */
struct broker *
broker_create(const char *db, const struct svec *controllers, const struct svec *operators);
void broker_destroy(struct broker *);

/* Listens at an OVSDB passive remote.  'name' is its clients' name; NULL: that of their certificates.
 * 0, or an errno. */
int broker_listen(struct broker *, const char *listener, const char *name);

void broker_run(struct broker *);
void broker_wait(struct broker *);

/* Has the registry said which nodes and hosts there are? */
bool broker_serves(const struct broker *);
/* Is it connected now? */
bool broker_is_connected(const struct broker *);

/* Who is connected: an array of objects, by name. */
struct json *broker_clients(const struct broker *);
/* What has been passed on and refused since the start. */
struct json *broker_counters(const struct broker *);

#endif /* ctl/broker/broker.h */
