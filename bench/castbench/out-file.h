/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is there as a whole or not at all: gathered in memory, written beside its place, then
 * moved there.
 */
#ifndef BENCH_CASTBENCH_OUT_FILE_H
#define BENCH_CASTBENCH_OUT_FILE_H 1

#include <stdbool.h>
#include <stdio.h>

struct out_file {
    FILE *stream;
    char *data; /* what has come through it. */
    size_t len;
    int fd;
    bool is_stdout;
    char *path; /* where it is to be; links are followed.  NULL: it is being written in place. */
    char *temporary;
};

/* "-" is standard output; what is no regular file is written in place.  Errors are errno's. */
bool out_file_is_stdout(const char *path);
/* Can it be written?  Makes no file. */
int out_file_check(const char *path);
/* Are they one file, by whatever names, or would they be? */
bool out_file_is_same(const char *a, const char *b);
int out_file_open(struct out_file *, const char *path);
/* Ends writing; after an error the file is as it was. */
int out_file_close(struct out_file *);

#endif /* bench/castbench/out-file.h */
