/* SPDX-License-Identifier: Apache-2.0
 *
 * The labs of this machine.
 */
#include <config.h>

#include "testbed/labs/labs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/paths.h"
#include "util.h"

/* Start time and state letter from /proc/PID/stat.  False: no such process. */
static bool
read_stat(pid_t pid, unsigned long long *start, char *state)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long) pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) {
        return false;
    }
    text[n] = '\0';
    /* The name, in parentheses, may hold anything, even parentheses; what follows it has none. */
    const char *rest = strrchr(text, ')');
    return rest
           && sscanf(rest + 1,
                     " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d "
                     "%*d %*d %*d %*d %llu",
                     state, start)
                  == 2;
}

bool
process_identify(pid_t pid, struct process_id *id)
{
    char state;
    id->pid = pid;
    return read_stat(pid, &id->start, &state);
}

bool
process_alive(struct process_id id)
{
    unsigned long long start;
    char state;
    return read_stat(id.pid, &start, &state) && start == id.start && state != 'Z' && state != 'X';
}

struct lab_text
lab_text(const char *format, ...)
{
    struct lab_text t;
    va_list args;
    va_start(args, format);
    vsnprintf(t.text, sizeof t.text, format, args);
    va_end(args);
    return t;
}

struct lab_text
lab_folder(const char *name)
{
    return lab_text("%s/lab/%s", rocecast_rundir(), name);
}

struct lab_text
lab_file(const char *name, const char *file)
{
    return lab_text("%s/lab/%s/%s", rocecast_rundir(), name, file);
}

bool
lab_exists(const char *name)
{
    return !access(lab_file(name, "journal").text, F_OK);
}

void
lab_list(struct svec *names)
{
    svec_init(names);
    DIR *dir = opendir(lab_text("%s/lab", rocecast_rundir()).text);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (d->d_name[0] != '.' && lab_exists(d->d_name)) {
            svec_add(names, d->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    svec_sort(names);
}

char *
lab_read(const char *name, struct journal_list *list)
{
    return journal_read(lab_file(name, "journal").text, list);
}

struct process_id
lab_process_id(const struct journal_entry *e)
{
    return (struct process_id){.pid = (pid_t) atol(e->fields[1]),
                               .start = strtoull(e->fields[2], NULL, 10)};
}

const struct journal_entry *
lab_find_process(const struct journal_list *list, const char *name)
{
    const struct journal_entry *newest = NULL, *e = NULL;
    while ((e = journal_next(list, e, '+', "process", name))) {
        newest = e;
    }
    return newest;
}
