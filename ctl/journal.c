/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab has made, written down before it is made.
 *
 * A text file of lines, only ever appended to; each line is written whole and
 * synced before the step that it announces:
 *
 *     . KIND FIELD...    a fact about the lab (its name, nodes, ports)
 *     + KIND FIELD...    this object is about to be made
 *     = ID               the object of the last '+' exists, with this identity
 *     -                  the object of the last '+' was not made
 *
 * Fields have no spaces.  Objects, with their identities:
 *
 *     + process NAME PID START            a process; PID and its start time are known before it
 *                                         runs anything, so there is no '=' line.  A restart
 *                                         adds a line: the last one of a NAME counts
 *     + netns NAME                        = inode of the namespace
 *     + tap NETDEV                        = interface index.  Its addresses, neighbours, routes and
 *                                         sysctls are not listed: they end with it
 *     + rule PREF FROM TO TABLE           an IPv6 policy rule 'iif lo'
 *     + local-rule PREF                   'lookup local' moved from preference 0 to PREF
 *     + rxe DEVICE NETDEV                 = RDMA device index
 *
 * '+' without '=' is a step that was cut short: the object may exist.  It did
 * not exist, and nobody else's had its name, when the line was written.
 *
 * Facts:
 *
 *     . lab NAME
 *     . netns INODE                       the network namespace of the hosts
 *     . node NAME KIND
 *     . port NODE NETDEV KIND PEER
 *     . rdma yes|no
 *     . up                                'castlab up' has finished
 */
#include <config.h>

#include "ctl/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

char *
journal_open(struct journal *j, const char *path)
{
    j->fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    return j->fd < 0 ? xasprintf("%s: %s", path, ovs_strerror(errno)) : NULL;
}

void
journal_close(struct journal *j)
{
    close(j->fd);
}

static char *
write_line(struct journal *j, char op, const char *text)
{
    char *line = text ? xasprintf("%c %s\n", op, text) : xasprintf("%c\n", op);
    size_t len = strlen(line);
    ssize_t n = write(j->fd, line, len);
    int error = n < 0 ? errno : (size_t) n < len ? ENOSPC : fdatasync(j->fd) ? errno : 0;
    free(line);
    return error ? xasprintf("journal: %s", ovs_strerror(error)) : NULL;
}

char *
journal_fact(struct journal *j, const char *text)
{
    return write_line(j, '.', text);
}

char *
journal_intent(struct journal *j, const char *text)
{
    return write_line(j, '+', text);
}

char *
journal_made(struct journal *j, const char *id)
{
    return write_line(j, '=', id);
}

char *
journal_withdraw(struct journal *j)
{
    return write_line(j, '-', NULL);
}

static void
entry_uninit(struct journal_entry *e)
{
    free(e->text);
    free(e->id);
}

/* "KIND FIELD..." into an entry. */
static void
entry_init(struct journal_entry *e, char op, const char *text)
{
    *e = (struct journal_entry){.op = op, .text = xstrdup(text)};
    char *save = NULL;
    e->kind = strtok_r(e->text, " ", &save);
    for (size_t i = 0; i < JOURNAL_MAX_FIELDS; i++) {
        const char *field = e->kind ? strtok_r(NULL, " ", &save) : NULL;
        e->fields[i] = field ? field : "";
    }
    if (!e->kind) {
        e->kind = "";
    }
}

static char *
take_line(struct journal_list *list, const char *line)
{
    struct journal_entry *last = list->n ? &list->entries[list->n - 1] : NULL;
    const char *text = line[0] && line[1] == ' ' ? line + 2 : "";
    switch (line[0]) {
    case '.':
    case '+':
        list->entries = xrealloc(list->entries, (list->n + 1) * sizeof *list->entries);
        entry_init(&list->entries[list->n++], line[0], text);
        return NULL;
    case '=':
        if (last && last->op == '+' && !last->id) {
            last->id = xstrdup(text);
            return NULL;
        }
        break;
    case '-':
        if (last && last->op == '+') {
            entry_uninit(last);
            list->n--;
            return NULL;
        }
        break;
    default: break;
    }
    return xasprintf("unexpected line '%s'", line);
}

char *
journal_read(const char *path, struct journal_list *list)
{
    *list = (struct journal_list){.n = 0};
    FILE *stream = fopen(path, "re");
    if (!stream) {
        return xasprintf("%s: %s", path, ovs_strerror(errno));
    }
    char *line = NULL;
    size_t size = 0;
    char *error = NULL;
    unsigned int number = 0;
    ssize_t len;
    while (!error && (len = getline(&line, &size, stream)) > 0 && line[len - 1] == '\n') {
        line[len - 1] = '\0';
        number++;
        char *problem = take_line(list, line);
        if (problem) {
            error = xasprintf("%s:%u: %s", path, number, problem);
            free(problem);
        }
    }
    if (!error && ferror(stream)) {
        error = xasprintf("%s: %s", path, ovs_strerror(errno));
    }
    free(line);
    fclose(stream);
    if (error) {
        journal_list_uninit(list);
    }
    return error;
}

void
journal_list_uninit(struct journal_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        entry_uninit(&list->entries[i]);
    }
    free(list->entries);
    *list = (struct journal_list){.n = 0};
}

const struct journal_entry *
journal_find(const struct journal_list *list, const char *kind)
{
    for (size_t i = 0; i < list->n; i++) {
        if (list->entries[i].op == '.' && !strcmp(list->entries[i].kind, kind)) {
            return &list->entries[i];
        }
    }
    return NULL;
}
