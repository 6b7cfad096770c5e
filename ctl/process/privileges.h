/* SPDX-License-Identifier: Apache-2.0
 *
 * Capabilities.  A program that was started as root, or with some of them, gives them up before
 * it reads what others write.
 */
#ifndef CTL_PROCESS_PRIVILEGES_H
#define CTL_PROCESS_PRIVILEGES_H 1

/* Whose the daemons' sockets are where systemd starts them (systemd/sysusers.conf). */
#define ROCECAST_GROUP           "rocecast"

enum privileges {
    PRIVILEGES_NONE,  /* nothing for good. */
    PRIVILEGES_PORTS, /* what opening ports needs. */
    PRIVILEGES_NETNS, /* CAP_SYS_ADMIN besides, to enter another network namespace. */
};

/* Gives up all other capabilities, and the right to get any by executing a file.  Capabilities that
 * the process lacks are not added.  0 or an errno. */
int privileges_drop(enum privileges keep);

/* Joins the group of this name, if there is one and the process may.  It goes before privileges_drop(). */
void privileges_join(const char *group);

/* access(2) as it will be after privileges_drop().  0 or an errno. */
int privileges_access(const char *path, int mode);

#endif /* ctl/process/privileges.h */
