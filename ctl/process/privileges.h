/* SPDX-License-Identifier: Apache-2.0
 *
 * Capabilities: what a program that has been started as root, or with some of
 * them, gives up before it reads what others write.
 *
 * An agent opens ports whenever its configuration names new ones.  It keeps what
 * that takes permitted, and has it in effect only while a port is being opened.
 */
#ifndef CTL_PROCESS_PRIVILEGES_H
#define CTL_PROCESS_PRIVILEGES_H 1

#include <stdbool.h>

enum privileges {
    PRIVILEGES_NONE,  /* nothing for good. */
    PRIVILEGES_PORTS, /* CAP_NET_ADMIN and CAP_NET_RAW for ports. */
    PRIVILEGES_NETNS, /* CAP_SYS_ADMIN besides, to enter another network namespace. */
};

/* Gives up all other capabilities, and the right to get any by executing a file; of those that it
 * keeps none is in effect.  What the process has not got it does not get.  0 or an errno. */
int privileges_drop(enum privileges keep);
/* Whether what was kept is in effect. */
void privileges_use(bool);

/* access(2) as it will be after privileges_drop().  0 or an errno. */
int privileges_access(const char *path, int mode);

#endif /* ctl/process/privileges.h */
