/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for libopenvswitch's handling of fatal signals, and handles none.
 *
 * The original installs handlers for SIGTERM and others as soon as somebody
 * waits in poll_block(), and ignores SIGPIPE.  That is for programs; a library
 * leaves its host's signals alone.  The linker takes these functions instead of
 * the archive's member because it sees them first.  All functions of the member
 * must be here; otherwise it would be linked too, and clash.
 *
 * Nothing is lost: SIGPIPE stays blocked in the only thread that writes
 * (loop.c), and only servers have hooks and files.
 */
#include <config.h>

#include "fatal-signal.h"

#include <errno.h>
#include <unistd.h>

#include "util.h"

void
fatal_signal_init(void)
{
}

void
fatal_signal_add_hook(void (*hook)(void *) OVS_UNUSED, void (*cancel)(void *) OVS_UNUSED,
                      void *aux OVS_UNUSED, bool run_at_exit OVS_UNUSED)
{
}

void
fatal_signal_fork(void)
{
}

void
fatal_signal_run(void)
{
}

void
fatal_signal_wait(void)
{
}

void
fatal_ignore_sigpipe(void)
{
}

void
fatal_signal_atexit_handler(void)
{
}

void
fatal_signal_add_file_to_unlink(const char *file OVS_UNUSED)
{
}

void
fatal_signal_remove_file_to_unlink(const char *file OVS_UNUSED)
{
}

int
fatal_signal_unlink_file_now(const char *file)
{
    return unlink(file) ? errno : 0;
}

void
fatal_signal_handler(int signal_number OVS_UNUSED)
{
}

void
fatal_signal_block(sigset_t *prev_mask)
{
    sigset_t none;

    sigemptyset(&none);
    pthread_sigmask(SIG_BLOCK, &none, prev_mask);
}
