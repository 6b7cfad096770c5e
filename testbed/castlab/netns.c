/* SPDX-License-Identifier: Apache-2.0
 *
 * Named network namespaces, the way 'ip netns' keeps them: a namespace has a
 * name if its file is bind-mounted on /run/netns/NAME.
 */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "testbed/castlab/netops.h"
#include "testbed/labs/labs.h"
#include "util.h"

static struct lab_text
netns_path(const char *name)
{
    return lab_text(NETNS_FOLDER "/%s", name);
}

uint64_t
netns_inode(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : st.st_ino;
}

bool
netns_exists(const char *name)
{
    return !access(netns_path(name).text, F_OK);
}

char *
netns_open(const char *name, int *fdp)
{
    *fdp = open(netns_path(name).text, O_RDONLY | O_CLOEXEC);
    return *fdp < 0 ? xasprintf("namespace %s: %s", name, ovs_strerror(errno)) : NULL;
}

/* Makes /run/netns a shared mount point: a namespace removed here is then also
 * removed from mount namespaces that were copied meanwhile. */
static int
prepare_folder(void)
{
    if (mkdir(NETNS_FOLDER, 0755) && errno != EEXIST) {
        return errno;
    }
    if (!mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL)) {
        return 0;
    }
    if (errno != EINVAL) {
        return errno;
    }
    /* Not a mount point yet. */
    return mount(NETNS_FOLDER, NETNS_FOLDER, "none", MS_BIND | MS_REC, NULL)
                   || mount("", NETNS_FOLDER, "none", MS_SHARED | MS_REC, NULL)
               ? errno
               : 0;
}

/* In a child: moves to a new namespace and gives it its name.  Returns an errno value. */
static int
child_make(const char *path)
{
    if (unshare(CLONE_NEWNET)) {
        return errno;
    }
    char *error = sysctl_set("all", "disable_ipv6", "1");
    error = error ? error : sysctl_set("default", "disable_ipv6", "1");
    if (error) {
        return EACCES;
    }
    return mount("/proc/self/ns/net", path, "none", MS_BIND, NULL) ? errno : 0;
}

char *
netns_create(const char *name, uint64_t *inodep)
{
    const struct lab_text path = netns_path(name);
    int error = prepare_folder();
    int fd = error ? -1 : open(path.text, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
    if (fd < 0) {
        error = error ? error : errno;
    } else {
        close(fd);
        int status = 0;
        pid_t pid = fork();
        if (!pid) {
            _exit(child_make(path.text));
        }
        error = pid < 0 ? errno : 0;
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        error = error ? error : WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
        if (error) {
            unlink(path.text);
        }
    }
    *inodep = error ? 0 : netns_inode(path.text);
    return error ? xasprintf("namespace %s: %s", name, ovs_strerror(error)) : NULL;
}

char *
netns_delete(const char *name, uint64_t inode)
{
    const struct lab_text path = netns_path(name);
    int error = 0;
    uint64_t found = netns_inode(path.text);
    if (found && (!inode || inode == found)) {
        /* EINVAL: it is an empty file of an interrupted start, and was never mounted. */
        if (umount2(path.text, MNT_DETACH) && errno != EINVAL) {
            error = errno;
        } else if (unlink(path.text) && errno != ENOENT) {
            error = errno;
        }
    }
    return error ? xasprintf("namespace %s: %s", name, ovs_strerror(error)) : NULL;
}
