/* SPDX-License-Identifier: Apache-2.0
 *
 * castd: the controller.
 *
 * Level-triggered: whenever the registry changes, what follows from that is
 * computed anew and the difference written, in transactions of bounded size
 * (work.c).  No state lives in this process only: it may be killed and started
 * at any time.  A second castd waits for the OVSDB lock, to take over.  What the
 * registry refuses is computed and written again after a while.
 */
#include <config.h>

#include "ctl/castd/castd.h"
#include "ctl/castd/follow.h"
#include "ctl/castd/reading.h"

#include <limits.h>

#include "ctl/process/daemon-common.h"
#include "ctl/process/listing.h"
#include "ctl/process/metrics.h"
#include "ctl/process/metrics-server.h"
#include "ctl/process/openmetrics.h"
#include "ctl/registry/json.h"
#include "ctl/registry/reach.h"
#include "ctl/registry/retry.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/summary.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "ovsdb-idl.h"
#include "random.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(castd);

#define LOCK_NAME          "rocecast_castd"
#define DEFAULT_FABRIC_MTU 9000

/* jemalloc, which castd is linked with, reads it (jemalloc(3)): huge pages, as rows are read in no order. */
extern const char *malloc_conf;
const char *malloc_conf = "thp:always";

struct castd_loop {
    struct ovsdb_idl *idl;
    struct registry_reach reach;
    struct ovsdb_idl_txn *txn; /* in flight. */
    bool pending;              /* the registry changed since the last computation. */
    unsigned int seqno;
    char *status;  /* what status_text() said last. */
    char *problem; /* what is wrong with the schema; NULL: nothing. */
    struct reading reading;
    struct mirror mirror;
    struct castd_topology topology;
    struct work work;
    struct registry_retry retry;

    /* Since the start. */
    uint64_t n_connections;              /* to the registry. */
    uint64_t n_transactions, n_refusals; /* that it has taken, with changes, and refused. */
    bool connected;                      /* when looked at last. */
};

static const char *
status_text(const struct castd_loop *loop)
{
    return !registry_reach_is_served(&loop->reach) ? "registry not connected"
           : loop->problem                         ? loop->problem
           : !loop->reading.done                   ? "reading the registry"
           : ovsdb_idl_has_lock(loop->idl)         ? "active"
                                                   : "standby: another castd is active";
}

static bool
may_compute(const struct castd_loop *loop)
{
    return ovsdb_idl_has_lock(loop->idl) && registry_reach_is_served(&loop->reach) && !loop->problem
           && loop->reading.done;
}

static void
status_cb(struct unixctl_conn *conn, int argc OVS_UNUSED, const char *argv[] OVS_UNUSED,
          void *loop_)
{
    const struct castd_loop *loop = loop_;
    char *refusal = may_compute(loop) ? registry_retry_text(&loop->retry) : NULL;
    char *reply =
        xasprintf("%s%s%s", status_text(loop), refusal ? ", but " : "", refusal ? refusal : "");

    unixctl_command_reply(conn, reply);
    free(reply);
    free(refusal);
}

static struct json *
counters(const struct castd_loop *loop)
{
    const struct work_counters *c = &loop->work.counters;
    struct json *o = json_object_create();

    ctl_put_int(o, "computations", c->n_computations);
    ctl_put_int(o, "groups_computed", c->n_groups);
    ctl_put_int(o, "conflicts", c->n_conflicts);
    ctl_put_int(o, "transactions", loop->n_transactions);
    ctl_put_int(o, "refusals", loop->n_refusals);
    ctl_put_int(o, "connections", loop->n_connections);
    return o;
}

static void
counters_cb(struct unixctl_conn *conn, const void *loop_, bool as_json)
{
    struct json *o = counters(loop_);

    listing_reply(conn, o, as_json);
    json_destroy(o);
}

/* The counters, and how castd is. */
static struct json *
metrics_of(const struct castd_loop *loop)
{
    struct json *o = counters(loop);

    metrics_put_program(o);
    json_object_put(o, "active", json_boolean_create(may_compute(loop)));
    json_object_put(o, "connected", json_boolean_create(ovsdb_idl_is_connected(loop->idl)));
    return o;
}

/* Of castd, and of the registry as castd last saw it, if it has seen all of it. */
static char *
metrics_text(const void *loop_)
{
    const struct castd_loop *loop = loop_;
    struct openmetrics *m = metrics_create();
    struct json *castd = metrics_of(loop);

    metrics_add_castd(m, castd);
    json_destroy(castd);
    if (loop->reading.done) {
        struct json *summary = registry_summary(loop->idl);

        metrics_add_registry(m, summary);
        json_destroy(summary);
    }
    return openmetrics_finish(m);
}

/* With -j castd's own only: castctl has the registry's from there. */
static void
metrics_cb(struct unixctl_conn *conn, const void *loop, bool as_json)
{
    if (as_json) {
        struct json *o = metrics_of(loop);

        listing_reply(conn, o, true);
        json_destroy(o);
    } else {
        char *text = metrics_text(loop);

        unixctl_command_reply(conn, text);
        free(text);
    }
}

/* Fills a transaction. */
static void
compute(struct castd_loop *loop, struct ovsdb_idl_txn *txn)
{
    const struct rrec_global *global = rrec_global_first(loop->idl);
    struct castd c;

    if (!global) {
        rrec_global_set_fabric_mtu(rrec_global_insert(txn), DEFAULT_FABRIC_MTU);
        return;
    }
    /* castctl counts its transactions there.  If one came in between, this one is tried again. */
    rrec_global_verify_next_cfg(global);
    castd_load(&c, loop->idl, &loop->mirror, &loop->topology, &loop->work);
    castd_sync_nodes(&c);
    while (castd_take(&c)) {
        castd_replace(&c);
        castd_find_lost(&c);
        castd_connect(&c);
        castd_allocate(&c);
        castd_rollout(&c);
        castd_sync(&c);
        castd_report(&c);
        castd_number_messages(&c);
    }
    castd_sync_rest(&c);
    castd_connect_rest(&c);
    castd_find_faults(&c, time_wall_msec());
    castd_unload(&c);
}

static void
run_txn(struct castd_loop *loop)
{
    enum ovsdb_idl_txn_status status = ovsdb_idl_txn_commit(loop->txn);

    switch (status) {
    case TXN_INCOMPLETE: return;
    case TXN_UNCHANGED:
    case TXN_SUCCESS:
        loop->n_transactions += status == TXN_SUCCESS;
        work_done(&loop->work);
        loop->pending |= work_is_left(&loop->work);
        registry_retry_taken(&loop->retry);
        break;
    case TXN_TRY_AGAIN:
    case TXN_NOT_LOCKED:
        work_again(&loop->work, status == TXN_TRY_AGAIN);
        loop->pending = true;
        break;
    case TXN_ERROR:
    case TXN_UNCOMMITTED:
    case TXN_ABORTED:
    default:
        work_again(&loop->work, false);
        loop->pending = true;
        loop->n_refusals++;
        registry_retry_refused(&loop->retry, ovsdb_idl_txn_get_error(loop->txn), time_msec(),
                               random_uint32());
        break;
    }
    ovsdb_idl_txn_destroy(loop->txn);
    loop->txn = NULL;
}

/* A registry may be converted to another schema while castd runs. */
static void
check_schema(struct castd_loop *loop)
{
    char *problem = registry_schema_problem(loop->idl, REGISTRY_ALL_TABLES);

    free(loop->problem);
    loop->problem = problem ? xasprintf("the registry is refused: %s", problem) : NULL;
    free(problem);
}

static void
note_connection(struct castd_loop *loop)
{
    bool connected = registry_reach_is_served(&loop->reach);

    loop->n_connections += connected && !loop->connected;
    loop->connected = connected;
}

static void
run(struct castd_loop *loop)
{
    registry_reach_run(&loop->reach);
    note_connection(loop);
    if (loop->seqno != ovsdb_idl_get_seqno(loop->idl)) {
        loop->seqno = ovsdb_idl_get_seqno(loop->idl);
        loop->pending = true;
        check_schema(loop);
    }
    if (registry_reach_is_served(&loop->reach) && !loop->problem) {
        reading_run(&loop->reading, loop->idl);
    }
    if (loop->reading.done) {
        follow(loop->idl, &loop->mirror, &loop->work);
    } else {
        ovsdb_idl_track_clear(loop->idl); /* follow() begins with all rows. */
    }
    /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): xstrdup() always has memory. */
    if (strcmp(loop->status, status_text(loop))) {
        free(loop->status);
        loop->status = xstrdup(status_text(loop));
        loop->pending = true;
        VLOG(loop->problem ? VLL_ERR : VLL_INFO, "%s", loop->status);
    }
    if (loop->txn) {
        run_txn(loop);
    }
    loop->pending |= !work_pause(&loop->work, time_wall_msec());
    if (!loop->txn && loop->pending && may_compute(loop)
        && !registry_retry_waits(&loop->retry, time_msec())) {
        loop->pending = false;
        loop->txn = ovsdb_idl_txn_create(loop->idl);
        compute(loop, loop->txn);
        run_txn(loop);
    }
}

static void
wait(struct castd_loop *loop)
{
    registry_reach_wait(&loop->reach);
    if (loop->txn) {
        ovsdb_idl_txn_wait(loop->txn);
    } else if (loop->pending && may_compute(loop)) {
        poll_timer_wait_until(loop->retry.why ? loop->retry.next : 0);
    } else if (may_compute(loop)) {
        long long pause = work_pause(&loop->work, time_wall_msec());

        if (pause != LLONG_MAX) {
            poll_timer_wait(pause);
        }
    }
}

int
main(int argc, char *argv[])
{
    static struct castd_loop loop = {.pending = true};
    struct daemon daemon;

    loop.status = xstrdup("");
    work_init(&loop.work);
    mirror_init(&loop.mirror, &loop.work);
    daemon_init(&daemon, argc, argv, DAEMON_CONTROLLER, "controller");
    daemon_start(&daemon);
    loop.idl = ovsdb_idl_create(daemon.db, &rrec_idl_class, true, true);
    ovsdb_idl_set_lock(loop.idl, LOCK_NAME);
    ovsdb_idl_set_write_changed_only_all(loop.idl, true);
    registry_reach_init(&loop.reach, loop.idl, daemon.db);
    reading_init(&loop.reading, loop.idl);
    follow_init(loop.idl);
    unixctl_command_register("rocecast/status", "", 0, 0, status_cb, &loop);
    listing_register("rocecast/counters", counters_cb, &loop);
    listing_register(METRICS_COMMAND, metrics_cb, &loop);
    struct metrics_server *server =
        metrics_server_create(daemon.metrics_listener, metrics_text, &loop);
    daemon_ready(&daemon);

    while (!daemon.exiting) {
        daemon_run(&daemon);
        run(&loop);
        metrics_server_run(server);
        if (!loop.problem
            && (ovsdb_idl_has_lock(loop.idl) || ovsdb_idl_is_lock_contended(loop.idl))) {
            daemon_serving(&daemon); /* active or standby. */
        }
        wait(&loop);
        metrics_server_wait(server);
        daemon_wait(&daemon);
        poll_block();
    }

    /* What it has of the registry is not freed: with thousands of groups that would take seconds. */
    metrics_server_destroy(server);
    daemon_done(&daemon);
    return 0;
}
