/* SPDX-License-Identifier: Apache-2.0
 *
 * What is broken, by the probes of the draft's figure: real nodes with the probes that castd plans, in
 * virtual time (tests/model/clos.h).  Agents report as theirs do (ctl/node/agent-probes.c), what they
 * say is put together as castd does (ctl/plan/locate.h), and a fault is confirmed after the same time.
 *
 * Each of the 26 single faults, and each of the 32 directions of links, has to be confirmed, as the
 * one candidate, and nothing else; and ten minutes of little loss must confirm none, and change no path.
 *
 * How long queue pairs stand still on a link that loses every fifth packet is chance: a bound holds for most
 * of some hundred runs.
 */
#include <config.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ctl/plan/locate.h"
#include "lib/fault-element.h"
#include "openvswitch/dynamic-string.h"
#include "tests/model/clos.h"
#include "tests/model/path-lab.h"
#include "tests/sim/castsim.h"
#include "util.h"

#define N_AGENTS    4
#define N_SPINES    2
#define MAX_PROBES  128
#define N_LINKS     16
#define N_SINGLE    (N_AGENTS + CLOS_N_LEAVES + N_SPINES + N_LINKS) /* faults. */
#define N_FAULTS    (N_SINGLE + 2 * N_LINKS)                        /* with directions. */
#define REPORT      1000000 /* between two reports of an agent. */
#define LOOK        10000   /* how often agents and castd look. */
#define WARM_UP     3000000
#define FAULT_LIMIT 10000000 /* by then it is to be confirmed. */
#define AFTERWARDS  5000000  /* so long it has to stay. */
#define LOSS        10       /* of 10000. */
#define LOSS_TIME   UINT64_C(600000000)

/* With links that lose every fifth packet. */
#define N_LOSSY     600 /* runs. */
#define LOSSY_INTERVAL \
    60000                 /* with shorter ones the time until a flow stands still is most of it. */
#define LOSSY_GAP  150000 /* a flow may complete nothing for so long and four intervals, */
#define LOSSY_BOTH 97     /* in so many of 100 runs, with loss in both directions, */
#define LOSSY_ONE  90     /* and in one. */

struct merged {
    struct clos *clos;
    size_t n;
    struct locate_probe probes[MAX_PROBES];
    unsigned agent[MAX_PROBES];         /* that sends it. */
    struct probe_info seen[MAX_PROBES]; /* as it reported last. */
    uint64_t reported[N_AGENTS];
    unsigned n_events; /* ways that an agent has told of as bad. */
};

/* What castd has in table Fault: the candidates, since when, and whether it is confirmed. */
struct row {
    char *name;
    int64_t since;
    bool confirmed;
};

struct rows {
    size_t n;
    struct row rows[MAX_PROBES];
};

static char name_of_case[80];

static void
failed(void *clos, const char *text)
{
    (void) clos;
    printf("FAIL %s: %s\n", name_of_case, text);
    fflush(NULL);
    _exit(1);
}

static void
sent(void *aux, const struct clos_frame *f)
{
    (void) aux, (void) f;
}

static void
after(void *aux, struct clos_node *n)
{
    (void) aux, (void) n;
}

static void
to_host(void *aux, unsigned host, const uint8_t *ip, size_t len)
{
    (void) aux, (void) host, (void) ip, (void) len;
}

/*
 * Reports.
 */

static int64_t
msec(uint64_t usec)
{
    return (int64_t) ((CLOS_POSIX_USEC + usec) / 1000);
}

static size_t
find_probe(const struct merged *m, const struct plan_node *node, uint16_t number)
{
    size_t i = 0;

    while (i < m->n
           && (m->clos->nodes[m->agent[i]].plan != node || m->seen[i].config->number != number)) {
        i++;
    }
    return i;
}

static void
merged_init(struct merged *m, struct clos *c)
{
    *m = (struct merged){.clos = c};
    for (unsigned i = 0; i < N_AGENTS; i++) {
        const struct clos_node *n = &c->nodes[i];

        for (size_t j = 0; j < n->probes.n; j++) {
            const struct plan_probe *p = &n->probes.probes[j];

            m->agent[m->n] = i;
            m->seen[m->n].config = &p->config;
            m->probes[m->n++] = (struct locate_probe){
                .name = p->config.name,
                .node = n->plan->name,
                .kind = p->config.kind,
                .elements = p->elements,
                .interval_usec = p->config.interval_usec,
            };
        }
    }
    for (size_t i = 0; i < m->n; i++) {
        const struct plan_probe *p = &c->nodes[m->agent[i]].probes.probes[0];

        while (&p->config != m->seen[i].config) {
            p++;
        }
        size_t reverse = p->peer ? find_probe(m, p->peer, p->config.reverse) : m->n;
        m->probes[i].reverse = reverse < m->n ? &m->probes[reverse] : NULL;
    }
}

/* True if the agent says anything new. */
static bool
report(struct merged *m, unsigned agent)
{
    const struct clos_node *n = &m->clos->nodes[agent];
    uint64_t now = m->clos->fabric.now;
    struct probe_info info;
    bool news = false;

    if (n->silent || now - m->reported[agent] < REPORT) {
        return false;
    }
    for (size_t i = 0; n->class->probe(n->node, i, &info); i++) {
        size_t at = find_probe(m, n->plan, info.config->number);
        struct locate_probe *p = &m->probes[at];
        struct probe_info *seen = &m->seen[at];

        if (info.health.state == seen->health.state && info.health.since == seen->health.since
            && info.heard == seen->heard) {
            continue;
        }
        m->n_events += info.health.state == PATH_BAD;
        seen->health = info.health;
        seen->heard = info.heard;
        p->result = locate_result_of(info.health.state);
        p->since = msec(info.health.since);
        p->heard = info.heard;
        news = true;
    }
    m->reported[agent] = news ? now : m->reported[agent];
    return news;
}

/*
 * Table Fault.
 */

static char *
candidates(const struct fault *f)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < f->n_elements; i++) {
        ds_put_format(&s, "%s%s", i ? " or " : "", f->elements[i].name);
    }
    return ds_steal_cstr(&s);
}

static struct row *
find_row(struct rows *rows, const char *name)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (!strcmp(rows->rows[i].name, name)) {
            return &rows->rows[i];
        }
    }
    return NULL;
}

/* As castd_find_faults() does: other candidates are another row. */
static void
find_faults(struct rows *rows, const struct merged *m)
{
    int64_t now = msec(m->clos->fabric.now);
    struct rows found = {.n = 0};
    struct fault *faults;
    size_t n;

    locate_faults(m->probes, m->n, &faults, &n);
    for (size_t i = 0; i < n; i++) {
        char *name = candidates(&faults[i]);
        const struct row *old = find_row(rows, name);
        struct row *row = &found.rows[found.n++];

        *row = (struct row){.name = name, .since = old ? old->since : now};
        row->confirmed =
            (old && old->confirmed)
            || now - row->since >= (int64_t) (fault_agreement_usec(&faults[i], row->since) / 1000);
    }
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->rows[i].name);
    }
    *rows = found;
    locate_faults_free(faults, n);
}

static void
rows_uninit(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->rows[i].name);
    }
    rows->n = 0;
}

/*
 * Cases.
 */

struct outcome {
    bool ok;
    char confirmed[200];     /* what was, at the end. */
    uint64_t usec;           /* until then. */
    unsigned n_wrong, n_bad; /* faults confirmed that are none, ways told of as bad. */
};

static struct clos *
begin(uint64_t seed)
{
    struct clos *c = clos_create(
        N_AGENTS, N_SPINES, seed,
        &(struct clos_ops){.sent = sent, .after = after, .to_host = to_host, .fail = failed});

    for (unsigned i = 0; i < N_AGENTS; i++) {
        clos_host(c, i)->path_policy = PATH_SPREAD;
    }
    clos_start(c);
    return c;
}

/* All that happens until 'end', in which 'want' is the only fault that there is, or "". */
static void
run(struct merged *m, struct rows *rows, uint64_t end, const char *want, uint64_t *first,
    struct outcome *o)
{
    struct clos *c = m->clos;

    for (uint64_t look = c->fabric.now; look <= end; look += LOOK) {
        while (clos_next(c) <= look) {
            clos_step(c);
        }
        c->fabric.now = look;
        bool news = false;
        for (unsigned i = 0; i < N_AGENTS; i++) {
            news |= report(m, i);
        }
        if (!news && !rows->n) {
            continue;
        }
        find_faults(rows, m);
        for (size_t i = 0; i < rows->n; i++) {
            bool right = !strcmp(rows->rows[i].name, want);

            o->n_wrong += rows->rows[i].confirmed && !right;
            *first = rows->rows[i].confirmed && right && !*first ? look : *first;
        }
    }
}

static void
note_confirmed(const struct rows *rows, struct outcome *o)
{
    struct ds s = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < rows->n; i++) {
        if (rows->rows[i].confirmed) {
            ds_put_format(&s, "%s%s", s.length ? ", " : "", rows->rows[i].name);
        }
    }
    snprintf(o->confirmed, sizeof o->confirmed, "%s", s.length ? ds_cstr(&s) : "nothing");
    ds_destroy(&s);
}

/* Breaks it, and says what it is called. */
static void
break_one(struct clos *c, unsigned fault, char name[80])
{
    unsigned n_nodes = c->n_nodes;

    if (fault < n_nodes) {
        c->nodes[fault].silent = true;
        c->nodes[fault].deadline = UINT64_MAX;
        snprintf(name, 80, "%s", clos_name(c, fault));
        return;
    }
    bool one_way = fault >= N_SINGLE;
    unsigned link = one_way ? (fault - N_SINGLE) / 2 : fault - n_nodes;
    unsigned side = one_way ? fault % 2 : 0;
    struct fabric_link *l = &c->fabric.links[link];

    l->quality[side].loss = 10000;
    l->quality[!side].loss = one_way ? 0 : 10000;
    snprintf(name, 80, "%s%s%s", clos_name(c, l->ends[side].station), one_way ? ">" : "<>",
             clos_name(c, l->ends[!side].station));
}

static void
try_fault(unsigned fault, struct outcome *o, char name[80])
{
    struct clos *c = begin(fault + 1);
    struct merged m;
    struct rows rows = {.n = 0};
    uint64_t confirmed = 0;

    merged_init(&m, c);
    run(&m, &rows, c->fabric.now + WARM_UP, "", &confirmed, o);
    uint64_t broken = c->fabric.now + fabric_random(&c->fabric, 100000);
    while (clos_next(c) <= broken) {
        clos_step(c);
    }
    c->fabric.now = broken;
    break_one(c, fault, name);
    snprintf(name_of_case, sizeof name_of_case, "%s", name);
    m.n_events = 0;
    run(&m, &rows, broken + FAULT_LIMIT, name, &confirmed, o);
    o->n_bad = m.n_events;
    note_confirmed(&rows, o);
    o->usec = confirmed ? confirmed - broken : 0;
    o->ok = confirmed && !o->n_wrong && !strcmp(o->confirmed, name);
    rows_uninit(&rows);
    clos_destroy(c);
}

static void
try_loss(struct outcome *o)
{
    struct clos *c = begin(N_FAULTS + 1);
    struct merged m;
    struct rows rows = {.n = 0};
    uint64_t confirmed = 0;

    snprintf(name_of_case, sizeof name_of_case, "little loss");
    merged_init(&m, c);
    run(&m, &rows, c->fabric.now + WARM_UP, "", &confirmed, o);
    for (unsigned i = 0; i < N_LINKS; i++) {
        c->fabric.links[i].quality[0].loss = c->fabric.links[i].quality[1].loss = LOSS;
    }
    run(&m, &rows, c->fabric.now + LOSS_TIME, "", &confirmed, o);
    note_confirmed(&rows, o);
    o->n_bad = m.n_events;
    o->ok = !o->n_wrong && !o->n_bad;
    rows_uninit(&rows);
    clos_destroy(c);
}

static void
work(unsigned job, unsigned n_jobs)
{
    bool ok = true;

    /* The longest first. */
    for (unsigned i = job; i <= N_FAULTS; i += n_jobs) {
        struct outcome o = {.ok = false};
        char name[80] = "0.1 % loss, 10 minutes";

        if (i) {
            try_fault(i - 1, &o, name);
        } else {
            try_loss(&o);
        }
        ok &= o.ok;
        printf("%s| %s | %s | %.2f | %u | %u |\n", o.ok ? "" : "FAIL ", name, o.confirmed,
               (double) o.usec / 1e6, o.n_wrong, o.n_bad);
        fflush(NULL);
    }
    if (!ok) {
        _exit(1);
    }
}

/*
 * Links that lose every fifth packet.
 */

static struct path_lab_lossy *lossy_runs; /* of all jobs. */

static void
lossy_failed(const char *text, uint64_t now)
{
    printf("FAIL %s, at %" PRIu64 " us: %s\n", name_of_case, now, text);
    fflush(NULL);
    _exit(1);
}

static void
work_lossy(unsigned job, unsigned n_jobs)
{
    for (unsigned i = job; i < N_LOSSY; i += n_jobs) {
        snprintf(name_of_case, sizeof name_of_case, "20 %% loss, seed %u", i + 1);
        lossy_runs[i] = path_lab_run_lossy(i + 1, false, lossy_failed);
    }
}

static int
compare_doubles(const void *a_, const void *b_)
{
    const double *a = a_, *b = b_;

    return (*a > *b) - (*a < *b);
}

/* Prints the median, and what 95 % are below. */
static void
print_spread(double *values, unsigned n)
{
    qsort(values, n, sizeof *values, compare_doubles);
    for (unsigned i = 0; i < 2; i++) {
        double value = values[(n - 1) * (i ? 95 : 50) / 100];

        printf(value == HUGE_VAL ? " never |" : " %.1f |", value);
    }
}

/* Of the runs with one direction, or both: is the gap nearly always within the bound? */
static bool
judge_lossy(bool one_way, unsigned percent)
{
    double left[N_LOSSY] = {0}, gaps[N_LOSSY] = {0};
    unsigned n = 0, n_within = 0;

    for (unsigned i = 0; i < N_LOSSY; i++) {
        const struct path_lab_lossy *l = &lossy_runs[i];
        double interval = (double) l->interval;

        if (l->one_way == one_way && l->interval >= LOSSY_INTERVAL) {
            left[n] = l->left == UINT64_MAX ? HUGE_VAL : (double) l->left / interval;
            gaps[n++] = (double) l->longest / interval;
            n_within += l->longest <= 4 * l->interval + LOSSY_GAP;
        }
    }
    printf("| %s | %u |", one_way ? "one direction" : "both", n);
    if (!n) {
        printf(" - | - | - | - | - |\n");
        return false;
    }
    print_spread(left, n);
    print_spread(gaps, n);
    printf(" %u |\n", n_within);
    return n_within * 100 >= n * percent;
}

bool
paths_lossy(unsigned n_jobs)
{
    size_t size = N_LOSSY * sizeof *lossy_runs;

    lossy_runs = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lossy_runs == MAP_FAILED) {
        perror("mmap");
        exit(1);
    }
    printf(
        "\n| 20 %% loss | runs | left after intervals | 95 %% | gap, intervals | 95 %% | within bound |\n"
        "|---|---|---|---|---|---|---|\n");
    bool ok = !jobs_run(n_jobs, work_lossy);
    ok = ok && judge_lossy(false, LOSSY_BOTH);
    ok = ok && judge_lossy(true, LOSSY_ONE);
    munmap(lossy_runs, size);
    return ok;
}

int
paths_run(unsigned n_jobs)
{
    printf("| broken | confirmed | after s | wrong ones | ways told of as bad |\n"
           "|---|---|---|---|---|\n");
    unsigned n_failed = jobs_run(n_jobs, work);
    printf("%d faults and a quiet time, %s\n", N_FAULTS,
           n_failed ? "FAIL" : "all as they have to be");
    bool lossy = paths_lossy(n_jobs);
    printf("%s links that lose\n", lossy ? "ok" : "FAIL");
    printf("%d passed, %d failed\n", !n_failed + lossy, (n_failed != 0) + !lossy);
    return n_failed || !lossy;
}
