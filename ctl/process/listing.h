/* SPDX-License-Identifier: Apache-2.0
 *
 * Listings: commands on a daemon's control socket (ovs-appctl) that show what it
 * has.  Each is built as JSON; without -j it is shown as text made from the same.
 */
#ifndef CTL_PROCESS_LISTING_H
#define CTL_PROCESS_LISTING_H 1

#include <stdbool.h>

struct json;
struct unixctl_conn;

/* Answers with listing_reply(), at once or later.  'listing' is what was registered. */
typedef void listing_func(struct unixctl_conn *, const void *listing, bool as_json);

/* The command takes -j and nothing else. */
void listing_register(const char *command, listing_func *func, const void *listing);
void listing_reply(struct unixctl_conn *, const struct json *, bool as_json);

#endif /* ctl/process/listing.h */
