/* SPDX-License-Identifier: Apache-2.0
 *
 * Soft-RoCE devices, as 'rdma link add NAME type rxe netdev DEV' makes them.
 */
#include <config.h>

#include "testbed/castlab/rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbed/castlab/netops-private.h"
#include "util.h"

#define NLDEV(COMMAND) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_##COMMAND)
#define SYSFS_CLASS    "/sys/class/infiniband"
#define MAX_GIDS       128

/* Sends 'msg' (and frees it); each message of the answer goes to 'on_message'. */
static void
dump(struct nl_msg *msg, nl_recvmsg_msg_cb_t on_message, void *arg)
{
    struct nl_sock *sock;
    if (netops_connect(&sock, NETLINK_RDMA) >= 0) {
        nl_socket_modify_cb(sock, NL_CB_VALID, NL_CB_CUSTOM, on_message, arg);
        if (nl_send_auto(sock, msg) >= 0) {
            nl_recvmsgs_default(sock);
        }
        nl_socket_free(sock);
    }
    nlmsg_free(msg);
}

struct finder {
    const char *device;
    bool found;
    uint32_t index;
};

static int
on_device(struct nl_msg *msg, void *finder_)
{
    struct finder *finder = finder_;
    struct nlattr *attrs[RDMA_NLDEV_ATTR_MAX];
    if (nlmsg_parse(nlmsg_hdr(msg), 0, attrs, RDMA_NLDEV_ATTR_MAX - 1, NULL) >= 0
        && attrs[RDMA_NLDEV_ATTR_DEV_NAME] && attrs[RDMA_NLDEV_ATTR_DEV_INDEX]
        && !strcmp(nla_get_string(attrs[RDMA_NLDEV_ATTR_DEV_NAME]), finder->device)) {
        finder->found = true;
        finder->index = nla_get_u32(attrs[RDMA_NLDEV_ATTR_DEV_INDEX]);
    }
    return NL_OK;
}

bool
rdma_find(const char *device, uint32_t *indexp)
{
    struct finder finder = {.device = device};
    dump(nlmsg_alloc_simple(NLDEV(GET), NLM_F_REQUEST | NLM_F_DUMP), on_device, &finder);
    *indexp = finder.index;
    return finder.found;
}

/* Takes one message with all contexts of a device. */
static int
on_contexts(struct nl_msg *msg, void *pid_)
{
    pid_t *pid = pid_;
    struct nlattr *contexts = nlmsg_find_attr(nlmsg_hdr(msg), 0, RDMA_NLDEV_ATTR_RES_CTX);
    struct nlattr *entry;
    int left;
    if (contexts) {
        nla_for_each_nested(entry, contexts, left)
        {
            struct nlattr *owner =
                nla_find(nla_data(entry), nla_len(entry), RDMA_NLDEV_ATTR_RES_PID);
            if (owner) {
                *pid = (pid_t) nla_get_u32(owner);
            }
        }
    }
    return NL_OK;
}

pid_t
rdma_user(const char *device)
{
    uint32_t index;
    pid_t pid = 0;
    if (!rdma_find(device, &index)) {
        return 0;
    }
    struct nl_msg *msg = nlmsg_alloc_simple(NLDEV(RES_CTX_GET), NLM_F_REQUEST | NLM_F_DUMP);
    nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, index);
    dump(msg, on_contexts, &pid);
    return pid;
}

/* Sends 'msg', frees it and waits for the answer. */
static int
transact(struct nl_msg *msg)
{
    struct nl_sock *sock;
    int nle = netops_connect(&sock, NETLINK_RDMA);
    if (nle >= 0) {
        /* On error it frees nothing: the message is ours. */
        nle = nl_send_auto(sock, msg);
        nle = nle < 0 ? nle : nl_wait_for_ack(sock);
        nl_socket_free(sock);
    }
    nlmsg_free(msg);
    return nle;
}

char *
rdma_link_add(const char *device, const char *netdev)
{
    struct nl_msg *msg = nlmsg_alloc_simple(NLDEV(NEWLINK), NLM_F_REQUEST | NLM_F_ACK);
    nla_put_string(msg, RDMA_NLDEV_ATTR_DEV_NAME, device);
    nla_put_string(msg, RDMA_NLDEV_ATTR_NDEV_NAME, netdev);
    nla_put_string(msg, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
    int nle = transact(msg);
    if (nle >= 0) {
        return NULL;
    }
    const char *hint = nle == -NLE_INVAL          ? " (is the module rdma_rxe there?)"
                       : nle == -NLE_OBJ_NOTFOUND ? " (load the module crc32_generic)"
                                                  : "";
    return xasprintf("RDMA device %s on %s: %s%s", device, netdev, nl_geterror(nle), hint);
}

char *
rdma_link_delete(const char *device, int64_t index)
{
    uint32_t found;
    if (!rdma_find(device, &found) || (index >= 0 && found != index)) {
        return NULL;
    }
    struct nl_msg *msg = nlmsg_alloc_simple(NLDEV(DELLINK), NLM_F_REQUEST | NLM_F_ACK);
    nla_put_u32(msg, RDMA_NLDEV_ATTR_DEV_INDEX, found);
    int nle = transact(msg);
    return nle < 0 ? xasprintf("RDMA device %s: %s", device, nl_geterror(nle)) : NULL;
}

/* First line of a file of the device's port; false: no such file. */
static bool
read_port_file(const char *device, const char *name, char *line, size_t size)
{
    char *path = xasprintf(SYSFS_CLASS "/%s/ports/1/%s", device, name);
    FILE *stream = fopen(path, "re");
    free(path);
    if (!stream) {
        return false;
    }
    /* An empty GID slot gives an error. */
    bool ok = fgets(line, (int) size, stream) != NULL;
    fclose(stream);
    if (ok) {
        line[strcspn(line, "\n")] = '\0';
    }
    return ok;
}

char *
rdma_port_state(const char *device)
{
    char line[64];
    return read_port_file(device, "state", line, sizeof line) ? xstrdup(line) : NULL;
}

bool
rdma_port_ready(const char *device, const struct in6_addr *address)
{
    char *state = rdma_port_state(device);
    bool active = state && strstr(state, "ACTIVE");
    free(state);
    bool found = false;
    for (int i = 0; active && !found && i < MAX_GIDS; i++) {
        char name[32];
        char line[64];
        struct in6_addr gid;
        snprintf(name, sizeof name, "gids/%d", i);
        if (read_port_file(device, name, line, sizeof line)) {
            found = inet_pton(AF_INET6, line, &gid) == 1 && IN6_ARE_ADDR_EQUAL(&gid, address);
        }
    }
    return found;
}
