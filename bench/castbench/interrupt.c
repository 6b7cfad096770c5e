/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that end the program (see interrupt.h).
 *
 * Processes of a run inherit the handler: Ctrl-C reaches them, too, and it is the parent that is to
 * say so.  They end with it.
 */
#include "bench/castbench/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "bench/castbench/clock.h"

static volatile sig_atomic_t caught;
static uint64_t since; /* of the handler. */

/* timeout(1) signals a program and then its group: two at a time are one.  And there is a SIGPIPE for
 * each thing said to nobody. */
static void
handler(int signal_number)
{
    if (!caught) {
        caught = signal_number;
        since = now_ns();
    } else if (signal_number != SIGPIPE && now_ns() - since > NS_PER_SEC) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
}

void
interrupt_catch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};

    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction old;

        /* nohup's program stays deaf. */
        if (!sigaction(signals[i], NULL, &old) && old.sa_handler != SIG_IGN) {
            sigaction(signals[i], &action, NULL);
        }
    }
}

int
interrupt_signal(void)
{
    return caught;
}
