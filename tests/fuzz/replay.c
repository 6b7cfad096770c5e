/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives inputs to a fuzz target without a fuzzer: main() of the targets in
 * 'make fuzz-regress'.
 *
 * usage: TARGET FILE|FOLDER...
 *
 * Each file is an input, and a process of its own, so that one that crashes does
 * not hide the others.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define MAX_SECONDS 60

static unsigned n_passed, n_failed;

static void
give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(2);
}

/* In a buffer of exactly the size, so that sanitizers notice any access past it. */
static void
give(const char *path, size_t size)
{
    uint8_t *bytes = malloc(size ? size : 1);
    FILE *stream = fopen(path, "re");

    if (!bytes || !stream || fread(bytes, 1, size, stream) != size) {
        give_up(path);
    }
    fclose(stream);
    LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
}

static void
replay(const char *path, size_t size)
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0) {
        give_up("fork");
    }
    if (!pid) {
        alarm(MAX_SECONDS);
        give(path, size);
        exit(EXIT_SUCCESS); /* what has leaked is found here. */
    }
    while (waitpid(pid, &status, 0) < 0) {
        if (errno != EINTR) {
            give_up("waitpid");
        }
    }
    if (status) {
        printf("%s: FAILED\n", path);
        n_failed++;
    } else {
        n_passed++;
    }
}

static void replay_all(const char *path);

static void
replay_folder(const char *path)
{
    struct dirent **entries;
    int n = scandir(path, &entries, NULL, alphasort);

    if (n < 0) {
        give_up(path);
    }
    for (int i = 0; i < n; i++) {
        char file[PATH_MAX];

        if (entries[i]->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
            replay_all(file);
        }
        free(entries[i]);
    }
    free(entries);
}

static void
replay_all(const char *path)
{
    struct stat st;

    if (stat(path, &st)) {
        give_up(path);
    }
    if (S_ISDIR(st.st_mode)) {
        replay_folder(path);
    } else {
        replay(path, (size_t) st.st_size);
    }
}

int
main(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        replay_all(argv[i]);
    }
    printf("%u passed, %u failed\n", n_passed, n_failed);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
