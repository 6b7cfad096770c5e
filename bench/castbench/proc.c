/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of /proc that hold counters: see proc(5).
 */
#include "bench/castbench/proc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The name is followed by eight numbers of what was received, then by bytes and packets sent. */
bool
proc_parse_device(const char *line, struct proc_device *d)
{
    return sscanf(line, " %15[^: ]: %*u %*u %*u %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64, d->name,
                  &d->tx_bytes, &d->tx_packets)
           == 3;
}

/* The second field is the program's name in brackets, which may have brackets and spaces itself.
 * utime and stime are the fields 14 and 15, starttime is 22. */
bool
proc_parse_process(const char *line, struct proc_process *p)
{
    const char *end = strrchr(line, ')');
    uint64_t user, system;

    if (!end
        || sscanf(end + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                  " %*d %*d %*d %*d %*d %*d %" SCNu64,
                  &user, &system, &p->started)
               != 3) {
        return false;
    }
    p->ticks = user + system;
    return true;
}

/* 'user' and 'nice' include guests' time already.  Stolen time was another machine's. */
bool
proc_parse_busy(const char *line, uint64_t *ticks)
{
    uint64_t user, nice, system, irq, softirq;

    if (strncmp(line, "cpu ", 4) != 0 /* "cpu0" is one CPU. */
        || sscanf(line + 4, "%" SCNu64 " %" SCNu64 " %" SCNu64 " %*u %*u %" SCNu64 " %" SCNu64,
                  &user, &nice, &system, &irq, &softirq)
               != 5) {
        return false;
    }
    *ticks = user + nice + system + irq + softirq;
    return true;
}
