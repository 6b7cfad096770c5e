/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab has made, written down before it is made.
 *
 * A text file of lines, only ever appended to.  Each line is written whole and
 * synced before the step that it announces:
 *
 *     . KIND FIELD...    a fact about the lab (its name, nodes, ports)
 *     + KIND FIELD...    this object is about to be made
 *     = ID               the object of the last '+' exists, with this identity
 *     -                  the object of the last '+' was not made
 *
 * A last line without its end is what a crash in mid-write left: the step that it announces was
 * not taken, or its outcome is not known.  Readers pass over it.  Who appends removes it first.
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
 *     + device-rule PREF NETDEV TABLE     an IPv6 policy rule 'oif NETDEV'
 *     + local-rule PREF                   'lookup local' moved from preference 0 to PREF
 *     + rxe DEVICE NETDEV                 = RDMA device index
 *
 * A line that is not one of these, or that has a wrong field, makes the whole journal invalid:
 * removing nothing is better than removing what is not the lab's.
 *
 * '+' without '=' is a step that was cut short: the object may exist.  When the
 * line was written, neither it nor anyone else's object of its name existed.  If the object has an
 * identity, such a line is the last one.
 *
 * Facts:
 *
 *     . boot ID                           the boot in which all this was made: the first line.
 *                                         After another one none of the objects exists
 *     . lab NAME
 *     . netns INODE                       the network namespace of the hosts
 *     . node NAME KIND
 *     . port NODE NETDEV KIND PEER
 *     . rdma yes|no
 *     . threads N                         that each swedge and srcagent forwards with
 *     . up                                'castlab up' has finished
 */
#include <config.h>

#include "testbed/labs/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/registry/values.h"
#include "util.h"

/* Cuts off what is behind the last end of a line.  Returns 0, or -1 and errno. */
static int
cut_torn_line(int fd)
{
    off_t size = lseek(fd, 0, SEEK_END);
    off_t whole = size;
    char last;

    while (whole > 0 && pread(fd, &last, 1, whole - 1) == 1 && last != '\n') {
        whole--;
    }
    return size < 0 || (whole < size && ftruncate(fd, whole)) ? -1 : 0;
}

char *
journal_open(struct journal *j, const char *path)
{
    j->fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (j->fd >= 0 && !cut_torn_line(j->fd)) {
        return NULL;
    }
    char *error = xasprintf("%s: %s", path, ovs_strerror(errno));
    if (j->fd >= 0) {
        close(j->fd);
    }
    return error;
}

void
journal_close(struct journal *j)
{
    close(j->fd);
}

/* Returns 0 once all is on the disk, otherwise an errno value. */
static int
write_all(int fd, const char *text, size_t len)
{
    while (len) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno != EINTR) {
            return errno;
        }
        if (n > 0) {
            text += n;
            len -= (size_t) n;
        }
    }
    return fdatasync(fd) ? errno : 0;
}

static char *
write_line(struct journal *j, char op, const char *text)
{
    char *line = text ? xasprintf("%c %s\n", op, text) : xasprintf("%c\n", op);
    off_t before = lseek(j->fd, 0, SEEK_END);
    int error = write_all(j->fd, line, strlen(line));
    if (error && before >= 0) {
        ignore(ftruncate(j->fd, before)); /* if this fails, the next journal_open() does it. */
    }
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

/* All kinds of lines, and the fields of each: w a word, i a network device, u a number of 32 bits,
 * n a number of 64 bits, N one that is not 0, d a process, a an address, p a prefix. */
static const struct format {
    char op;
    const char *kind, *fields;
    char id; /* '+': field of the '=' line that follows; 0: none does. */
} formats[] = {
    {'.', "boot", "w", 0},       {'.', "lab", "w", 0},       {'.', "netns", "n", 0},
    {'.', "node", "ww", 0},      {'.', "port", "wiww", 0},   {'.', "rdma", "w", 0},
    {'.', "threads", "u", 0},    {'.', "up", "", 0},         {'+', "netns", "w", 'N'},
    {'+', "tap", "i", 'N'},      {'+', "rule", "uapu", 0},   {'+', "rxe", "wi", 'n'},
    {'+', "local-rule", "u", 0}, {'+', "process", "wdn", 0}, {'+', "device-rule", "uiu", 0},
};

/* NULL: there is no such kind. */
static const struct format *
find_format(const struct journal_entry *e)
{
    for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
        if (formats[i].op == e->op && !strcmp(formats[i].kind, e->kind)) {
            return &formats[i];
        }
    }
    return NULL;
}

#define WORD_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

static bool
decimal_parse(const char *s, uint64_t min, uint64_t max)
{
    uint64_t number;
    return !s[strspn(s, "0123456789")] && number_parse(s, min, max, &number);
}

/* Returns NULL, or what the field must be. */
static const char *
field_problem(char format, const char *field)
{
    struct in6_addr address;
    uint8_t plen;

    switch (format) {
    case 'w':
        return field[0] && field[0] != '.' && !field[strspn(field, WORD_CHARS)] ? NULL : "a name";
    case 'i': return ifname_is_valid(field) ? NULL : "a network device";
    case 'd': return decimal_parse(field, 1, INT32_MAX) ? NULL : "a process";
    case 'u': return decimal_parse(field, 0, UINT32_MAX) ? NULL : "a number of 32 bits";
    case 'n': return decimal_parse(field, 0, UINT64_MAX) ? NULL : "a number";
    case 'N': return decimal_parse(field, 1, UINT64_MAX) ? NULL : "a number from 1 on";
    case 'a': return ip6_parse(field, &address) ? NULL : "an IPv6 address";
    case 'p': return ip6_prefix_parse(field, &address, &plen) ? NULL : "an IPv6 prefix";
    default: OVS_NOT_REACHED();
    }
}

/* Checks that 'up' could have written the line, on which 'down' would act.  Returns NULL or a
 * malloc'd sentence. */
static char *
check_entry(const struct journal_entry *e, const char *line)
{
    const struct format *format = find_format(e);
    if (!format) {
        return xasprintf("unexpected line '%s'", line);
    }
    size_t n = strlen(format->fields);
    for (size_t j = 0; j < n; j++) {
        const char *problem = field_problem(format->fields[j], e->fields[j]);
        if (problem) {
            return xasprintf("line '%s': '%s' must be %s", line, e->fields[j], problem);
        }
    }
    return e->fields[n][0] ? xasprintf("line '%s': '%s' is too much", line, e->fields[n]) : NULL;
}

/* Is this an intent whose '=' or '-' line is still to come? */
static bool
awaits_outcome(const struct journal_entry *e)
{
    return e && e->op == '+' && !e->id && find_format(e)->id;
}

static char *
take_line(struct journal_list *list, const char *line, unsigned int number)
{
    struct journal_entry *last = list->n ? &list->entries[list->n - 1] : NULL;
    const char *text = line[0] && line[1] == ' ' ? line + 2 : "";
    switch (line[0]) {
    case '.':
    case '+':
        if (awaits_outcome(last)) {
            return xasprintf("line '%s': line %u is to be followed by '=' or '-'", line,
                             last->line);
        }
        list->entries = xrealloc(list->entries, (list->n + 1) * sizeof *list->entries);
        last = &list->entries[list->n++];
        entry_init(last, line[0], text);
        last->line = number;
        return check_entry(last, line);
    case '=':
        if (awaits_outcome(last)) {
            last->id = xstrdup(text);
            const char *problem = field_problem(find_format(last)->id, text);
            return problem ? xasprintf("line '%s': '%s' must be %s", line, text, problem) : NULL;
        }
        break;
    case '-':
        if (last && last->op == '+' && !last->id && !line[1]) {
            last->op = '-';
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
        char *problem = strlen(line) + 1 < (size_t) len ? xstrdup("a line with a NUL byte")
                                                        : take_line(list, line, number);
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
journal_next(const struct journal_list *list, const struct journal_entry *previous, char op,
             const char *kind, const char *name)
{
    for (size_t i = previous ? (size_t) (previous - list->entries) + 1 : 0; i < list->n; i++) {
        const struct journal_entry *e = &list->entries[i];
        if (e->op == op && !strcmp(e->kind, kind) && (!name || !strcmp(e->fields[0], name))) {
            return e;
        }
    }
    return NULL;
}

const struct journal_entry *
journal_find(const struct journal_list *list, const char *kind)
{
    return journal_next(list, NULL, '.', kind, NULL);
}
