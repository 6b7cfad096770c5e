/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests to a daemon's control socket or to a server of the registry, by JSON-RPC.
 */
#ifndef CTL_CASTCTL_RPC_H
#define CTL_CASTCTL_RPC_H 1

struct json;
struct jsonrpc;
struct jsonrpc_msg;

/* Sends a request, which takes over 'params', and waits for its answer until 'deadline', on
 * time_msec()'s scale.  0: *replyp, the caller's, is a reply or an error.  Otherwise an errno value
 * or EOF: ETIMEDOUT at the deadline, EINTR if somebody interrupts castctl while it catches signals
 * (tool.h). */
int rpc_transact(struct jsonrpc *, const char *method, struct json *params, long long deadline,
                 struct jsonrpc_msg **replyp);

/* Answers what is no answer, and destroys it: servers probe their clients. */
void rpc_serve(struct jsonrpc *, struct jsonrpc_msg *);

/* What such an error value means. */
const char *rpc_error_text(int error);

#endif /* ctl/castctl/rpc.h */
