/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that connect by RDMA-CM, in virtual time.
 *
 * First there is trouble, for some minutes, then rest.  What is checked all the time: nothing ends
 * that its program has not ended, no REQ begins two connections, no message makes two.  In the end:
 * each established connection is one at both ends, with the same IDs and queue pairs; nobody waits
 * for an answer; who listens is connected.
 *
 * Data is not there.  What would follow from it is: a receiver that is dead is found by the registry
 * after a while, a source that is not connected any more fails after a while.
 */
#include "tests/model/cm-lab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cm-conn.h"
#include "tests/model/cm-kernel.h"
#include "tests/model/fabric.h"

#define MAX_HOSTS     4
#define N_PROXIES     2
#define N_INTENTS     6 /* programs that ought to be connected, if they listen. */
#define MAX_PROGRAMS  48
#define MAX_ROWS      128
#define MAX_SEEN      2048
#define SOURCE_PORT   200
#define FIRST_QPN     16
#define N_QPNS        12 /* of a host: few, so that they are used again. */
#define N_ASKED       256
#define DQPN          300

#define MSEC          UINT64_C(1000)
#define SEC           UINT64_C(1000000)
#define TICK          (100 * MSEC)
#define LATE_USEC     5000000 /* a copy comes within this... */
#define LATE_OF_10000 1000    /* ... of so many messages. */
#define LIVENESS      (3 * SEC)
#define REST          (400 * SEC) /* a kernel that has an MRA repeats every 10 s, 16 times. */
#define STEADY        (100 * SEC) /* of the rest, at its end. */

static const struct {
    const char *name, *help;
} events[] = {
#define CM_EVENT(NAME, HELP) [CM_SAW_##NAME] = {#NAME, HELP},
    CM_EVENTS
#undef CM_EVENT
};

const char *
cm_event_name(enum cm_event event)
{
    return events[event].name;
}

const char *
cm_event_help(enum cm_event event)
{
    return events[event].help;
}

struct program {
    bool lives, listens;
    unsigned host;
    unsigned intent;        /* that it listens for. */
    uint64_t missing_since; /* a source: the node has no such connection; 0: it has. */
};

/* What ought to be connected: the program that listens there. */
struct intent {
    unsigned host, proxy;
    uint16_t port;
    bool wanted;
};

struct row {
    bool used;
    struct cm_conn_config config;
    unsigned intent; /* active. */
    uint64_t due;    /* of what is to be done next in this state. */
    enum cm_state due_of;
    uint64_t dead_since; /* active: its program is; 0: it lives. */
};

struct wire {
    struct in6_addr proxy;
    struct cm_msg msg;
};

struct cm_lab {
    struct fabric f;
    bool trace;
    uint64_t *n_seen;
    void (*fail)(const char *text, uint64_t now);

    unsigned n_hosts;
    struct in6_addr proxies[N_PROXIES];
    struct cm_kernel hosts[MAX_HOSTS];
    uint64_t asked_at[MAX_HOSTS][N_ASKED]; /* the last REQ of a queue pair. */
    struct program programs[MAX_PROGRAMS];
    struct intent intents[N_INTENTS];
    uint64_t rests_at; /* UINT64_MAX: not yet. */

    struct cm_conns *node;  /* NULL: it is down. */
    uint64_t configured_at; /* ... for the first time; UINT64_MAX: not yet. */
    uint64_t version;       /* that has been looked at. */
    unsigned n_node_lives;
    uint64_t n_from_node;
    struct {
        unsigned host;
        uint32_t remote_id, id;
    } seen[MAX_SEEN]; /* passive connections of this life. */
    size_t n_seen_conns;
    struct {
        uint32_t id;
        enum cm_state state;
    } last[MAX_SEEN]; /* what was shown when it was looked at last. */
    size_t n_last;

    struct row rows[MAX_ROWS];
    uint32_t next_active;
    bool uploads, configures; /* on the way. */
    uint32_t keepalive_msec;
    unsigned lag_msec;
    unsigned rejects; /* of 100. */
};

static uint32_t
chance(struct cm_lab *lab, uint32_t limit)
{
    return fabric_random(&lab->f, limit);
}

static void
saw(struct cm_lab *lab, enum cm_event event)
{
    lab->n_seen[event]++;
}

static bool
is_resting(const struct cm_lab *lab)
{
    return lab->rests_at <= lab->f.now;
}

static void
check(struct cm_lab *lab, bool ok, const char *text)
{
    if (!ok) {
        lab->fail(text, lab->f.now);
    }
}

static void
print_msg(const struct cm_lab *lab, const char *what, unsigned host, const struct cm_msg *m)
{
    if (lab->trace) {
        fprintf(stderr, "%12.3f %s h%u %s %x %x tid %" PRIx64 " qpn %u/%u reason %u\n",
                (double) lab->f.now / 1000, what, host, cm_attribute_name(m->attribute),
                m->local_id, m->remote_id, m->tid, m->qpn, m->remote_qpn, m->reason);
    }
}

static void
print(const struct cm_lab *lab, const char *what, unsigned number)
{
    if (lab->trace) {
        fprintf(stderr, "%12.3f -- %s %u\n", (double) lab->f.now / 1000, what, number);
    }
}

static unsigned
host_of(const struct cm_lab *lab, const struct in6_addr *addr)
{
    unsigned i = 0;

    while (i < lab->n_hosts && memcmp(&lab->hosts[i].addr, addr, sizeof *addr)) {
        i++;
    }
    return i;
}

/* The host's end of a connection. */
static const struct cm_kernel_id *
host_end(const struct cm_lab *lab, unsigned host, uint32_t local_id)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        const struct cm_kernel_id *id = &lab->hosts[host].ids[i];
        if (id->used && id->local_id == local_id) {
            return id;
        }
    }
    return NULL;
}

/* What the node shows. */
static const struct cm_known *
node_end(const struct cm_lab *lab, uint32_t id)
{
    for (size_t i = 0; lab->node && i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        if (info.id == id) {
            return info.known;
        }
    }
    return NULL;
}

/* Messages.  The fabric's station 0 is the node, with a port for each host. */

static void deliver_late(void *aux, unsigned host, unsigned slot);

static struct {
    bool used;
    bool to_node;
    struct wire wire;
} late[256];

static void
send_wire(struct cm_lab *lab, unsigned host, bool to_node, const struct wire *wire)
{
    struct fabric_end node = {0, (uint16_t) host}, other = {1 + host, 0};
    uint8_t bytes[sizeof *wire];
    unsigned slot = chance(lab, sizeof late / sizeof *late);

    memcpy(bytes, wire, sizeof bytes);
    fabric_send(&lab->f, to_node ? other : node, bytes, sizeof bytes, false);
    if (!is_resting(lab) && !late[slot].used && chance(lab, 10000) < LATE_OF_10000) {
        late[slot].used = true;
        late[slot].to_node = to_node;
        late[slot].wire = *wire;
        fabric_schedule(&lab->f, lab->f.now + chance(lab, LATE_USEC), deliver_late, host, slot);
    }
}

static void
node_sends(void *aux, const struct in6_addr *proxy, const struct in6_addr *addr,
           const struct cm_msg *m)
{
    struct cm_lab *lab = aux;
    unsigned host = host_of(lab, addr);
    struct wire wire = {.proxy = *proxy, .msg = *m};

    lab->n_from_node++;
    print_msg(lab, "node ->", host, m);
    check(lab, host < lab->n_hosts, "a message to nobody");
    send_wire(lab, host, false, &wire);
}

static void
host_sends(void *aux, struct cm_kernel *k, const struct in6_addr *proxy, const struct cm_msg *m)
{
    struct cm_lab *lab = aux;
    unsigned host = (unsigned) (k - lab->hosts);
    struct wire wire = {.proxy = *proxy, .msg = *m};

    if (m->attribute == CM_REQ) {
        lab->asked_at[host][m->qpn % N_ASKED] = lab->f.now;
    }
    send_wire(lab, host, true, &wire);
}

static void
note_repetition(struct cm_lab *lab, unsigned host, const struct cm_msg *m)
{
    for (size_t i = 0; m->attribute == CM_REQ && i < lab->n_seen_conns; i++) {
        if (lab->seen[i].host == host && lab->seen[i].remote_id == m->local_id) {
            const struct cm_known *known = node_end(lab, lab->seen[i].id);
            saw(lab, !known || known->state == CM_ENDED ? CM_SAW_late_req : CM_SAW_req_again);
        }
    }
    for (size_t i = 0; i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        if (host_of(lab, &info.host) != host || info.known->remote_id != m->local_id) {
            continue;
        }
        if (m->attribute == CM_REP) {
            saw(lab, CM_SAW_rep_again);
        } else if (m->attribute == CM_DREQ && info.known->state == CM_ENDED) {
            saw(lab, CM_SAW_dreq_again);
        }
    }
}

static void
node_gets(struct cm_lab *lab, unsigned host, const struct in6_addr *proxy, const struct cm_msg *m,
          bool is_forged)
{
    uint64_t before = lab->n_from_node;

    if (!lab->node) {
        return;
    }
    print_msg(lab, "node <-", host, m);
    note_repetition(lab, host, m);
    cm_conns_input(lab->node, proxy, &lab->hosts[host].addr, m, lab->f.now);
    check(lab, lab->n_from_node - before <= 1, "a message made more than one");
    check(lab,
          is_forged || lab->configured_at > lab->f.now || m->attribute != CM_DREQ
              || lab->n_from_node > before,
          "a DREQ gets no DREP");
}

static void
deliver_to(struct cm_lab *lab, unsigned host, bool to_node, const struct wire *wire)
{
    if (to_node) {
        node_gets(lab, host, &wire->proxy, &wire->msg, false);
    } else {
        cm_kernel_input(&lab->hosts[host], &wire->proxy, &wire->msg, lab->f.now);
    }
}

static void
deliver(void *aux, struct fabric_end to, const uint8_t *bytes, size_t len)
{
    bool to_node = !to.station;
    struct wire wire;

    (void) len;
    memcpy(&wire, bytes, sizeof wire);
    deliver_to(aux, to_node ? to.port : to.station - 1, to_node, &wire);
}

static void
deliver_late(void *aux, unsigned host, unsigned slot)
{
    late[slot].used = false;
    deliver_to(aux, host, late[slot].to_node, &late[slot].wire);
}

/* Programs. */

static void
end_program(struct cm_lab *lab, unsigned p)
{
    struct program *program = &lab->programs[p];
    struct cm_kernel *k = &lab->hosts[program->host];

    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        if (k->ids[i].used && k->ids[i].program == p) {
            cm_kernel_destroy(k, &k->ids[i]);
        }
    }
    if (program->listens) {
        k->listens[lab->intents[program->intent].port] = false;
    }
    program->lives = false;
}

/* A queue pair that no late copy of a REQ names: that would end its connection, as in Linux. */
static uint32_t
free_qpn(struct cm_lab *lab, const struct cm_kernel *k)
{
    const uint64_t *asked_at = lab->asked_at[k - lab->hosts];

    for (unsigned tries = 0;; tries++) {
        uint32_t qpn = FIRST_QPN + (tries < 100 ? chance(lab, N_QPNS) : tries);
        uint64_t asked = asked_at[qpn % N_ASKED];
        bool is_free = !asked || lab->f.now - asked > 2 * LATE_USEC;
        for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
            is_free = is_free && !(k->ids[i].used && k->ids[i].local_qpn == qpn);
        }
        if (is_free) {
            return qpn;
        }
    }
}

/* Is there another connection of this program that is more than a request? */
static bool
is_busy(const struct cm_kernel *k, const struct cm_kernel_id *but)
{
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        const struct cm_kernel_id *id = &k->ids[i];
        if (id->used && id != but && id->program == but->program
            && id->state != KERNEL_MRA_REQ_SENT) {
            return true;
        }
    }
    return false;
}

/* A program does what its connection of that life waits for. */
static void
program_acts(void *aux, unsigned p, unsigned life)
{
    struct cm_lab *lab = aux;
    struct program *program = &lab->programs[p];
    struct cm_kernel *k = &lab->hosts[program->host];
    struct cm_kernel_id *id = NULL;

    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        if (k->ids[i].used && k->ids[i].life == life && k->ids[i].program == p) {
            id = &k->ids[i];
        }
    }
    if (!id || !program->lives) {
        return;
    }
    switch (id->state) {
    case KERNEL_MRA_REQ_SENT:
        if (is_busy(k, id) || (!is_resting(lab) && chance(lab, 100) < lab->rejects)) {
            cm_kernel_reject(k, id);
            cm_kernel_destroy(k, id);
        } else {
            cm_kernel_accept(k, id, free_qpn(lab, k), NULL, 0, lab->f.now);
        }
        break;
    case KERNEL_MRA_REP_SENT: cm_kernel_confirm(k, id); break;
    case KERNEL_DREQ_RCVD:
    case KERNEL_IDLE:
    case KERNEL_TIMEWAIT:
        cm_kernel_destroy(k, id);
        if (!program->listens) {
            end_program(lab, p);
        }
        break;
    case KERNEL_REQ_SENT:
    case KERNEL_MRA_REQ_RCVD:
    case KERNEL_REP_SENT:
    case KERNEL_MRA_REP_RCVD:
    case KERNEL_ESTABLISHED:
    case KERNEL_DREQ_SENT: break;
    }
}

static void
program_hears(void *aux, struct cm_kernel *k, struct cm_kernel_id *id, enum cm_kernel_event event)
{
    struct cm_lab *lab = aux;
    unsigned host = (unsigned) (k - lab->hosts);
    uint64_t delay = chance(lab, 10) ? chance(lab, 20000) : chance(lab, 5000000);

    if (event == KERNEL_REQUEST) {
        /* 'program' is the port. */
        for (unsigned p = 0; p < MAX_PROGRAMS; p++) {
            const struct program *program = &lab->programs[p];
            if (program->lives && program->listens && program->host == host
                && lab->intents[program->intent].port == id->program) {
                id->program = p;
                break;
            }
        }
    }
    if (event != KERNEL_CONNECTED) {
        fabric_schedule(&lab->f, lab->f.now + delay, program_acts, id->program, id->life);
    }
}

static void
kernel_gave_up(void *aux, struct cm_kernel *k, const struct cm_kernel_id *id)
{
    struct cm_lab *lab = aux;
    uint64_t long_ago = 3 * MSEC * id->wait_msec; /* the last three times. */
    uint64_t since = lab->rests_at > lab->configured_at ? lab->rests_at : lab->configured_at;

    print_msg(lab, "gave up", (unsigned) (k - lab->hosts), &id->msg);
    if (lab->node && since <= lab->f.now && lab->f.now - since > long_ago) {
        char text[80];
        snprintf(text, sizeof text, "a host's %s gets no answer",
                 cm_attribute_name(id->msg.attribute));
        lab->fail(text, lab->f.now);
    }
}

static unsigned
new_program(struct cm_lab *lab)
{
    unsigned p = 0;

    while (p < MAX_PROGRAMS && lab->programs[p].lives) {
        p++;
    }
    return p;
}

static void
start_source(struct cm_lab *lab)
{
    unsigned p = new_program(lab), host = chance(lab, lab->n_hosts);
    struct cm_kernel *k = &lab->hosts[host];

    if (p == MAX_PROGRAMS) {
        return;
    }
    lab->programs[p] = (struct program){.lives = true, .host = host};
    print(lab, "source", p);
    cm_kernel_connect(k, &lab->proxies[chance(lab, N_PROXIES)], SOURCE_PORT, free_qpn(lab, k), p,
                      lab->f.now);
}

static void
start_listener(struct cm_lab *lab, unsigned intent)
{
    unsigned p = new_program(lab), host = lab->intents[intent].host;
    struct cm_kernel *k = &lab->hosts[host];

    if (p == MAX_PROGRAMS || k->listens[lab->intents[intent].port]) {
        return;
    }
    lab->programs[p] =
        (struct program){.lives = true, .listens = true, .host = host, .intent = intent};
    k->listens[lab->intents[intent].port] = true;
    print(lab, "listener", p);
}

static bool
is_established(const struct cm_lab *lab, unsigned p)
{
    const struct cm_kernel *k = &lab->hosts[lab->programs[p].host];

    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        if (k->ids[i].used && k->ids[i].program == p && k->ids[i].state == KERNEL_ESTABLISHED) {
            return true;
        }
    }
    return false;
}

static void
kill_program(struct cm_lab *lab, unsigned p)
{
    if (lab->programs[p].lives) {
        if (is_established(lab, p)) {
            saw(lab, CM_SAW_killed);
        }
        print(lab, "kill", p);
        end_program(lab, p);
    }
}

static void
disconnect_program(struct cm_lab *lab, unsigned p)
{
    struct cm_kernel *k = &lab->hosts[lab->programs[p].host];

    for (unsigned i = 0; lab->programs[p].lives && i < KERNEL_MAX_IDS; i++) {
        if (k->ids[i].used && k->ids[i].program == p && k->ids[i].state == KERNEL_ESTABLISHED) {
            print(lab, "disconnect", p);
            cm_kernel_disconnect(k, &k->ids[i], lab->f.now);
        }
    }
}

static void
reboot_host(struct cm_lab *lab, unsigned host)
{
    for (unsigned p = 0; p < MAX_PROGRAMS; p++) {
        struct program *program = &lab->programs[p];
        if (program->lives && program->host == host) {
            if (is_established(lab, p)) {
                saw(lab, CM_SAW_rebooted);
            }
            program->lives = false;
        }
    }
    print(lab, "reboot", host);
    cm_kernel_boot(&lab->hosts[host], chance(lab, UINT32_MAX) | 1);
}

/* The registry. */

static void
configure(void *aux, unsigned life, unsigned b)
{
    struct cm_lab *lab = aux;
    struct cm_conn_config configs[MAX_ROWS];
    size_t n = 0;

    (void) b;
    if (life != lab->n_node_lives || !lab->node) {
        return;
    }
    lab->configures = false;
    if (lab->configured_at == UINT64_MAX) {
        lab->configured_at = lab->f.now;
    }
    for (unsigned i = 0; i < MAX_ROWS; i++) {
        if (lab->rows[i].used) {
            configs[n++] = lab->rows[i].config;
        }
    }
    cm_conns_configure(lab->node, configs, n, lab->f.now);
}

static void
publish(struct cm_lab *lab)
{
    if (!lab->configures && lab->node) {
        lab->configures = true;
        fabric_schedule(&lab->f, lab->f.now + MSEC * chance(lab, lab->lag_msec), configure,
                        lab->n_node_lives, 0);
    }
}

static struct row *
row_of(struct cm_lab *lab, uint32_t id)
{
    for (unsigned i = 0; i < MAX_ROWS; i++) {
        if (lab->rows[i].used && lab->rows[i].config.id == id) {
            return &lab->rows[i];
        }
    }
    return NULL;
}

static struct row *
new_row(struct cm_lab *lab)
{
    for (unsigned i = 0; i < MAX_ROWS; i++) {
        if (!lab->rows[i].used) {
            lab->rows[i] = (struct row){.used = true};
            return &lab->rows[i];
        }
    }
    lab->fail("more connections than programs can have", lab->f.now);
    abort();
}

/* What the node shows gets to the registry. */
static void
upload(void *aux, unsigned life, unsigned b)
{
    struct cm_lab *lab = aux;

    (void) b;
    if (life != lab->n_node_lives || !lab->node) {
        return;
    }
    lab->uploads = false;
    for (size_t i = 0; i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        struct row *row = row_of(lab, info.id);
        if (!row && info.role == CM_PASSIVE && info.known->state != CM_ENDED) {
            row = new_row(lab);
            row->config = (struct cm_conn_config){.id = info.id,
                                                  .role = CM_PASSIVE,
                                                  .proxy = info.proxy,
                                                  .host = info.host,
                                                  .qpn = DQPN,
                                                  .keepalive_msec = lab->keepalive_msec};
        }
        if (row) {
            row->config.known = *info.known;
        }
    }
}

/* Is it time for what this row wants done in its state? */
static bool
is_due(struct cm_lab *lab, struct row *row, unsigned max_msec)
{
    if (!row->due || row->due_of != row->config.known.state) {
        row->due = lab->f.now + MSEC * chance(lab, max_msec);
        row->due_of = row->config.known.state;
    }
    return row->due <= lab->f.now;
}

/* As data would show. */
static bool
is_dead(struct cm_lab *lab, struct row *row)
{
    const struct cm_kernel_id *id =
        host_end(lab, host_of(lab, &row->config.host), row->config.known.remote_id);
    bool lives = id && id->state != KERNEL_IDLE && id->state != KERNEL_TIMEWAIT;

    if (lives) {
        row->dead_since = 0;
    } else if (!row->dead_since) {
        row->dead_since = lab->f.now;
    }
    return !lives && lab->f.now - row->dead_since >= LIVENESS;
}

/* True: the row is another now. */
static bool
tend_passive(struct cm_lab *lab, struct row *row)
{
    struct cm_conn_config *config = &row->config;

    switch (config->known.state) {
    case CM_REQUESTED:
        if (config->decision == CM_UNDECIDED && is_due(lab, row, 1000)) {
            bool rejects = chance(lab, 100) < lab->rejects;
            config->decision = rejects ? CM_REJECT : CM_ACCEPT;
            saw(lab, rejects ? CM_SAW_rejected : CM_SAW_accepted);
            return true;
        }
        return false;
    case CM_ENDED:
        if (is_due(lab, row, 2000)) {
            row->used = false;
            return true;
        }
        return false;
    case CM_ACCEPTED:
    case CM_CONNECTING:
    case CM_REFUSED:
    case CM_ANSWERED:
    case CM_ESTABLISHED:
    case CM_CLOSING: return false;
    }
    return false;
}

static bool
close_row(struct cm_lab *lab, struct row *row)
{
    if (row->config.decision == CM_CLOSE || row->config.decision == CM_REJECT) {
        return false;
    }
    if (row->config.known.state == CM_ESTABLISHED) {
        saw(lab, CM_SAW_closed);
    }
    row->config.decision = CM_CLOSE;
    return true;
}

static bool
tend_active(struct cm_lab *lab, struct row *row)
{
    struct cm_conn_config *config = &row->config;
    enum cm_state state = config->known.state;

    if (state == CM_ENDED) {
        row->used = !is_due(lab, row, 1000);
        return !row->used;
    }
    if (!lab->intents[row->intent].wanted) {
        return close_row(lab, row);
    }
    if ((state == CM_ANSWERED || state == CM_ESTABLISHED) && is_dead(lab, row)) {
        return close_row(lab, row);
    }
    if (state == CM_ANSWERED && !config->ready && is_due(lab, row, 3000)) {
        config->ready = true;
        saw(lab, CM_SAW_answered);
        return true;
    }
    return false;
}

static bool
tend_intent(struct cm_lab *lab, unsigned i)
{
    const struct intent *intent = &lab->intents[i];

    for (unsigned r = 0; r < MAX_ROWS; r++) {
        const struct row *row = &lab->rows[r];
        if (row->used && row->config.role == CM_ACTIVE && row->intent == i) {
            return false;
        }
    }
    if (!intent->wanted) {
        return false;
    }
    struct row *row = new_row(lab);
    row->intent = i;
    row->config = (struct cm_conn_config){.id = lab->next_active++,
                                          .role = CM_ACTIVE,
                                          .proxy = lab->proxies[intent->proxy],
                                          .host = lab->hosts[intent->host].addr,
                                          .port = intent->port,
                                          .qpn = DQPN,
                                          .mtu = 1024,
                                          .ack_timeout = 14};
    row->config.known.state = CM_CONNECTING;
    return true;
}

/* A source whose packets nobody takes fails. */
static void
tend_source(struct cm_lab *lab, unsigned p)
{
    struct program *program = &lab->programs[p];
    const struct cm_kernel *k = &lab->hosts[program->host];
    bool missing = false;

    if (!program->lives || program->listens) {
        return;
    }
    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        const struct cm_kernel_id *id = &k->ids[i];
        if (id->used && id->program == p && id->state == KERNEL_ESTABLISHED) {
            const struct cm_known *known = node_end(lab, id->remote_id);
            missing = lab->node && (!known || known->state == CM_ENDED);
        }
    }
    if (!missing) {
        program->missing_since = 0;
    } else if (!program->missing_since) {
        program->missing_since = lab->f.now;
    } else if (lab->f.now - program->missing_since > LIVENESS) {
        kill_program(lab, p);
    }
}

static void
tick(void *aux, unsigned a, unsigned b)
{
    struct cm_lab *lab = aux;
    bool changed = false;

    for (unsigned i = 0; i < N_INTENTS; i++) {
        changed |= tend_intent(lab, i);
    }
    for (unsigned i = 0; i < MAX_ROWS; i++) {
        if (lab->rows[i].used) {
            changed |= lab->rows[i].config.role == CM_PASSIVE ? tend_passive(lab, &lab->rows[i])
                                                              : tend_active(lab, &lab->rows[i]);
        }
    }
    for (unsigned p = 0; p < MAX_PROGRAMS; p++) {
        tend_source(lab, p);
    }
    if (changed) {
        publish(lab);
    }
    fabric_schedule(&lab->f, lab->f.now + TICK, tick, a, b);
}

/* The node. */

static void
start_node(void *aux, unsigned a, unsigned b)
{
    struct cm_lab *lab = aux;

    (void) a;
    (void) b;
    lab->node = cm_conns_create(chance(lab, UINT32_MAX), node_sends, lab);
    lab->n_node_lives++;
    lab->configured_at = UINT64_MAX;
    lab->version = UINT64_MAX;
    lab->n_last = lab->n_seen_conns = 0;
    lab->uploads = lab->configures = false;
    publish(lab);
}

static void
restart_node(struct cm_lab *lab)
{
    if (!lab->node) {
        return;
    }
    if (lab->uploads) {
        saw(lab, CM_SAW_behind);
    }
    print(lab, "restart", lab->n_node_lives);
    cm_conns_destroy(lab->node);
    lab->node = NULL;
    uint64_t down = chance(lab, 2) ? 0 : chance(lab, 20000000);
    fabric_schedule(&lab->f, lab->f.now + down, start_node, 0, 0);
}

/* Who ended this? */
static void
check_end(struct cm_lab *lab, const struct cm_conn_info *info)
{
    unsigned host = host_of(lab, &info->host);
    const struct cm_kernel_id *id = host_end(lab, host, info->known->remote_id);
    bool goes_on = id && id->state == KERNEL_ESTABLISHED && id->remote_id == info->id;

    switch (info->known->cause) {
    case CM_NOT_ENDED: check(lab, false, "ended for nothing"); break;
    case CM_BY_DREQ: check(lab, !goes_on, "ended by a DREQ that its host has not sent"); break;
    case CM_BY_REJ: check(lab, !goes_on, "ended by a REJ that its host has not sent"); break;
    case CM_BY_NEW_REQ:
        check(lab, !goes_on, "ended by a REQ though its queue pair goes on");
        saw(lab, CM_SAW_new_req);
        break;
    case CM_BY_SILENCE: saw(lab, CM_SAW_silence); break;
    case CM_BY_DECISION: break;
    }
}

static void
check_new(struct cm_lab *lab, const struct cm_conn_info *info)
{
    unsigned host = host_of(lab, &info->host);

    for (size_t i = 0; i < lab->n_seen_conns; i++) {
        if (lab->seen[i].host == host && lab->seen[i].remote_id == info->known->remote_id) {
            check(lab, lab->seen[i].id == info->id, "a REQ has begun two connections");
            return;
        }
    }
    check(lab, lab->n_seen_conns < MAX_SEEN, "connections without end");
    lab->seen[lab->n_seen_conns].host = host;
    lab->seen[lab->n_seen_conns].remote_id = info->known->remote_id;
    lab->seen[lab->n_seen_conns++].id = info->id;
}

static enum cm_state
last_state(const struct cm_lab *lab, uint32_t id)
{
    for (size_t i = 0; i < lab->n_last; i++) {
        if (lab->last[i].id == id) {
            return lab->last[i].state;
        }
    }
    return CM_ENDED; /* or it is new. */
}

/* After each event. */
static void
look_at_node(struct cm_lab *lab)
{
    if (!lab->node || cm_conns_version(lab->node) == lab->version) {
        return;
    }
    for (size_t i = 0; i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        enum cm_state before = last_state(lab, info.id);
        if (info.role == CM_PASSIVE) {
            check_new(lab, &info);
        }
        if (info.known->state == CM_ENDED && before != CM_ENDED) {
            check_end(lab, &info);
        } else if (info.known->state == CM_REFUSED && before != CM_REFUSED) {
            saw(lab, CM_SAW_refused);
        }
    }
    lab->n_last = cm_conns_n(lab->node);
    check(lab, lab->n_last < MAX_SEEN, "connections without end");
    for (size_t i = 0; i < lab->n_last; i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        lab->last[i].id = info.id;
        lab->last[i].state = info.known->state;
    }
    lab->version = cm_conns_version(lab->node);
    if (!lab->uploads) {
        lab->uploads = true;
        fabric_schedule(&lab->f, lab->f.now + MSEC * chance(lab, lab->lag_msec), upload,
                        lab->n_node_lives, 0);
    }
}

/* Trouble. */

/* From a host that has nothing to do with it, or with one ID wrong. */
static void
forge(struct cm_lab *lab)
{
    static const enum cm_attribute attributes[] = {CM_DREQ, CM_DREQ, CM_DREQ, CM_REJ,
                                                   CM_RTU,  CM_REP,  CM_DREP};
    struct cm_conn_info info;

    if (!lab->node || !cm_conns_n(lab->node)) {
        return;
    }
    cm_conns_get(lab->node, chance(lab, (uint32_t) cm_conns_n(lab->node)), &info);
    unsigned host = host_of(lab, &info.host);
    struct cm_msg m = {.attribute = attributes[chance(lab, 7)],
                       .tid = chance(lab, UINT32_MAX),
                       .local_id = info.known->remote_id,
                       .remote_id = info.id,
                       .qpn = info.known->qpn,
                       .remote_qpn = DQPN,
                       .reason = CM_REJ_CONSUMER};
    if (lab->n_hosts > 1 && chance(lab, 2)) {
        host = (host + 1) % lab->n_hosts;
    } else if (m.attribute == CM_REP || info.known->state == CM_CONNECTING
               || info.known->state == CM_REFUSED) {
        return; /* There is no ID yet that it would have to have. */
    } else if (m.attribute == CM_DREQ && chance(lab, 2)) {
        m.remote_qpn = DQPN + 1;
    } else {
        m.local_id += 1 + chance(lab, 100);
    }
    saw(lab, CM_SAW_forged);
    node_gets(lab, host, &info.proxy, &m, true);
}

static void
act(void *aux, unsigned a, unsigned b)
{
    struct cm_lab *lab = aux;
    struct row *row = &lab->rows[chance(lab, MAX_ROWS)];
    unsigned dice = chance(lab, 100);

    (void) a;
    (void) b;
    if (is_resting(lab)) {
        return;
    }
    if (dice < 35) {
        start_source(lab);
    } else if (dice < 55) {
        start_listener(lab, chance(lab, N_INTENTS));
    } else if (dice < 65) {
        kill_program(lab, chance(lab, MAX_PROGRAMS / 3));
    } else if (dice < 76) {
        disconnect_program(lab, chance(lab, MAX_PROGRAMS / 3));
    } else if (dice < 80) {
        restart_node(lab);
    } else if (dice < 81) {
        reboot_host(lab, chance(lab, lab->n_hosts));
    } else if (dice < 85) {
        struct intent *intent = &lab->intents[chance(lab, N_INTENTS)];
        intent->wanted = !intent->wanted;
    } else if (dice < 90 && row->used && close_row(lab, row)) {
        publish(lab);
    } else {
        forge(lab);
    }
    fabric_schedule(&lab->f, lab->f.now + 1 + chance(lab, 2 * SEC), act, 0, 0);
}

static void
begin_rest(void *aux, unsigned a, unsigned b)
{
    struct cm_lab *lab = aux;

    (void) a;
    (void) b;
    fabric_calm(&lab->f);
    for (unsigned i = 0; i < N_INTENTS; i++) {
        lab->intents[i].wanted = true;
        if (chance(lab, 2)) {
            start_listener(lab, i);
        }
    }
    print(lab, "rest", 0);
}

/* At rest. */

static void
check_host(struct cm_lab *lab, unsigned host)
{
    const struct cm_kernel *k = &lab->hosts[host];

    for (unsigned i = 0; i < KERNEL_MAX_IDS; i++) {
        const struct cm_kernel_id *id = &k->ids[i];
        if (!id->used) {
            continue;
        }
        check(lab, id->state == KERNEL_ESTABLISHED, "a program waits for an answer");
        const struct cm_known *known = node_end(lab, id->remote_id);
        check(lab,
              known && known->state == CM_ESTABLISHED && known->remote_id == id->local_id
                  && known->qpn == id->local_qpn && id->remote_qpn == DQPN,
              "established at the host, not at the node");
    }
}

static void
check_node(struct cm_lab *lab)
{
    for (size_t i = 0; i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        unsigned host = host_of(lab, &info.host);
        const struct cm_kernel_id *id = host_end(lab, host, info.known->remote_id);
        const struct row *row = row_of(lab, info.id);

        check(lab, row, "a connection that the registry has not");
        check(lab, row->config.known.state == info.known->state, "the registry is behind");
        if (info.known->state == CM_ESTABLISHED) {
            check(lab,
                  id && id->state == KERNEL_ESTABLISHED && id->remote_id == info.id
                      && id->local_qpn == info.known->qpn,
                  "established at the node, not at the host");
        } else {
            check(lab, info.role == CM_ACTIVE, "a program's connection that is not done with");
            check(lab, info.known->state == CM_CONNECTING || info.known->state == CM_REFUSED,
                  "a connection that is not done with");
            check(lab, !lab->hosts[host].listens[row->config.port],
                  "a program that listens is not connected");
        }
    }
}

/* Messages from one to the other end of a time, in which nothing happens. */
static void
check_traffic(struct cm_lab *lab, uint64_t n)
{
    uint64_t most = 0;

    for (size_t i = 0; i < cm_conns_n(lab->node); i++) {
        struct cm_conn_info info;
        cm_conns_get(lab->node, i, &info);
        most +=
            info.role == CM_ACTIVE ? STEADY / CM_PAUSE_USEC : STEADY / (MSEC * lab->keepalive_msec);
        most += 2;
    }
    check(lab, n <= most, "messages without end");
}

static void
run_until(struct cm_lab *lab, uint64_t end)
{
    for (;;) {
        uint64_t next = lab->node ? cm_conns_deadline(lab->node) : UINT64_MAX;
        struct cm_kernel *due = NULL;

        for (unsigned i = 0; i < lab->n_hosts; i++) {
            uint64_t when = cm_kernel_deadline(&lab->hosts[i]);
            if (when < next) {
                next = when;
                due = &lab->hosts[i];
            }
        }
        uint64_t event = fabric_next(&lab->f);
        if ((next < event ? next : event) > end) {
            lab->f.now = end;
            return;
        }
        uint64_t first = event <= next ? event : next;
        lab->f.now = first > lab->f.now ? first : lab->f.now;
        if (event <= next) {
            fabric_run(&lab->f);
        } else if (due) {
            cm_kernel_timer(due, lab->f.now);
        } else {
            cm_conns_timer(lab->node, lab->f.now);
        }
        look_at_node(lab);
    }
}

static void
create_hosts(struct cm_lab *lab)
{
    for (unsigned i = 0; i < N_PROXIES; i++) {
        lab->proxies[i].s6_addr[0] = 0xfd;
        lab->proxies[i].s6_addr[15] = (uint8_t) (1 + i);
    }
    for (unsigned i = 0; i < lab->n_hosts; i++) {
        struct cm_kernel *k = &lab->hosts[i];
        *k = (struct cm_kernel){.guid = 0x100 + i,
                                .aux = lab,
                                .send = host_sends,
                                .event = program_hears,
                                .gave_up = kernel_gave_up};
        k->addr.s6_addr[0] = 0xfd;
        k->addr.s6_addr[1] = 1;
        k->addr.s6_addr[15] = (uint8_t) (1 + i);
        cm_kernel_boot(k, chance(lab, UINT32_MAX) | 1);
        fabric_connect(&lab->f, (struct fabric_end){0, (uint16_t) i},
                       (struct fabric_end){1 + i, 0});
    }
    for (unsigned i = 0; i < N_INTENTS; i++) {
        lab->intents[i] = (struct intent){.host = chance(lab, lab->n_hosts),
                                          .proxy = chance(lab, N_PROXIES),
                                          .port = (uint16_t) (1 + i),
                                          .wanted = chance(lab, 4)};
    }
}

static void
choose_links(struct cm_lab *lab)
{
    bool lossy = chance(lab, 4);

    for (unsigned i = 0; i < lab->f.n_links; i++) {
        for (unsigned side = 0; side < 2; side++) {
            lab->f.links[i].quality[side] = (struct fabric_quality){
                .delay = 1 + chance(lab, 2000),
                .loss = lossy ? chance(lab, 2000) : 0,
                .twice = chance(lab, 1000),
                .reorder = chance(lab, 1000),
            };
        }
    }
}

void
cm_lab_run(uint64_t seed, bool trace, uint64_t n_seen[N_CM_EVENTS],
           void (*fail)(const char *text, uint64_t now))
{
    struct cm_lab *lab = calloc(1, sizeof *lab);

    if (!lab) {
        abort();
    }
    fabric_init(&lab->f, seed, deliver, lab);
    memset(late, 0, sizeof late);
    lab->trace = trace;
    lab->n_seen = n_seen;
    lab->fail = fail;
    lab->n_hosts = 1 + chance(lab, MAX_HOSTS);
    lab->next_active = 1 + chance(lab, 1000);
    lab->keepalive_msec = 2000 + chance(lab, 20000);
    lab->lag_msec = 1 + chance(lab, chance(lab, 2) ? 50 : 2000);
    lab->rejects = chance(lab, 40);
    lab->rests_at = UINT64_MAX;
    create_hosts(lab);
    choose_links(lab);
    start_node(lab, 0, 0);
    tick(lab, 0, 0);
    act(lab, 0, 0);

    lab->rests_at = lab->f.now + (20 + chance(lab, 100)) * SEC;
    fabric_schedule(&lab->f, lab->rests_at, begin_rest, 0, 0);
    run_until(lab, lab->rests_at + REST - STEADY);
    uint64_t before = lab->n_from_node;
    run_until(lab, lab->rests_at + REST);
    for (unsigned i = 0; i < lab->n_hosts; i++) {
        check_host(lab, i);
    }
    check_node(lab);
    check_traffic(lab, lab->n_from_node - before);
    cm_conns_destroy(lab->node);
    fabric_uninit(&lab->f);
    free(lab);
}
