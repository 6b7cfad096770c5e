/* SPDX-License-Identifier: Apache-2.0
 *
 * Capabilities that programs give up, by libcap-ng.
 *
 * They are the calling thread's.  Programs have only one thread when they come here.
 */
#include <config.h>

#include "ctl/process/privileges.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "openvswitch/util.h"
#include "util.h"

static const struct {
    enum privileges from;
    unsigned int capability;
} kept[] = {
    {PRIVILEGES_PORTS, CAP_NET_ADMIN},
    {PRIVILEGES_PORTS, CAP_NET_RAW},
    /* Of kind xdp: to load a program, and to lock memory. */
    {PRIVILEGES_PORTS, CAP_BPF},
    {PRIVILEGES_PORTS, CAP_IPC_LOCK},
    {PRIVILEGES_NETNS, CAP_SYS_ADMIN},
};

/* The bounding set limits what executing a file may give, and no_new_privs excludes that anyway.
 * So it costs nothing that only CAP_SETPCAP may change the set. */
int
privileges_drop(enum privileges keep)
{
    bool permitted[ARRAY_SIZE(kept)];
    capng_select_t sets = CAPNG_SELECT_CAPS | CAPNG_SELECT_AMBIENT;

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        return errno;
    }
    if (capng_get_caps_process()) {
        return EIO;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        permitted[i] =
            keep >= kept[i].from && capng_have_capability(CAPNG_PERMITTED, kept[i].capability);
    }
    if (capng_have_capability(CAPNG_EFFECTIVE, CAP_SETPCAP)) {
        sets |= CAPNG_SELECT_BOUNDS;
    }
    capng_clear(sets);
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
        if (permitted[i]) {
            capng_update(CAPNG_ADD, CAPNG_PERMITTED | CAPNG_EFFECTIVE, kept[i].capability);
        }
    }
    return capng_apply(sets) ? EPERM : 0;
}

void
privileges_join(const char *name)
{
    const struct group *group = getgrnam(name);
    int n = group ? getgroups(0, NULL) : -1;

    if (n >= 0) {
        gid_t *ids = xmalloc(((size_t) n + 1) * sizeof *ids);

        n = getgroups(n, ids);
        ids[MAX(n, 0)] = group->gr_gid;
        ignore(n < 0 || setgroups((size_t) n + 1, ids));
        free(ids);
    }
}

static void
apply_caps(void)
{
    if (capng_apply(CAPNG_SELECT_CAPS)) {
        ovs_abort(errno, "capabilities cannot be changed");
    }
}

int
privileges_access(const char *path, int mode)
{
    if (capng_get_caps_process()) {
        ovs_abort(0, "capabilities cannot be read");
    }
    void *now = capng_save_state();

    for (unsigned int c = 0; c <= CAP_LAST_CAP; c++) {
        capng_update(CAPNG_DROP, CAPNG_EFFECTIVE, c);
    }
    apply_caps();
    int error = faccessat(AT_FDCWD, path, mode, AT_EACCESS) ? errno : 0;
    capng_restore_state(&now);
    apply_caps();
    return error;
}
