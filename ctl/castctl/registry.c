/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl registry: makes the files of the registry's servers, saves what the registry has, and
 * brings it back.
 *
 * Open vSwitch's tools do the work.  A file is made in a folder beside its place, which it gets when
 * it is whole; what is in that place already stays.
 */
#include <config.h>

#include "ctl/castctl/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/castctl/server.h"
#include "ctl/castctl/tool.h"
#include "ctl/registry/paths.h"
#include "ctl/registry/schema.h"
#include "ctl/registry/values.h"
#include "lockfile.h"
#include "openvswitch/poll-loop.h"
#include "svec.h"
#include "timeval.h"
#include "util.h"

#define LEAVE_POLL_MSEC 100

char *
registry_run_tool(const struct ctl *ctl, const char *what, struct svec argv)
{
    char *output, *why;

    switch (tool_read(ctl, &argv, &output, &why)) {
    case TOOL_DONE: return output;
    case TOOL_TOO_LATE: ctl_fail(CTL_UNAVAILABLE, "%s: %s", what ? what : ctl->command->name, why);
    case TOOL_FAILED: break;
    }
    ctl_refuse(ctl, "%s%s%s", what ? what : "", what ? ": " : "", why);
}

char *
registry_schema(const struct ctl *ctl)
{
    char *file;
    char *why = rocecast_schema_file(&file);

    if (why) {
        ctl_refuse(ctl, "%s", why);
    }
    return file;
}

char *
registry_schema_version(const struct ctl *ctl)
{
    char *file = registry_schema(ctl);
    char *version = registry_run_tool(ctl, file, tool_ovsdb_tool("schema-version", file, NULL));

    free(file);
    return version;
}

/*
 * Files.
 */

/* The folder that 'file' is in, malloc'd. */
static char *
parent_of(const char *file)
{
    const char *slash = strrchr(file, '/');

    return !slash          ? xstrdup(".")
           : slash == file ? xstrdup("/")
                           : xmemdup0(file, (size_t) (slash - file));
}

/* Where 'file' is made: a folder beside it.  Refuses if there is something in its place. */
static const char *
make_room(const struct ctl *ctl, const char *file)
{
    char *parent = parent_of(file);
    struct stat st;

    if (!lstat(file, &st)) {
        ctl_refuse(ctl, "%s: %s", file, ovs_strerror(EEXIST));
    }
    char *absolute = realpath(parent, NULL);
    const char *folder = absolute ? tool_scratch(absolute) : NULL;
    if (!folder) {
        ctl_refuse(ctl, "%s: %s", file, ovs_strerror(errno));
    }
    free(absolute);
    free(parent);
    return folder;
}

/* Writes what is still in memory of a file, or of a folder, to the disk. */
static void
sync_file(const struct ctl *ctl, const char *name, const char *about)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || fsync(fd)) {
        ctl_refuse(ctl, "%s: %s", about, ovs_strerror(errno));
    }
    close(fd);
}

/* Puts a file that is whole into its place. */
static void
publish(const struct ctl *ctl, const char *made, const char *file)
{
    char *parent = parent_of(file);

    sync_file(ctl, made, file);
    if (tool_is_interrupted()) {
        ctl_fail(CTL_UNAVAILABLE, "%s: interrupted", ctl->command->name);
    }
    /* Not all file systems can do the one, nor the other. */
    if (renameat2(AT_FDCWD, made, AT_FDCWD, file, RENAME_NOREPLACE)
        && ((errno != EINVAL && errno != ENOSYS) || link(made, file))) {
        ctl_refuse(ctl, "%s: %s", file, ovs_strerror(errno));
    }
    sync_file(ctl, parent, file);
    free(parent);
}

/* All rows of tables that every version has. */
#define ROWS_QUERY                                                         \
    "[\"rocecast\",{\"op\":\"select\",\"table\":\"Global\",\"where\":[]}," \
    "{\"op\":\"select\",\"table\":\"Node\",\"where\":[]},"                 \
    "{\"op\":\"select\",\"table\":\"Host\",\"where\":[]},"                 \
    "{\"op\":\"select\",\"table\":\"Group\",\"where\":[]}]"

/* How many rows the tables of ROWS_QUERY have. */
static size_t
count_rows(const struct ctl *ctl, const char *file, const char *copy)
{
    char *text = registry_run_tool(ctl, file, tool_ovsdb_tool("query", copy, ROWS_QUERY, NULL));
    struct json *answer = json_from_string(text);
    size_t n = 0;

    for (size_t i = 0; answer->type == JSON_ARRAY && i < answer->array.n; i++) {
        const struct json *rows = ctl_get(answer->array.elems[i], "rows");

        if (!rows) { /* there is no such table. */
            break;
        }
        n += rows->array.n;
    }
    json_destroy(answer);
    free(text);
    return n;
}

static void
check_readable(const struct ctl *ctl, const char *file)
{
    struct stat st;

    if (access(file, R_OK) || stat(file, &st)) {
        ctl_refuse(ctl, "%s: %s", file, ovs_strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        ctl_refuse(ctl, "%s: it is no regular file", file);
    }
}

/* Gives the database 'copy', of 'file', this version's schema. */
static void
convert_copy(const struct ctl *ctl, const char *file, const char *copy, const char *schema)
{
    size_t n_rows = count_rows(ctl, file, copy);

    free(registry_run_tool(ctl, file, tool_ovsdb_tool("convert", copy, schema, NULL)));
    /* ovsdb-tool drops, without a word, what the new schema does not allow. */
    if (count_rows(ctl, file, copy) != n_rows) {
        ctl_refuse(ctl, "%s: its rows do not fit into this version's schema", file);
    }
}

void
registry_copy_database(const struct ctl *ctl, const char *file, const char *copy)
{
    check_readable(ctl, file);
    free(registry_run_tool(ctl, NULL, tool_ovsdb_tool("compact", file, copy, NULL)));

    char *name = registry_run_tool(ctl, file, tool_ovsdb_tool("db-name", copy, NULL));
    if (strcmp(name, "rocecast")) {
        ctl_refuse(ctl, "%s: it has database '%s', not 'rocecast'", file, name);
    }
    char *its = registry_run_tool(ctl, file, tool_ovsdb_tool("db-version", copy, NULL));
    char *ours = registry_schema_version(ctl), *schema = registry_schema(ctl);
    char *needs =
        registry_run_tool(ctl, file, tool_ovsdb_tool("needs-conversion", copy, schema, NULL));
    if (!strcmp(needs, "yes")) {
        if (strverscmp(its, ours) >= 0) {
            ctl_refuse(ctl, "%s: its schema is another one, of version %s; this castctl has %s",
                       file, its, ours);
        }
        convert_copy(ctl, file, copy, schema);
    }
    free(name);
    free(its);
    free(ours);
    free(schema);
    free(needs);
}

/* Refuses the file of a server that runs: what clients write after it was read would be lost.  Until
 * castctl ends none can be started.  A file without a lock has never been a server's. */
static void
lock_database(const struct ctl *ctl, const char *file)
{
    char *lock = lockfile_name(file);
    int fd = open(lock, O_RDWR | O_CLOEXEC);
    struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fd < 0) {
        if (errno != ENOENT) {
            ctl_refuse(ctl, "%s: whether a server uses it cannot be found out: %s: %s", file, lock,
                       ovs_strerror(errno));
        }
    } else if (fcntl(fd, F_SETLK, &held)) {
        if (fcntl(fd, F_GETLK, &held) || held.l_type == F_UNLCK) {
            ctl_refuse(ctl, "%s: %s: it cannot be locked", file, lock);
        }
        ctl_refuse(
            ctl,
            "%s: the server that uses it runs, as process %ld: stop it first, or take a backup",
            file, (long) held.l_pid);
    }
    free(lock);
}

/* The address of --cluster; NULL: it is not given. */
static const char *
cluster_address(const struct ctl *ctl)
{
    const char *address = ctl->options[OPT_CLUSTER];

    if (address && (strchr(address, ',') || !db_is_valid(address))) {
        ctl_fail(CTL_USAGE, "--cluster %s: " REMOTE_RULE, address);
    }
    return address;
}

static void
registry_init(struct ctl *ctl)
{
    const char *file = ctl->argv[0], *old = ctl->argc > 1 ? ctl->argv[1] : NULL;
    const char *address = cluster_address(ctl);
    const char *folder = make_room(ctl, file);
    char *made = xasprintf("%s/made", folder), *copy = xasprintf("%s/copy", folder);
    char *from = old ? copy : registry_schema(ctl);

    if (old) {
        check_readable(ctl, old);
        lock_database(ctl, old);
        registry_copy_database(ctl, old, copy);
    }
    if (address) {
        free(registry_run_tool(ctl, file,
                               tool_ovsdb_tool("create-cluster", made, from, address, NULL)));
    } else if (!old) {
        free(registry_run_tool(ctl, file, tool_ovsdb_tool("create", made, from, NULL)));
    }
    publish(ctl, address || !old ? made : copy, file);
}

static void
registry_join(struct ctl *ctl)
{
    const char *file = ctl->argv[0], *address = cluster_address(ctl);

    for (int i = 1; i < ctl->argc; i++) {
        if (strchr(ctl->argv[i], ',') || !db_is_valid(ctl->argv[i])) {
            ctl_fail(CTL_USAGE, "ADDRESS %s: " REMOTE_RULE, ctl->argv[i]);
        }
        if (!strcmp(ctl->argv[i], address)) {
            ctl_fail(CTL_USAGE, "ADDRESS %s: is this server's own (--cluster)", ctl->argv[i]);
        }
    }
    char *made = xasprintf("%s/made", make_room(ctl, file));
    struct svec argv = tool_ovsdb_tool("join-cluster", made, "rocecast", address, NULL);
    for (int i = 1; i < ctl->argc; i++) {
        svec_add(&argv, ctl->argv[i]);
    }
    free(registry_run_tool(ctl, file, argv));
    publish(ctl, made, file);
}

/*
 * Contents.
 */

static void
registry_backup(struct ctl *ctl)
{
    const char *file = ctl->argv[0];
    struct server leader;

    ctl_check_db(ctl);
    char *made = xasprintf("%s/made", make_room(ctl, file)), *why;
    int out = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (out < 0) {
        ctl_refuse(ctl, "%s: %s", file, ovs_strerror(errno));
    }
    server_find_leader(ctl, &leader);
    struct svec argv = tool_ovsdb_client(ctl, "backup", leader.remote);
    svec_add(&argv, "rocecast");
    if (tool_run(ctl, &argv, out, &why) != TOOL_DONE) {
        if (strstr(why, "write to stdout failed")) {
            ctl_refuse(ctl, "%s: there is no room for it", file);
        }
        ctl_fail(CTL_UNAVAILABLE, "registry %s: %s", leader.remote, why);
    }
    close(out);
    /* ovsdb-client notices only some of what it cannot write. */
    registry_check_whole(ctl, file, made);
    publish(ctl, made, file);
    server_uninit(&leader);
}

/*
 * A server of a cluster.
 */

/* Another try soon, unless that would be past the deadline. */
static bool
may_wait(const struct ctl *ctl)
{
    if (time_msec() + LEAVE_POLL_MSEC >= ctl->deadline) {
        return false;
    }
    poll_timer_wait(LEAVE_POLL_MSEC);
    poll_block();
    return true;
}

/* The others may count a server, and be connected to it, before it knows itself that it has joined;
 * it does not leave until then. */
static void
wait_until_joined(const struct ctl *ctl, const char *control)
{
    for (;;) {
        struct json *status = registry_cluster_status(ctl, control);
        bool joining = !strcmp(ctl_get_string(status, "status"), "joining cluster");
        size_t n = ctl_get(status, "members")->array.n;

        json_destroy(status);
        if (!joining) {
            if (n == 1) {
                ctl_refuse(ctl, "%s: it is the only server of its cluster", control);
            }
            return;
        }
        if (!may_wait(ctl)) {
            ctl_fail(CTL_UNAVAILABLE, "%s: it has not joined its cluster in %d s", control,
                     ctl->timeout);
        }
    }
}

/* Has the server begin to leave. */
static void
begin_to_leave(const struct ctl *ctl, const char *control)
{
    char *answer;

    switch (ctl_control_run(ctl, control, "cluster/leave", (const char *[]){"rocecast", NULL},
                            &answer)) {
    case CTL_OK: break;
    case CTL_UNAVAILABLE: ctl_fail(CTL_UNAVAILABLE, "%s: perhaps it is leaving", answer);
    default:
        if (!strstr(answer, "already in progress leaving")) {
            ctl_refuse(ctl, "%s: %s", control, answer);
        }
    }
    free(answer);
}

static void
registry_leave(struct ctl *ctl)
{
    char *control = registry_control(ctl), *why = NULL;

    wait_until_joined(ctl, control);
    begin_to_leave(ctl, control);
    while (!registry_has_left(ctl, control, &why)) {
        if (!may_wait(ctl)) {
            ctl_fail(CTL_UNAVAILABLE,
                     "%s: the cluster has not let it go in %d s, and does as soon as a majority "
                     "agrees%s%s",
                     control, ctl->timeout, why ? ": " : "", why ? why : "");
        }
        free(why);
    }
    free(control);
}

const struct ctl_command ctl_registry_commands[] = {
    {"registry init", "FILE [OLD]", 1, 2, CTL_LOCAL | FLAG(OPT_CLUSTER), 0, NULL, registry_init,
     "make the file of a registry's server; OLD: with what that backup, or a single server's file, has;\n"
     "        --cluster: it is the first server of a cluster, which others reach there"},
    {"registry join", "FILE ADDRESS...", 2, INT_MAX, CTL_LOCAL | FLAG(OPT_CLUSTER),
     FLAG(OPT_CLUSTER), NULL, registry_join,
     "make the file of one more server of a cluster, whose servers are at ADDRESS;\n"
     "        --cluster: which these reach there"},
    {"registry leave", "[SOCKET]", 0, 1, CTL_LOCAL, 0, NULL, registry_leave,
     "take the server with this control socket, on this machine, out of its cluster"},
    {"registry status", "[SOCKET]", 0, 1, CTL_LOCAL, 0, NULL, registry_status,
     "show the registry's servers, their roles, and how far they are; SOCKET: the members of the\n"
     "        cluster of the server with that control socket"},
    {"registry backup", "FILE", 1, 1, CTL_LOCAL, 0, NULL, registry_backup,
     "save all that the registry has, keys, too, as it is at one moment"},
    {"registry restore", "FILE", 1, 1, CTL_LOCAL, 0, NULL, registry_restore,
     "replace all that the registry has by what a backup has, all of it or nothing"},
    {.name = NULL},
};
