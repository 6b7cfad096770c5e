/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests by JSON-RPC: see rpc.h.
 */
#include <config.h>

#include "ctl/castctl/rpc.h"

#include <errno.h>
#include <string.h>

#include "ctl/castctl/tool.h"
#include "jsonrpc.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "timeval.h"
#include "util.h"

void
rpc_serve(struct jsonrpc *rpc, struct jsonrpc_msg *msg)
{
    if (msg->type == JSONRPC_REQUEST && !strcmp(msg->method, "echo")) {
        jsonrpc_send(rpc, jsonrpc_create_reply(json_clone(msg->params), msg->id));
    }
    jsonrpc_msg_destroy(msg);
}

/* Is it the answer to the request 'id'? */
static bool
answers(const struct jsonrpc_msg *msg, const struct json *id)
{
    return (msg->type == JSONRPC_REPLY || msg->type == JSONRPC_ERROR) && json_equal(msg->id, id);
}

static int
wait_for_answer(struct jsonrpc *rpc, const struct json *id, long long deadline,
                struct jsonrpc_msg **replyp)
{
    for (;;) {
        int error = jsonrpc_recv(rpc, replyp);

        if (!error) {
            if (answers(*replyp, id)) {
                return 0;
            }
            rpc_serve(rpc, *replyp);
            continue;
        }
        if (error != EAGAIN) {
            return error;
        }
        if (tool_is_interrupted()) {
            return EINTR;
        }
        if (time_msec() >= deadline) {
            return ETIMEDOUT;
        }
        jsonrpc_run(rpc);
        jsonrpc_wait(rpc);
        jsonrpc_recv_wait(rpc);
        tool_wait_interrupt();
        poll_timer_wait_until(deadline);
        poll_block();
    }
}

int
rpc_transact(struct jsonrpc *rpc, const char *method, struct json *params, long long deadline,
             struct jsonrpc_msg **replyp)
{
    struct json *id;
    int error = jsonrpc_send(rpc, jsonrpc_create_request(method, params, &id));

    *replyp = NULL;
    error = error ? error : wait_for_answer(rpc, id, deadline, replyp);
    if (error) {
        *replyp = NULL;
    }
    json_destroy(id);
    return error;
}

const char *
rpc_error_text(int error)
{
    return error == EINTR       ? "interrupted"
           : error == ETIMEDOUT ? "it did not answer in time"
                                : ovs_retval_to_string(error);
}
