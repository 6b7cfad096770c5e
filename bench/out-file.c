/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of results (see out-file.h).
 */
#include "bench/out-file.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
out_file_is_stdout(const char *path)
{
    return !strcmp(path, "-");
}

/* Is there something else than a file, a terminal or a pipe for example? */
static bool
is_special(const char *path)
{
    struct stat st;

    return !stat(path, &st) && !S_ISREG(st.st_mode);
}

int
out_file_check(const char *path)
{
    struct stat st;

    if (out_file_is_stdout(path)) {
        return 0;
    }
    if (!stat(path, &st)) {
        if (S_ISDIR(st.st_mode)) {
            return EISDIR;
        }
        if (access(path, W_OK)) {
            return errno;
        }
        if (!S_ISREG(st.st_mode)) {
            return 0;
        }
    } else if (errno != ENOENT || !path[0]) {
        return errno;
    }
    char *copy = strdup(path);
    int error = !copy ? ENOMEM : access(dirname(copy), W_OK) ? errno : 0;
    free(copy);
    return error;
}

/* What mkstemp() made is for nobody else: as the file that it replaces, or as a new one. */
static void
set_mode(int fd, const char *path)
{
    struct stat st;
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(fd, stat(path, &st) ? 0666 & ~mask : st.st_mode & 0777)) {
        /* Then it stays so. */
    }
}

int
out_file_open(struct out_file *f, const char *path)
{
    *f = (struct out_file){.is_stdout = out_file_is_stdout(path)};
    if (f->is_stdout) {
        f->stream = stdout;
        return 0;
    }
    if (is_special(path)) {
        f->stream = fopen(path, "we");
        return f->stream ? 0 : errno;
    }
    f->path = realpath(path, NULL);
    if (!f->path) {
        f->path = strdup(path); /* there is none yet. */
    }
    if (!f->path || asprintf(&f->temporary, "%s.XXXXXX", f->path) < 0) {
        free(f->path);
        return ENOMEM;
    }
    int fd = mkstemp(f->temporary);
    f->stream = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f->stream) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
            unlink(f->temporary);
        }
        free(f->temporary);
        free(f->path);
        return error;
    }
    set_mode(fd, f->path);
    return 0;
}

int
out_file_close(struct out_file *f)
{
    int error = ferror(f->stream) ? EIO : 0;

    if ((f->is_stdout ? fflush(f->stream) : fclose(f->stream)) && !error) {
        error = errno;
    }
    if (f->path) {
        if (!error && rename(f->temporary, f->path)) {
            error = errno;
        }
        if (error) {
            unlink(f->temporary);
        }
        free(f->temporary);
        free(f->path);
    }
    return error;
}
