/* SPDX-License-Identifier: Apache-2.0
 *
 * Trace points.
 */
#include "lib/trace.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

void
trace_line(const struct tracer *tracer, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tracer->line(tracer->aux, text);
}

const char *
trace_addr(char text[INET6_ADDRSTRLEN], const struct in6_addr *addr)
{
    return inet_ntop(AF_INET6, addr, text, INET6_ADDRSTRLEN);
}
