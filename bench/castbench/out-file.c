/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of results (see out-file.h).
 */
#include "bench/castbench/out-file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool
out_file_is_stdout(const char *path)
{
    return !strcmp(path, "-") || !strcmp(path, "/dev/stdout");
}

/* Is something other than a regular file there, for example a terminal or a pipe? */
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

/* stat() of the folder that a file is in. */
static bool
stat_folder(const char *path, struct stat *st)
{
    char *copy = strdup(path);
    bool ok = copy && !stat(dirname(copy), st);

    free(copy);
    return ok;
}

bool
out_file_is_same(const char *a, const char *b)
{
    const char *a_name = strrchr(a, '/'), *b_name = strrchr(b, '/');
    struct stat x, y;
    bool has_a = !stat(a, &x), has_b = !stat(b, &y);

    if (has_a != has_b || out_file_is_stdout(a) || out_file_is_stdout(b)) {
        return false;
    }
    if (has_a) {
        return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    }
    return !strcmp(a_name ? a_name + 1 : a, b_name ? b_name + 1 : b) && stat_folder(a, &x)
           && stat_folder(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* mkstemp() makes a file for nobody else.  Gives it the mode of the file that it replaces, or of a
 * new one. */
static void
set_mode(int fd, const char *path)
{
    struct stat st;
    mode_t mask = umask(0);

    umask(mask);
    if (fchmod(fd, stat(path, &st) ? 0666 & ~mask : st.st_mode & 0777)) {
        /* Then the mode stays as it is. */
    }
}

/* Opens the file that is written before it is moved to 'path'.  Negative: errno says why not. */
static int
open_temporary(struct out_file *f, const char *path)
{
    f->path = realpath(path, NULL);
    if (!f->path) {
        f->path = strdup(path); /* there is no such file yet. */
    }
    if (!f->path || asprintf(&f->temporary, "%s.XXXXXX", f->path) < 0) {
        f->temporary = NULL;
        errno = ENOMEM;
        return -1;
    }
    int fd = mkstemp(f->temporary);
    if (fd >= 0) {
        set_mode(fd, f->path);
    }
    return fd;
}

/* Ends what out_file_open() has begun.  Returns 'error' or, if that is 0, 0 if the file is in its
 * place and an errno if it is not. */
static int
finish(struct out_file *f, int error)
{
    if (!f->is_stdout && f->fd >= 0 && close(f->fd) && !error) {
        error = errno;
    }
    if (f->temporary && f->fd >= 0) {
        if (!error && rename(f->temporary, f->path)) {
            error = errno;
        }
        if (error) {
            unlink(f->temporary);
        }
    }
    free(f->data);
    free(f->temporary);
    free(f->path);
    return error;
}

int
out_file_open(struct out_file *f, const char *path)
{
    *f = (struct out_file){.is_stdout = out_file_is_stdout(path), .fd = STDOUT_FILENO};
    if (!f->is_stdout) {
        f->fd = is_special(path) ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(f, path);
        if (f->fd < 0) {
            return finish(f, errno);
        }
    }
    f->stream = open_memstream(&f->data, &f->len);
    return f->stream ? 0 : finish(f, errno);
}

/* 0 or an errno. */
static int
write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR) {
            return errno;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t) n : 0;
    }
    return 0;
}

int
out_file_close(struct out_file *f)
{
    int error = ferror(f->stream) ? ENOMEM : 0;

    if (fclose(f->stream) && !error) {
        error = errno;
    }
    return finish(f, error ? error : write_all(f->fd, f->data, f->len));
}
