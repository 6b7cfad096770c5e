/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that is there as a whole or not at all.  It is gathered in memory, written beside its
 * place, then moved there.
 */
#ifndef BENCH_CASTBENCH_OUT_FILE_H
#define BENCH_CASTBENCH_OUT_FILE_H 1

#include <stdbool.h>
#include <stdio.h>

struct out_file {
    FILE *stream;
    char *data; /* what has come through 'stream'. */
    size_t len;
    int fd;
    bool is_stdout;
    char *path; /* its place, behind any links; NULL: it is written in place. */
    char *temporary;
};

/* "-" is standard output.  What is no regular file is written in place.  Functions that can fail
 * return 0 or an errno. */
bool out_file_is_stdout(const char *path);
/* Can it be written?  Makes no file. */
int out_file_check(const char *path);
/* Are they one file, by whatever names, or would they become one? */
bool out_file_is_same(const char *a, const char *b);
int out_file_open(struct out_file *, const char *path);
/* Ends writing; after an error the file is as it was. */
int out_file_close(struct out_file *);

#endif /* bench/castbench/out-file.h */
