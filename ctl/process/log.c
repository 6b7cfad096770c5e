/* SPDX-License-Identifier: Apache-2.0
 *
 * Log messages on one line, without control characters.
 *
 * Messages have names and reasons from the registry, and what neighbours say.  A newline in one
 * would begin a line that looks like a message of its own.  The linker (--wrap) leads all calls of
 * libopenvswitch's functions here, its own ones too.
 */
#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "lib/printable.h"
#include "openvswitch/vlog.h"
#include "util.h"

void __real_vlog(const struct vlog_module *, enum vlog_level, const char *format, ...)
    OVS_PRINTF_FORMAT(3, 4);
OVS_NO_RETURN void
__real_vlog_fatal(const struct vlog_module *, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);
void __wrap_vlog(const struct vlog_module *, enum vlog_level, const char *format, ...)
    OVS_PRINTF_FORMAT(3, 4);
OVS_NO_RETURN void
__wrap_vlog_fatal(const struct vlog_module *, const char *format, ...) OVS_PRINTF_FORMAT(2, 3);
void __wrap_vlog_rate_limit(const struct vlog_module *, enum vlog_level, struct vlog_rate_limit *,
                            const char *format, ...) OVS_PRINTF_FORMAT(4, 5);

/* malloc'd.  Keeps errno. */
static char *
one_line(const char *format, va_list args)
{
    int error = errno;
    char *text = xvasprintf(format, args);
    char *line = printable(text);

    free(text);
    errno = error;
    return line;
}

void
__wrap_vlog(const struct vlog_module *module, enum vlog_level level, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *line = one_line(format, args);
    va_end(args);
    __real_vlog(module, level, "%s", line);
    free(line);
}

void
__wrap_vlog_rate_limit(const struct vlog_module *module, enum vlog_level level,
                       struct vlog_rate_limit *rl, const char *format, ...)
{
    va_list args;

    if (vlog_should_drop(module, level, rl)) {
        return;
    }
    va_start(args, format);
    char *line = one_line(format, args);
    va_end(args);
    __real_vlog(module, level, "%s", line);
    free(line);
}

void
__wrap_vlog_fatal(const struct vlog_module *module, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *line = one_line(format, args);
    va_end(args);
    __real_vlog_fatal(module, "%s", line);
}
