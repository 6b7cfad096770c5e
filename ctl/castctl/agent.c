/* SPDX-License-Identifier: Apache-2.0
 *
 * Talks to agents and to castd through their control sockets, which are on this machine.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/castctl/rpc.h"
#include "ctl/registry/paths.h"
#include "ctl/registry/values.h"
#include "jsonrpc.h"
#include "timeval.h"
#include "unixctl.h"
#include "util.h"

/* How long one agent may take, so that a stopped one leaves time for the others. */
#define AGENT_MSEC         2000
#define FOREIGN_AGENT_MSEC 10000 /* it runs tools to find its answer. */

static struct json *
params_of(const char *const args[])
{
    struct json *params = json_array_create_empty();

    for (size_t i = 0; args[i]; i++) {
        json_array_add(params, json_string_create(args[i]));
    }
    return params;
}

/* Takes away the newline that ends each answer of unixctl. */
static void
remove_newline(char *s)
{
    size_t len = strlen(s);

    if (len && s[len - 1] == '\n') {
        s[len - 1] = '\0';
    }
}

/* Runs a command at the daemon with this control socket: as ctl_agent_run(). */
static enum ctl_exit
run_at(const struct ctl *ctl, const char *control, int msec, const char *command,
       const char *const args[], char **answerp)
{
    struct jsonrpc_msg *reply = NULL;
    struct jsonrpc *client = NULL;
    enum ctl_exit result = CTL_UNAVAILABLE;
    int error = unixctl_client_create(control, &client);

    if (!error) {
        error = rpc_transact(client, command, params_of(args),
                             MIN(time_msec() + msec, ctl->deadline), &reply);
    }
    if (error) {
        *answerp = xasprintf("%s: %s", control, ovs_retval_to_string(error));
    } else if (reply->error && reply->error->type == JSON_STRING) {
        *answerp = xstrdup(json_string(reply->error));
        result = CTL_REFUSED;
    } else if (reply->result && reply->result->type == JSON_STRING) {
        *answerp = xstrdup(json_string(reply->result));
        result = CTL_OK;
    } else {
        *answerp = xasprintf("%s: answered something unknown", control);
    }
    remove_newline(*answerp);
    jsonrpc_msg_destroy(reply);
    jsonrpc_close(client);
    return result;
}

enum ctl_exit
ctl_agent_run(const struct ctl *ctl, const struct rrec_node *node, const char *command,
              const char *const args[], char **answerp)
{
    if (!node->control[0]) {
        *answerp = xstrdup("no agent has connected yet");
        return CTL_UNAVAILABLE;
    }
    return run_at(ctl, node->control,
                  node_role_text_is_foreign(node->role) ? FOREIGN_AGENT_MSEC : AGENT_MSEC, command,
                  args, answerp);
}

enum ctl_exit
ctl_control_run(const struct ctl *ctl, const char *control, const char *command,
                const char *const args[], char **answerp)
{
    return run_at(ctl, control, AGENT_MSEC, command, args, answerp);
}

/* An answer as JSON, which takes over 'answer'.  NULL: it is none, for the reason in *whyp. */
static struct json *
to_json(const char *control, enum ctl_exit result, char *answer, char **whyp)
{
    if (result != CTL_OK) {
        *whyp = answer;
        return NULL;
    }
    struct json *json = json_from_string(answer);
    free(answer);
    if (json->type == JSON_STRING) { /* json_from_string()'s error for bad JSON. */
        json_destroy(json);
        *whyp = xasprintf("%s: answered no JSON", control);
        return NULL;
    }
    return json;
}

struct json *
ctl_agent_try(const struct ctl *ctl, const struct rrec_node *node, const char *command, char **whyp)
{
    char *answer;
    enum ctl_exit result = ctl_agent_run(ctl, node, command, (const char *[]){"-j", NULL}, &answer);

    return to_json(node->control, result, answer, whyp);
}

struct json *
ctl_agent_ask(const struct ctl *ctl, const struct rrec_node *node, const char *command)
{
    char *why;
    struct json *json = ctl_agent_try(ctl, node, command, &why);

    if (!json) {
        ctl_warn("node %s: %s", node->name, why);
        free(why);
    }
    return json;
}

struct json *
ctl_castd_ask(const struct ctl *ctl, const char *command)
{
    char *control = xasprintf("%s/castd.ctl", rocecast_rundir());
    char *answer, *why;
    enum ctl_exit result =
        run_at(ctl, control, AGENT_MSEC, command, (const char *[]){"-j", NULL}, &answer);
    struct json *json = to_json(control, result, answer, &why);

    if (!json) {
        ctl_warn("castd: %s", why);
        free(why);
    }
    free(control);
    return json;
}

void
ctl_finish(bool partial)
{
    if (partial) {
        fflush(stdout);
        exit(CTL_PARTIAL);
    }
}
