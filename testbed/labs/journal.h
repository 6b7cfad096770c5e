/* SPDX-License-Identifier: Apache-2.0
 *
 * What a lab has made, written down before it is made.
 */
#ifndef TESTBED_LABS_JOURNAL_H
#define TESTBED_LABS_JOURNAL_H 1

#include <stdbool.h>
#include <stddef.h>

struct journal {
    int fd;
};

#define JOURNAL_MAX_FIELDS 8

/* A line that has been read.  Fields point into 'text'. */
struct journal_entry {
    char *text;
    char op; /* '.', '+', or '-' for an intent that was withdrawn. */
    const char *kind;
    const char *fields[JOURNAL_MAX_FIELDS]; /* after the kind; missing ones are "". */
    char *id;          /* '+': the one in the '=' line that followed; NULL: none did. */
    unsigned int line; /* number in the file, from 1 on. */
};

struct journal_list {
    size_t n;
    struct journal_entry *entries;
};

/* Opens for appending; creates the file.  Removes the end of a record that was cut short.
 * Functions return NULL or a malloc'd error. */
char *journal_open(struct journal *, const char *path);
void journal_close(struct journal *);

/* Writes one line.  Without an error the line is on the disk, with one the journal is as before.
 * 'text' is "KIND FIELD...". */
char *journal_fact(struct journal *, const char *text);
char *journal_intent(struct journal *, const char *text);
/* The object of the last intent exists and has this identity. */
char *journal_made(struct journal *, const char *id);
/* The object of the last intent was not made. */
char *journal_withdraw(struct journal *);

/* Reads facts and intents, in order.  A last line without its end is ignored. */
char *journal_read(const char *path, struct journal_list *);
void journal_list_uninit(struct journal_list *);
/* The next entry after 'previous' (NULL: the first) with this 'op' and kind and, unless that is
 * NULL, this first field; NULL: no more. */
const struct journal_entry *
journal_next(const struct journal_list *, const struct journal_entry *previous, char op,
             const char *kind, const char *name);
/* The first fact of this kind, or NULL. */
const struct journal_entry *journal_find(const struct journal_list *, const char *kind);

#endif /* testbed/labs/journal.h */
