/* SPDX-License-Identifier: Apache-2.0
 *
 * A measurement (see run.h).
 */
#include <config.h>

#include "bench/castscale/run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/castscale/agents.h"
#include "bench/castscale/client.h"
#include "ctl/registry/allocator.h"
#include "ctl/registry/paths.h"
#include "ctl/registry/request.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "unixctl.h"
#include "util.h"

#define STOP_PATIENCE_MSEC 10000

struct world {
    const struct run_options *options;
    struct report *report;
    FILE *out;
    char *folder; /* of the registry, sockets and logs. */
    char *db;     /* the registry's remote. */
    char *own;    /* castscale's own folder, with castd and castctl. */
    struct process parts[N_PARTS];
    struct client *client;
    struct fabric fabric;
    uint32_t random;
};

static double
now_msec(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}

/* Numerical Recipes' generator: which members are chosen is the same in each run. */
static uint32_t
draw(struct world *w, uint32_t n)
{
    w->random = w->random * 1664525 + 1013904223;
    return (uint32_t) ((uint64_t) w->random * n >> 32);
}

/*
 * Processes.
 */

/* Has one of them ended? */
static char *
check_parts(void *w_)
{
    struct world *w = w_;
    char *error = NULL;

    for (size_t i = 0; i < N_PARTS && !error; i++) {
        error = process_check(&w->parts[i]);
    }
    return error;
}

static char *
make_folder(struct world *w)
{
    const char *tmp = getenv("TMPDIR");

    w->folder = xasprintf("%s/castscale.XXXXXX", tmp && tmp[0] ? tmp : "/tmp");
    if (!mkdtemp(w->folder)) {
        char *error = xasprintf("%s: %s", w->folder, ovs_strerror(errno));

        free(w->folder);
        w->folder = NULL;
        return error;
    }
    w->db = xasprintf("unix:%s/db.sock", w->folder);
    return NULL;
}

/* All that is below is ours. */
static void
remove_folder(struct world *w)
{
    const char *const argv[] = {"rm", "-rf", "--", w->folder, NULL};
    char *error;

    if (w->folder) {
        error = process_run("rm", "/tmp", argv);
        if (error) {
            fprintf(stderr, "castscale: %s: %s\n", w->folder, error);
        }
        free(error);
    }
}

static char *
start_registry(struct world *w)
{
    char *schema, *error = rocecast_schema_file(&schema);

    if (error) {
        return error;
    }
    char *file = xasprintf("%s/db", w->folder);
    char *remote = xasprintf("--remote=p%s", w->db),
         *control = xasprintf("--unixctl=%s/ovsdb.ctl", w->folder);
    const char *const create[] = {"ovsdb-tool", "create", file, schema, NULL};
    const char *const serve[] = {"ovsdb-server", remote, control, file, NULL};

    error = process_run("ovsdb-tool", w->folder, create);
    unsigned preloaded = allocator_preload();
    error =
        error ? error : process_start(&w->parts[PART_REGISTRY], "ovsdb-server", w->folder, serve);
    allocator_unload(preloaded);
    free(file);
    free(remote);
    free(control);
    free(schema);
    return error;
}

static char *
start_castd(struct world *w)
{
    char *program = xasprintf("%s/castd", w->own), *db = xasprintf("--db=%s", w->db);
    char *control = xasprintf("--unixctl=%s/castd.ctl", w->folder);
    const char *const argv[] = {program, db, control, NULL};
    struct process *p = &w->parts[PART_CASTD];

    process_uninit(p);
    char *error = process_start(p, "castd", w->folder, argv);
    free(program);
    free(db);
    free(control);
    return error;
}

static void
be_agents(const void *w_)
{
    const struct world *w = w_;

    agents_run(w->db, NULL);
}

/* Of castd: groups that it has computed since its start. */
static char *
read_computed(struct world *w, uint64_t *n)
{
    char *path = xasprintf("%s/castd.ctl", w->folder), *argv[] = {(char[]){"-j"}};
    char *result = NULL, *refusal = NULL, *error = NULL;
    struct jsonrpc *connection;
    int code = unixctl_client_create(path, &connection);

    if (!code) {
        code = unixctl_client_transact(connection, "rocecast/counters", 1, argv, &result, &refusal);
        jsonrpc_close(connection);
    }
    if (code || !result) {
        error = xasprintf("%s: %s", path, code ? ovs_strerror(code) : refusal);
    } else {
        struct json *o = json_from_string(result);
        *n = (uint64_t) json_integer(shash_find_data(json_object(o), "groups_computed"));
        json_destroy(o);
    }
    free(path);
    free(result);
    free(refusal);
    return error;
}

/*
 * Requests.
 */

static char *
fill_topology(struct ovsdb_idl *idl OVS_UNUSED, struct ovsdb_idl_txn *txn, const void *w_)
{
    const struct world *w = w_;

    fabric_insert(&w->fabric, txn);
    return NULL;
}

struct batch {
    const struct fabric *f;
    unsigned first, n;
};

static char *
fill_groups(struct ovsdb_idl *idl OVS_UNUSED, struct ovsdb_idl_txn *txn, const void *batch_)
{
    const struct batch *batch = batch_;

    for (unsigned i = 0; i < batch->n; i++) {
        fabric_insert_group(batch->f, txn, batch->first + i);
    }
    return NULL;
}

static char *
fill_member(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn, const void *member)
{
    char *why;

    return request_member_add(idl, txn, member, &why) ? why : NULL;
}

static char *
fill_guest(struct ovsdb_idl *idl OVS_UNUSED, struct ovsdb_idl_txn *txn, const void *f)
{
    fabric_add_guest(f, txn);
    return NULL;
}

static char *
fill_no_guest(struct ovsdb_idl *idl, struct ovsdb_idl_txn *txn OVS_UNUSED, const void *f OVS_UNUSED)
{
    fabric_remove_guest(idl);
    return NULL;
}

/*
 * What is measured.
 */

static char *
set_up(struct world *w)
{
    int64_t request;
    char *error = make_folder(w);

    error = error ? error : start_registry(w);
    error = error ? error : process_fork(&w->parts[PART_AGENTS], "agents", w->folder, be_agents, w);
    error = error ? error : start_castd(w);
    if (error) {
        return error;
    }
    w->client = client_open(w->db, (int) w->options->patience_sec * 1000, check_parts, w);
    error = client_wait_castd(w->client);
    double begin = now_msec();
    error = error ? error : client_request(w->client, fill_topology, w, "the topology", &request);
    error = error ? error : client_wait_agents(w->client, request);
    w->report->agents_sec = (now_msec() - begin) / 1e3;
    return error;
}

static char *
measure_fill(struct world *w, struct step *step, unsigned n_before)
{
    double begin = now_msec();
    char *error = NULL;

    for (unsigned i = n_before; i < step->n_groups && !error; i += w->options->batch) {
        const struct batch batch = {&w->fabric, i, MIN(w->options->batch, step->n_groups - i)};
        int64_t request;

        error = client_request(w->client, fill_groups, &batch, "groups", &request);
        error = error ? error : client_wait_answer(w->client, request);
    }
    error = error ? error : client_wait_groups(w->client, &w->fabric, step->n_groups);
    step->fill_sec = (now_msec() - begin) / 1e3;
    return error;
}

/* A member that is chosen by chance. */
struct chosen {
    char group[FABRIC_NAME_SIZE], host[FABRIC_NAME_SIZE];
    struct request_member member;
};

static void
choose(struct world *w, const struct step *step, struct chosen *c)
{
    unsigned group = draw(w, step->n_groups);

    fabric_group_name(group, c->group);
    fabric_member_host(&w->fabric, group, draw(w, w->fabric.n_members), c->host);
    c->member = fabric_member(group, c->group, c->host);
}

/* The CPU of one change is what there is between a call with -1 and one with 1. */
static void
count_cpu(const struct world *w, struct step *step, int sign)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        step->cpu_msec[i] += sign * (int64_t) process_usage(&w->parts[i]).cpu_msec;
    }
}

static char *
measure_change(struct world *w, struct step *step)
{
    struct chosen c;
    int64_t request;

    choose(w, step, &c);
    char *error = client_follow(w->client, c.group, c.host);
    error = error ? error : client_wait_quiet(w->client);
    count_cpu(w, step, -1);
    double begin = now_msec();
    error = error ? error : client_remove_member(w->client, c.group, c.host);
    double removed = now_msec();
    error = error ? error : client_wait_quiet(w->client);
    double again = now_msec();
    error = error ? error : client_request(w->client, fill_member, &c.member, "a member", &request);
    error = error ? error : client_wait_answer(w->client, request);
    double answered = now_msec();
    error = error ? error : client_wait_active(w->client, c.group, c.host);
    double active = now_msec();
    error = error ? error : client_wait_agents(w->client, request);
    if (!error) {
        samples_add(&step->samples[MEASURE_REMOVE], removed - begin);
        samples_add(&step->samples[MEASURE_ANSWER], answered - again);
        samples_add(&step->samples[MEASURE_ACTIVE], active - again);
        samples_add(&step->samples[MEASURE_AGENTS], now_msec() - again);
        step->n_changes += 2;
    }
    count_cpu(w, step, 1);
    return error;
}

static char *
measure_changes(struct world *w, struct step *step)
{
    uint64_t before = 0, after = 0;
    char *error = client_wait_quiet(w->client);

    error = error ? error : read_computed(w, &before);
    for (unsigned i = 0; i < w->options->n_changes && !error; i++) {
        error = measure_change(w, step);
    }
    error = error ? error : read_computed(w, &after);
    step->n_computed = after - before;
    return error;
}

static char *
castctl_add(struct world *w, const struct request_member *m)
{
    char *program = xasprintf("%s/castctl", w->own), *db = xasprintf("--db=%s", w->db);
    char *qpn = xasprintf("%" PRId64, m->qpn), *rkey = xasprintf("%" PRId64, m->rkey);
    char *va = xasprintf("0x%" PRIx64, m->va), *len = xasprintf("%" PRId64, m->len);
    const char *const argv[] = {program, db,  "--wait=agents", "member", "add",  m->group, m->host,
                                "--qpn", qpn, "--rkey",        rkey,     "--va", va,       "--len",
                                len,     NULL};
    char *error = process_run("castctl", w->folder, argv);

    free(program);
    free(db);
    free(qpn);
    free(rkey);
    free(va);
    free(len);
    return error;
}

static char *
measure_castctl(struct world *w, struct step *step)
{
    struct chosen c;

    choose(w, step, &c);
    char *error = client_follow(w->client, c.group, c.host);
    error = error ? error : client_remove_member(w->client, c.group, c.host);
    error = error ? error : client_wait_quiet(w->client);
    double begin = now_msec();
    error = error ? error : castctl_add(w, &c.member);
    if (!error) {
        samples_add(&step->samples[MEASURE_CASTCTL], now_msec() - begin);
        error = client_wait_active(w->client, c.group, c.host);
    }
    return error;
}

/* A host comes, or goes: each node gets a route, or loses one. */
static char *
measure_topology(struct world *w, struct step *step, client_filler *fill)
{
    int64_t request;
    char *error = client_wait_quiet(w->client);
    double begin = now_msec();

    error = error ? error : client_request(w->client, fill, &w->fabric, "a host", &request);
    error = error ? error : client_wait_agents(w->client, request);
    if (!error) {
        samples_add(&step->samples[MEASURE_TOPOLOGY], now_msec() - begin);
    }
    return error;
}

/* castd serves again when it has had all agents apply a generation. */
static char *
ask_all(struct world *w)
{
    int64_t request;
    char *error = client_request(w->client, NULL, NULL, "a request", &request);

    return error ? error : client_wait_agents(w->client, request);
}

static char *
measure_start(struct world *w, struct step *step)
{
    char *error = client_wait_quiet(w->client);
    double begin = now_msec();

    if (!error && !process_stop(&w->parts[PART_CASTD], (int) w->options->patience_sec * 1000)) {
        error = xasprintf("castd has not ended %u s after SIGTERM", w->options->patience_sec);
    }
    double ended = now_msec();
    error = error ? error : start_castd(w);
    error = error ? error : ask_all(w);
    step->stop_msec = ended - begin;
    step->start_sec = (now_msec() - ended) / 1e3;
    step->restarted = !error;
    return error;
}

static char *
measure_step(struct world *w, struct step *step, unsigned n_before)
{
    char *error = measure_fill(w, step, n_before);

    error = error ? error : measure_changes(w, step);
    for (unsigned i = 0; i < w->options->n_castctl && !error; i++) {
        error = measure_castctl(w, step);
    }
    error = error ? error : client_follow(w->client, NULL, NULL);
    for (unsigned i = 0; i < w->options->n_topology && !error; i++) {
        error = measure_topology(w, step, i % 2 ? fill_no_guest : fill_guest);
    }
    if (!error && w->options->n_topology % 2) {
        struct step unmeasured = {.n_groups = 0};

        error = measure_topology(w, &unmeasured, fill_no_guest);
        step_uninit(&unmeasured);
    }
    for (size_t i = 0; i < N_PARTS; i++) {
        step->use[i] = process_usage(&w->parts[i]);
    }
    return error;
}

static char *
measure(struct world *w)
{
    char *error = set_up(w);
    unsigned n_before = 0;

    if (error) {
        return error;
    }
    report_print_head(w->report, w->out);
    for (size_t i = 0; i < w->options->n_steps && !error; i++) {
        struct step *step = &w->report->steps[i];

        *step = (struct step){.n_groups = w->options->groups[i]};
        error = measure_step(w, step, n_before);
        if (error) {
            step_uninit(step);
        } else {
            w->report->n_steps++;
            n_before = step->n_groups;
            report_print_step(w->report, step, w->out);
            error = measure_start(w, step);
            report_print_start(step, w->out);
        }
    }
    return error;
}

static void
tear_down(struct world *w)
{
    client_close(w->client);
    for (size_t i = 0; i < N_PARTS; i++) {
        process_stop(&w->parts[i], STOP_PATIENCE_MSEC);
        process_uninit(&w->parts[i]);
    }
    remove_folder(w);
    free(w->folder);
    free(w->db);
    free(w->own);
}

char *
run(const struct run_options *options, struct report *report, FILE *out)
{
    struct world w = {
        .options = options,
        .report = report,
        .out = out,
        .own = rocecast_own_folder(),
        .random = options->seed,
    };

    fabric_init(&w.fabric, options->n_nodes, options->n_receivers, options->n_members);
    *report = (struct report){
        .fabric = w.fabric,
        .steps = xcalloc(options->n_steps, sizeof *report->steps),
    };
    char *error = measure(&w);
    if (!error) {
        report_print_end(report, out);
    }
    tear_down(&w);
    return error;
}

void
run_uninit(struct report *report)
{
    for (size_t i = 0; i < report->n_steps; i++) {
        step_uninit(&report->steps[i]);
    }
    free(report->steps);
}
