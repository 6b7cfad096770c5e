/* SPDX-License-Identifier: Apache-2.0
 *
 * What the registry says of groups, paths and faults of the network at one time, as plain data, and the
 * events that lie between two such views.
 *
 * Whatever happened between two views is one difference: a state that came and went is not in it,
 * one that has lasted is.  Rows are known by their UUIDs, so that a group deleted and added again
 * is another group.
 */
#ifndef CTL_REGISTRY_VIEW_H
#define CTL_REGISTRY_VIEW_H 1

#include <stdbool.h>
#include <stdint.h>

#include "lib/words.h"
#include "openvswitch/uuid.h"
#include "svec.h"

struct ovsdb_idl;

struct member_view {
    struct uuid uuid;
    char *host;
    int64_t qpn;
    char *state; /* "joining" until castd says more. */
    char *status;
    bool has_first;     /* castd says with which PSN its first message begins. */
    int64_t first_psn;  /* that one. */
    bool has_lost_psn;  /* it is lost, and castd says up to where it had confirmed. */
    int64_t lost_psn;   /* the lowest PSN that it had not. */
    bool has_message;   /* castd says which message is at lost_psn, or otherwise at first_psn. */
    int64_t message;    /* its number. */
    int64_t connection; /* number of its connection; 0: none has made it. */
};

/* An RDMA-CM connection of a program with the group's Proxy. */
struct connection_view {
    struct uuid uuid;
    char *node;
    int64_t number; /* at that node. */
    char *role;     /* "active": the node has connected, "passive": the program has. */
    char *host;     /* of the program; its address if no host has that. */
    bool is_member; /* a member of the group is made by it. */
    int64_t port;
    int64_t qpn; /* of the program. */
    char *state;
    char *cause; /* why it has ended; NULL: that is not said. */
    char *status;
};

struct group_view {
    struct uuid uuid;
    char *name;
    int64_t epoch;
    int64_t designated_qpn;
    int64_t start_psn;
    char *state; /* "pending" until castd says more. */
    char *status;
    char *source; /* host of this epoch's source; NULL: none is set. */
    int64_t source_qpn;
    int64_t rate;        /* bit/s to which its source is limited; 0: it is not. */
    char *rate_cause;    /* why, "cnp", "fast-cnp"; NULL: it is not limited, or nobody says. */
    char *rate_node;     /* the node that said so, or its address; NULL: it is not known. */
    size_t n_active;     /* members that are active. */
    size_t n_lacking;    /* members that are registered and not served. */
    size_t n_registered; /* members that are registered in this epoch and to be served. */
    size_t n_members;
    struct member_view *members; /* by host, r9 before r10. */
    size_t n_connections;
    struct connection_view *connections; /* by node and number. */
};

/* A way that a node probes. */
struct probe_view {
    struct uuid uuid;
    char *node;
    char *kind; /* "loop", "peer". */
    char *name;
    char *plane;   /* "": it has none. */
    bool is_bad;   /* it was, and is not known to be good again. */
    int64_t since; /* when it got into its state, in milliseconds since 1970. */
};

/* Something that is broken, confirmed. */
struct fault_view {
    struct uuid uuid;
    int64_t since;        /* milliseconds since 1970. */
    struct svec elements; /* candidates, see lib/fault-element.h. */
    struct svec evidence; /* names of probes. */
};

struct view {
    size_t n_groups;
    struct group_view *groups; /* by name, likewise. */
    size_t n_probes;
    struct probe_view *probes; /* by node, kind and name; none in a view of one group. */
    size_t n_faults;
    struct fault_view *faults; /* by elements. */
};

/* Copies what is in the registry, or of the group with this name only.  The caller frees *view with
 * view_uninit().  Connections that have ended are there until the IDL has forgotten that
 * their rows are gone, if it tracks that: castd deletes such rows at once, but they say why. */
void view_read(struct view *, const struct ovsdb_idl *, const char *only);
void view_uninit(struct view *);

/* NULL: no such group. */
const struct group_view *view_find(const struct view *, const char *group);

/* Whose events they are. */
#define VIEW_OF_GROUP    1
#define VIEW_OF_MEMBER   2
#define VIEW_OF_REGISTRY 4
#define VIEW_OF_PATH     8
#define VIEW_OF_NETWORK  16

/* Events: the word, and whose it is.  States have the words that castd writes. */
#define VIEW_EVENTS                                                          \
    VIEW_EVENT(ADDED, "added", VIEW_OF_GROUP)                                \
    VIEW_EVENT(DELETED, "deleted", VIEW_OF_GROUP)                            \
    VIEW_EVENT(EPOCH, "epoch", VIEW_OF_GROUP)                                \
    VIEW_EVENT(SOURCE_SET, "source-set", VIEW_OF_GROUP)                      \
    VIEW_EVENT(SOURCE_GONE, "source-gone", VIEW_OF_GROUP)                    \
    VIEW_EVENT(PENDING, "pending", VIEW_OF_GROUP)                            \
    VIEW_EVENT(READY, "ready", VIEW_OF_GROUP)                                \
    VIEW_EVENT(DEGRADED, "degraded", VIEW_OF_GROUP)                          \
    VIEW_EVENT(SLOW, "slow", VIEW_OF_GROUP | VIEW_OF_MEMBER)                 \
    VIEW_EVENT(FAILED, "failed", VIEW_OF_GROUP | VIEW_OF_MEMBER)             \
    VIEW_EVENT(SLOWED, "slowed", VIEW_OF_GROUP)                              \
    VIEW_EVENT(RECOVERED, "recovered", VIEW_OF_GROUP)                        \
    VIEW_EVENT(JOINING, "joining", VIEW_OF_MEMBER)                           \
    VIEW_EVENT(ACTIVE, "active", VIEW_OF_MEMBER)                             \
    VIEW_EVENT(LOST, "lost", VIEW_OF_MEMBER)                                 \
    VIEW_EVENT(DRAINING, "draining", VIEW_OF_MEMBER)                         \
    VIEW_EVENT(LEFT, "left", VIEW_OF_MEMBER)                                 \
    VIEW_EVENT(NUMBERED, "numbered", VIEW_OF_MEMBER)                         \
    VIEW_EVENT(REPLACED, "replaced", VIEW_OF_MEMBER)                         \
    VIEW_EVENT(REMOVED, "removed", VIEW_OF_MEMBER)                           \
    VIEW_EVENT(CONNECTED, "connected", VIEW_OF_GROUP | VIEW_OF_MEMBER)       \
    VIEW_EVENT(DISCONNECTED, "disconnected", VIEW_OF_GROUP | VIEW_OF_MEMBER) \
    VIEW_EVENT(PATH_BAD, "path-bad", VIEW_OF_PATH)                           \
    VIEW_EVENT(PATH_GOOD, "path-good", VIEW_OF_PATH)                         \
    VIEW_EVENT(FAULT, "fault", VIEW_OF_NETWORK)                              \
    VIEW_EVENT(FAULT_CLEARED, "fault-cleared", VIEW_OF_NETWORK)              \
    VIEW_EVENT(REGISTRY_LOST, "registry-lost", VIEW_OF_REGISTRY)             \
    VIEW_EVENT(REGISTRY_BACK, "registry-back", VIEW_OF_REGISTRY)

enum view_event {
#define VIEW_EVENT(ENUM, NAME, OF) EVENT_##ENUM,
    VIEW_EVENTS
#undef VIEW_EVENT
};
WORDS_DECLARE(view_event, enum view_event);
/* VIEW_OF_x, one or two. */
unsigned int view_event_of(enum view_event);

/* One event: a word of VIEW_EVENTS, or the state that there is now.  The registry's states are any
 * words, such as that of another event. */
struct view_change {
    const char *event;
    bool is_state;
    const struct group_view *group_before;            /* NULL: added, or there from the start. */
    const struct group_view *group;                   /* NULL: deleted. */
    const struct member_view *member_before, *member; /* both NULL: not a member's event. */
    const struct connection_view *connection_before, *connection; /* likewise. */
    const struct probe_view *probe; /* NULL: not a path's event.  Otherwise all of the above are. */
    const struct fault_view *fault; /* that is there, or was; likewise. */
};

/* Calls 'report' for each event between two views of one registry: paths', faults', then group by
 * group, a group's connections before its members, and these before its state.  'before' NULL: each
 * state that there is now is an event, each path that is bad, and each fault. */
void view_compare(const struct view *before, const struct view *now,
                  void (*report)(const struct view_change *, void *aux), void *aux);

/* view-probes.c: the part that is about paths. */
void view_read_probes(struct view *, const struct ovsdb_idl *);
void view_uninit_probes(struct view *);
void view_compare_probes(const struct view *before, const struct view *now,
                         void (*report)(const struct view_change *, void *aux), void *aux);

/* view-faults.c: the part that is about faults. */
void view_read_faults(struct view *, const struct ovsdb_idl *);
void view_uninit_faults(struct view *);
void view_compare_faults(const struct view *before, const struct view *now,
                         void (*report)(const struct view_change *, void *aux), void *aux);

/* How the reason of a loss begins if the receiver itself has to come back with another queue
 * pair. */
#define VIEW_RESTART_NEEDED "restart needed: "

#endif /* ctl/registry/view.h */
