/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that end the program (see interrupt.h).
 *
 * Processes of a run inherit the handler, since Ctrl-C reaches them, too.  The parent reports the
 * signal, and they end with the parent.
 */
#include "bench/castbench/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "bench/castbench/clock.h"

static volatile sig_atomic_t caught;
static uint64_t since; /* the handler's: when it caught the first signal. */

/* timeout(1) signals a program and then its group: signals within a second count as one.  A SIGPIPE
 * never counts as another one: it comes for each thing that nobody reads. */
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

        /* A signal that nohup ignores stays ignored. */
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
