/* SPDX-License-Identifier: Apache-2.0
 *
 * What a packet meets on its way, in words.  Nobody listens in normal operation:
 * then a trace point costs one test.  The listener makes a node explain one packet
 * (rocecast/trace on the control socket).
 */
#ifndef LIB_TRACE_H
#define LIB_TRACE_H 1

#include <netinet/in.h>

struct tracer {
    /* One line without newline; NULL: nobody listens. */
    void (*line)(void *aux, const char *text);
    void *aux;
};

/* printf() for a line.  Arguments are not evaluated if nobody listens. */
#define TRACE(TRACER, ...)                   \
    do {                                     \
        if ((TRACER)->line) {                \
            trace_line(TRACER, __VA_ARGS__); \
        }                                    \
    } while (0)

void
trace_line(const struct tracer *, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An address as text for TRACE()'s arguments; lives as long as the block. */
#define TRACE_ADDR(ADDR) trace_addr((char[INET6_ADDRSTRLEN]){0}, ADDR)
const char *trace_addr(char text[INET6_ADDRSTRLEN], const struct in6_addr *);

#endif /* lib/trace.h */
