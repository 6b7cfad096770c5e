/* SPDX-License-Identifier: Apache-2.0
 *
 * Tools of Open vSwitch that castctl runs, ovsdb-tool and ovsdb-client, and a folder for their files.
 */
#ifndef CTL_CASTCTL_TOOL_H
#define CTL_CASTCTL_TOOL_H 1

#include "ctl/castctl/castctl.h"

struct svec;

enum tool_end {
    TOOL_DONE,     /* it ended with status 0. */
    TOOL_FAILED,   /* it is not installed, or ended otherwise. */
    TOOL_TOO_LATE, /* the deadline came first. */
};

/* Makes a folder for files that only this user may see, in the folder 'parent', and returns its
 * absolute name, or NULL with errno.  It is removed with its files when castctl ends; from now on
 * signals that would end castctl are caught for that.  Once per process, before any tool runs. */
const char *tool_scratch(const char *parent);

/* Has somebody asked castctl to end?  What is under way is to be given up then. */
bool tool_is_interrupted(void);
/* Wakes poll_block() when somebody does. */
void tool_wait_interrupt(void);

/* Runs the tool 'argv' to its end, and destroys 'argv'.  Its standard output is this file
 * descriptor; -1: nobody reads it.  It is ended at ctl's deadline.  Unless it is done, *whyp,
 * malloc'd, is what it said last.  Ends castctl if somebody interrupts it. */
enum tool_end tool_run(const struct ctl *, struct svec *argv, int out, char **whyp);
/* Likewise; *outputp, malloc'd, is what it printed, without blanks at its end.  NULL: it is not done. */
enum tool_end tool_read(const struct ctl *, struct svec *argv, char **outputp, char **whyp);

/* ovsdb-tool with these arguments, of which NULL is the end. */
struct svec tool_ovsdb_tool(const char *command, ...) __attribute__((sentinel));
/* ovsdb-client with castctl's own options about keys and the arguments 'command' and 'remote'; more
 * may be added. */
struct svec tool_ovsdb_client(const struct ctl *, const char *command, const char *remote);

#endif /* ctl/castctl/tool.h */
