/* SPDX-License-Identifier: Apache-2.0
 *
 * Taking a lab down, from its journal alone.
 *
 * What the journal lists is removed in the opposite order.  An object is removed
 * only if it is still the one that was made.  One that has gone already is no
 * error, so 'down' may be repeated, and the same code undoes a start that broke
 * off anywhere.  The journal goes last.  It stays if something could not be
 * removed.  Nothing outlives a reboot but the lab's files.
 */
#include <config.h>

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ctl/registry/values.h"
#include "testbed/castlab/lab.h"
#include "testbed/castlab/netops.h"
#include "testbed/castlab/rdma.h"
#include "util.h"

/* How often to look for users of RDMA devices, and the pause in between. */
#define USER_TRIES 20
#define USER_NSEC  100000000

static unsigned long long
number(const char *text)
{
    return strtoull(text, NULL, 10);
}

static char *
undo_process(struct net *net OVS_UNUSED, const struct journal_entry *e)
{
    return child_stop(lab_process_id(e), false);
}

static char *
undo_netns(struct net *net OVS_UNUSED, const struct journal_entry *e)
{
    return netns_delete(e->fields[0], e->id ? number(e->id) : 0);
}

static char *
undo_tap(struct net *net, const struct journal_entry *e)
{
    return tap_delete(net, e->fields[0], e->id ? (int) number(e->id) : 0);
}

static char *
undo_rule(struct net *net, const struct journal_entry *e)
{
    struct in6_addr from;
    struct rule rule = {.pref = (uint32_t) number(e->fields[0]),
                        .from = &from,
                        .table = (uint32_t) number(e->fields[3])};
    ip6_parse(e->fields[1], &from);
    ip6_prefix_parse(e->fields[2], &rule.to.address, &rule.to.plen);
    return rule_delete(net, &rule);
}

static char *
undo_device_rule(struct net *net, const struct journal_entry *e)
{
    const struct rule rule = {.pref = (uint32_t) number(e->fields[0]),
                              .oif = e->fields[1],
                              .table = (uint32_t) number(e->fields[2])};
    return rule_delete(net, &rule);
}

static char *
undo_local_rule(struct net *net, const struct journal_entry *e)
{
    return local_rule_restore(net, (uint32_t) number(e->fields[0]));
}

static char *
undo_rxe(struct net *net OVS_UNUSED, const struct journal_entry *e)
{
    return rdma_link_delete(e->fields[0], e->id ? (int64_t) number(e->id) : -1);
}

static const struct {
    const char *kind;
    char *(*undo)(struct net *, const struct journal_entry *);
} undoers[] = {
    {"process", undo_process},
    {"netns", undo_netns},
    {"tap", undo_tap},
    {"rule", undo_rule},
    {"rxe", undo_rxe},
    {"device-rule", undo_device_rule},
    {"local-rule", undo_local_rule},
};

/* Returns true if the object is gone.  The journal's reader knows the same kinds. */
static bool
undo(struct net *net, const struct journal_entry *e)
{
    size_t i = 0;
    while (strcmp(undoers[i].kind, e->kind) != 0) {
        i++;
    }
    char *error = undoers[i].undo(net, e);
    if (error) {
        lab_complain("%s", error);
        free(error);
    }
    return !error;
}

static int
remove_one(const char *path, const struct stat *st OVS_UNUSED, int type OVS_UNUSED, struct FTW *ftw)
{
    /* The journal goes after everything else, the folder itself last. */
    if (!ftw->level || (ftw->level == 1 && !strcmp(path + ftw->base, "journal"))) {
        return 0;
    }
    return remove(path) && errno != ENOENT ? errno : 0;
}

static bool
remove_folder(const char *name)
{
    const struct lab_text folder = lab_folder(name);
    const struct lab_text journal = lab_file(name, "journal");
    int error = nftw(folder.text, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    if (!error
        && ((unlink(journal.text) && errno != ENOENT) || (rmdir(folder.text) && errno != ENOENT))) {
        error = errno;
    }
    if (error) {
        lab_complain("%s: %s", folder.text, ovs_strerror(error));
    }
    return !error;
}

/* Says which program still has one of the lab's RDMA devices open. */
static char *
find_user(const char *name, const struct journal_list *list)
{
    const struct journal_entry *e = NULL;
    while ((e = journal_next(list, e, '+', "rxe", NULL))) {
        pid_t pid = rdma_user(e->fields[0]);
        if (pid) {
            return xasprintf("lab '%s': process %ld has RDMA device %s open: end it first, the "
                             "kernel would wait for it",
                             name, (long) pid, e->fields[0]);
        }
    }
    return NULL;
}

/* Gives programs that are just ending a moment to do so. */
static char *
check_unused(const char *name, const struct journal_list *list)
{
    char *error;
    for (int i = 0; (error = find_user(name, list)) && i < USER_TRIES; i++) {
        free(error);
        nanosleep(&(struct timespec){.tv_nsec = USER_NSEC}, NULL);
    }
    return error;
}

int
lab_down(const char *name)
{
    struct journal_list list;
    struct net *net = NULL;
    char *error = lab_read(name, &list);
    if (error) {
        return lab_refuse(error);
    }
    if (lab_former_boot(&list)) {
        journal_list_uninit(&list);
        printf("lab %s: from before this machine booted, only its files are removed\n", name);
        return remove_folder(name) ? EXIT_OK : EXIT_PARTIAL;
    }
    error = lab_enter(name, &list);
    error = error ? error : check_unused(name, &list);
    error = error ? error : net_open(&net, -1);
    if (error) {
        journal_list_uninit(&list);
        return lab_refuse(error);
    }
    bool all_gone = true;
    for (size_t i = list.n; i-- > 0;) {
        if (list.entries[i].op == '+') {
            all_gone &= undo(net, &list.entries[i]);
        }
    }
    net_close(net);
    journal_list_uninit(&list);
    if (!all_gone) {
        lab_complain("lab '%s' is not quite down: its journal is kept, try again", name);
        return EXIT_PARTIAL;
    }
    return remove_folder(name) ? EXIT_OK : EXIT_PARTIAL;
}
