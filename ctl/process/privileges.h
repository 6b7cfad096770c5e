/* SPDX-License-Identifier: Apache-2.0
 *
 * Capabilities.  A program that was started as root, or with some of them, gives them up before
 * it reads what others write.
 *
 * An agent opens ports whenever its configuration names new ones.  It keeps the capabilities
 * for that permitted, and has them in effect only while a port is being opened.
 */
#ifndef CTL_PROCESS_PRIVILEGES_H
#define CTL_PROCESS_PRIVILEGES_H 1

#include <stdbool.h>

enum privileges {
    PRIVILEGES_NONE,  /* nothing for good. */
    PRIVILEGES_PORTS, /* what ports need. */
    PRIVILEGES_NETNS, /* CAP_SYS_ADMIN besides, to enter another network namespace. */
};

/* Gives up all other capabilities, and the right to get any by executing a file.  Those that it
 * keeps are not in effect.  Capabilities that the process lacks are not added.  0 or an errno. */
int privileges_drop(enum privileges keep);
/* Puts what was kept into effect, or out of it. */
void privileges_use(bool);

/* access(2) as it will be after privileges_drop().  0 or an errno. */
int privileges_access(const char *path, int mode);

#endif /* ctl/process/privileges.h */
