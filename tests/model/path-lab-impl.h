/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of the lab of paths share; nobody else includes it.
 */
#ifndef TESTS_MODEL_PATH_LAB_IMPL_H
#define TESTS_MODEL_PATH_LAB_IMPL_H 1

#include "lib/stamp.h"
#include "tests/model/clos.h"
#include "tests/model/path-lab.h"
#include "tests/model/rc-endpoint.h"

#define MAX_FLOWS   4
#define MAX_FAULTS  3
#define MAX_WINDOW  4
#define MAX_MESSAGE 6 /* packets. */
#define MTU         256
#define SLOT        (MAX_MESSAGE * MTU)

/* What a run is about. */
enum run_kind {
    RUN_SEEN,    /* breaks what probes see. */
    RUN_PLANNED, /* operators want other paths, and nothing breaks. */
    RUN_MIXED,   /* everything. */
    RUN_LOSSY, /* the link that a busy flow is on loses every fifth packet: how long does it stand still? */
    N_RUN_KINDS
};

enum fault_kind {
    /* What probes see. */
    FAULT_SILENT,  /* a switch drops everything. */
    FAULT_DEAD,    /* a link does, without saying so, */
    FAULT_ONE_WAY, /* or in one direction only. */
    FAULT_SLOW,    /* all that a link carries is too late. */
    FAULT_RESTART, /* a switch is away for a while. */
    /* What they do not, or late. */
    FAULT_LOSSY,     /* a link loses every fifth packet, */
    FAULT_LOSSY_WAY, /* or in one direction only. */
    FAULT_CONGESTED, /* a link is slow, and its queue marks. */
    FAULT_AGENT,     /* an agent is started again. */
    /* What operators want. */
    FAULT_EXCLUDE, /* a link or a switch is not to be used. */
    FAULT_PIN,     /* a host's packets are to take a path. */
    N_FAULT_KINDS
};

/* One that is there now. */
struct fault_now {
    enum fault_kind kind;
    bool on_link; /* else at a node. */
    unsigned node, link, side;
    uint64_t begun, ends;
};

struct agent_seen {
    uint64_t n_failed, n_planned; /* switches of this life, when last looked at. */
    unsigned n_switch_events;     /* events with switches, in all lives. */
};

/* One host writes to another. */
struct flow {
    struct path_lab *lab;
    unsigned from, to; /* hosts. */
    uint32_t qpn, dest_qpn;
    struct rc_endpoint *sender, *receiver;
    uint8_t data[MAX_WINDOW][SLOT], memory[MAX_WINDOW][SLOT];
    unsigned n_posted, n_done, window;
    uint64_t n_packets; /* of what was posted, */
    uint64_t n_sent;    /* and sent, of earlier lives. */
    psn_t heard;        /* up to where the sender has heard that all is there, */
    uint64_t heard_at;  /* and since when. */
    uint32_t len[MAX_WINDOW];
    uint64_t posted_at[MAX_WINDOW], done_at;
    uint64_t post_at; /* the next one. */
    uint32_t max_pause;
    unsigned
        first_life; /* messages, after which it ends and another one has its number; 0: not so. */
    bool nak_said;  /* its receiver has said a NAK, the last one of this PSN. */
    psn_t nak_psn;
    unsigned n_made; /* NAKs that an agent has made for it, though it did not stand still. */
};

/* An answer to a probe that is under way, but was not asked for; len 0: none is. */
struct forged {
    struct fabric_end to;
    size_t len;
    uint8_t frame[512];
};

struct path_lab {
    struct clos *clos;
    bool trace;
    uint64_t *n_seen;
    void (*fail)(const char *text, uint64_t now);
    uint64_t seed;
    enum run_kind kind;
    uint64_t interval; /* of probes, microseconds. */
    bool forges;       /* somebody makes answers to probes. */
    bool ecn;
    unsigned n_flows;
    struct flow flows[MAX_FLOWS];
    uint64_t timeout_usec;
    uint64_t probes_from;
    unsigned n_faults; /* still to come. */
    struct fault_now now;
    bool broken;        /* 'now' is there. */
    uint64_t denied_at; /* when an operator last wanted something. */
    uint64_t over_at;   /* nobody posts after this time; UINT64_MAX: not known yet. */
    struct path_lab_lossy lossy;
    bool unbounded; /* something has happened that probes do not see. */
    struct agent_seen agents[CLOS_MAX_AGENTS];
    struct forged forged;
};

_Noreturn void path_lab_fail(const struct path_lab *, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define PATH_REQUIRE(LAB, COND, ...)         \
    do {                                     \
        if (!(COND)) {                       \
            path_lab_fail(LAB, __VA_ARGS__); \
        }                                    \
    } while (0)

/* path-lab.c. */
static inline uint32_t
path_lab_random(struct path_lab *lab, uint32_t limit)
{
    return fabric_random(&lab->clos->fabric, limit);
}
/* 'run' at that time; its first argument is the fabric. */
void
path_lab_at(struct path_lab *, uint64_t at, void (*run)(void *, unsigned, unsigned), unsigned a);
/* The flow that the host's queue pair belongs to, and whether it is the sender's. */
struct flow *path_lab_flow(struct path_lab *, unsigned host, uint32_t qpn, bool *is_sender);

/* path-lab-fault.c. */
void path_lab_begin_faults(struct path_lab *, uint64_t at);
/* An agent has sent a probe: somebody may make an answer to it. */
void path_lab_probe_sent(struct path_lab *, const struct clos_frame *);

/* path-lab-check.c. */
void path_lab_sent(void *lab, const struct clos_frame *);
void path_lab_after(void *lab, struct clos_node *);
/* Will all flows have a path that is better than bad, and not broken, when probes have seen 'now'? */
bool path_lab_has_way_out(const struct path_lab *);
/* Does 'now' hit a path that a flow is on? */
bool path_lab_hits_flow(const struct path_lab *);
/* A fault has been there for so long that all probes must know. */
void path_lab_check_seen(struct path_lab *);
/* The oldest message of a flow is completed, which was posted at this time. */
void path_lab_check_completed(struct path_lab *, const struct flow *, uint64_t posted);
void path_lab_check_end(struct path_lab *);
/* How often what happened, as long as nodes know it. */
void path_lab_count(struct path_lab *);

#endif /* tests/model/path-lab-impl.h */
