/* SPDX-License-Identifier: Apache-2.0
 *
 * The process that opens ports: what it is asked, well and badly.  The test plays the agent.
 */
#include <config.h>

#include "ctl/node/port-helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/node/port-request.h"
#include "tests/unit/suites.h"
#include "util.h"

static const struct port_request good_open = {
    .what = PORT_REQUEST_OPEN,
    .kind = PORT_TAP,
    .n_sharing = 1,
    .netdev = "no-such-device",
};
static const struct port_request good_watch = {.what = PORT_REQUEST_WATCH};

/* As in daemon-common.c: sanitizers make calls of their own. */
#ifdef __SANITIZE_ADDRESS__
#define FILTER false
#else
#define FILTER true
#endif

/* Bytes that are changed in a good request, and what is said then. */
static const struct {
    const struct port_request *of;
    size_t ofs;
    const char *bytes;
    size_t n;
    const char *complaint; /* NULL: none. */
} requests[] = {
#define AT(FIELD) offsetof(struct port_request, FIELD)
    {&good_open, 0, "", 0, NULL},
    {&good_watch, 0, "", 0, NULL},
    {&good_open, AT(sequence), "\377\377\377\377", 4, NULL},
    {&good_open, AT(what), "\2", 1, "no such request"},
    {&good_open, AT(what), "\377", 1, "no such request"},
    {&good_open, AT(kind), "\2", 1, NULL},
    {&good_open, AT(kind), "\3", 1, "no such kind of port"},
    {&good_open, AT(kind), "\377", 1, "no such kind of port"},
    {&good_open, AT(in_netns), "\1", 1, "no such namespace"},
    {&good_open, AT(offload), "\1", 1, NULL},
    {&good_open, AT(offload), "\2", 1, "offload is 0 or 1"},
    {&good_open, AT(n_sharing), "\0", 1, "no such number of threads"},
    {&good_open, AT(n_sharing), "\20", 1, NULL},
    {&good_open, AT(n_sharing), "\21", 1, "no such number of threads"},
    {&good_open, AT(zero), "\1", 1, "bytes that have no meaning"},
    {&good_open, AT(netdev), "123456789012345", 16, NULL},
    {&good_open, AT(netdev), "1234567890123456", 16, "no name of a network device"},
    {&good_open, AT(netdev), "\0\0", 2, "no name of a network device"},
    {&good_open, AT(netdev), "eth0\0x", 6, "no name of a network device"},
    {&good_open, AT(netdev), "../eth0", 8, "no name of a network device"},
    {&good_open, AT(netdev), "eth0:1", 6, "no name of a network device"},
    {&good_open, AT(netdev), "eth 0", 5, "no name of a network device"},
    {&good_open, AT(netdev), "eth0\n", 5, "no name of a network device"},
    {&good_open, AT(netdev), ".\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "no name of a network device"},
    {&good_open, AT(netdev), "..\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, "no name of a network device"},
    {&good_watch, AT(kind), "\1", 1, "bytes that have no meaning"},
    {&good_watch, AT(netdev), "x", 1, "bytes that have no meaning"},
    {&good_watch, AT(in_netns), "\1", 1, "no such namespace"},
};

START_TEST(checks)
    {
        struct port_request r = *requests[_i].of;

        memcpy((char *) &r + requests[_i].ofs, requests[_i].bytes, requests[_i].n);
        ck_assert_pstr_eq(port_request_complaint(&r, sizeof r, false), requests[_i].complaint);
    }
END_TEST

/* --netns allows both namespaces, and no third. */
START_TEST(namespaces)
    {
        struct port_request r = good_open;

        for (r.in_netns = 0; r.in_netns < 2; r.in_netns++) {
            ck_assert_pstr_eq(port_request_complaint(&r, sizeof r, true), NULL);
        }
        ck_assert_pstr_eq(port_request_complaint(&r, sizeof r, true), "no such namespace");
    }
END_TEST

/* The process that serves, and the socket to it. */
static pid_t pid;
static int fd;

static void
setup(void)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
    /* The other process must not assert: libcheck would have it write to this one's file. */
    pid = fork();
    if (!pid) {
        close(fds[0]);
        port_helper_serve(fds[1], -1);
        _exit(7);
    }
    ck_assert_int_ge(pid, 0);
    close(fds[1]);
    fd = fds[0];
}

static void
check_end(void)
{
    int status;

    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void
teardown(void)
{
    close(fd);
    check_end();
}

/* The reply, and one descriptor of those beside it, -1: none. */
static struct port_reply
ask_bytes(const void *bytes, size_t len, int *got)
{
    struct port_reply reply;
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } beside;
    struct iovec iov = {&reply, sizeof reply};
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = &beside,
        .msg_controllen = sizeof beside,
    };

    *got = -1;
    ck_assert_int_eq(send(fd, bytes, len, 0), (ssize_t) len);
    ck_assert_int_eq(recvmsg(fd, &msg, 0), sizeof reply);
    if (CMSG_FIRSTHDR(&msg)) {
        memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof *got);
    }
    return reply;
}

/* It answers each message, whatever its length, and is of use after it. */
START_TEST(malformed)
    {
        static const char bytes[4 * sizeof(struct port_request)];
        int got;

        for (size_t len = 1; len <= sizeof bytes; len++) {
            struct port_reply reply = ask_bytes(bytes, len, &got);

            ck_assert_uint_eq(reply.error, EINVAL);
            ck_assert_uint_eq(reply.n_fds, 0);
            ck_assert_str_ne(reply.why, "");
        }
        struct port_request r = good_open;
        r.sequence = 77;
        struct port_reply reply = ask_bytes(&r, sizeof r, &got);
        ck_assert_uint_eq(reply.sequence, 77);
        ck_assert_uint_eq(reply.error, ENODEV);
        ck_assert_str_eq(reply.why, "no such network device");
        ck_assert_int_eq(got, -1);
    }
END_TEST

/* What it hands over is not its own any more. */
START_TEST(forgets)
    {
        for (int i = 0; i < 2000; i++) {
            int got;
            struct port_reply reply = ask_bytes(&good_watch, sizeof good_watch, &got);

            ck_assert_uint_eq(reply.error, 0);
            ck_assert_uint_eq(reply.n_fds, 1);
            ck_assert_int_ge(got, 0);
            close(got);
        }
    }
END_TEST

/* Descriptors beside a request are not taken. */
START_TEST(given_descriptors)
    {
        union {
            struct cmsghdr align;
            char bytes[CMSG_SPACE(sizeof(int))];
        } beside = {.align = {.cmsg_len = CMSG_LEN(sizeof(int)),
                              .cmsg_level = SOL_SOCKET,
                              .cmsg_type = SCM_RIGHTS}};
        struct iovec iov = {CONST_CAST(struct port_request *, &good_open), sizeof good_open};
        struct msghdr msg = {
            .msg_iov = &iov,
            .msg_iovlen = 1,
            .msg_control = &beside,
            .msg_controllen = sizeof beside,
        };
        struct port_reply reply;
        int ends[2];
        char c;

        ck_assert_int_eq(pipe(ends), 0);
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&msg)), &ends[1], sizeof(int));
        ck_assert_int_eq(sendmsg(fd, &msg, 0), sizeof good_open);
        ck_assert_int_eq(recv(fd, &reply, sizeof reply, 0), sizeof reply);
        close(ends[1]);
        /* Nobody else has the end that was sent. */
        ck_assert_int_eq(read(ends[0], &c, 1), 0);
        close(ends[0]);
    }
END_TEST

static void
limit_descriptors(pid_t whose, rlim_t n, struct rlimit *before)
{
    struct rlimit now;

    ck_assert_int_eq(prlimit(whose, RLIMIT_NOFILE, NULL, &now), 0);
    const struct rlimit soft = {n, now.rlim_max};
    ck_assert_int_eq(prlimit(whose, RLIMIT_NOFILE, &soft, before), 0);
}

/* None is left in the process: an error, and it goes on. */
START_TEST(exhausted)
    {
        struct rlimit before;
        int got;

        limit_descriptors(pid, 3, &before);
        struct port_reply reply = ask_bytes(&good_watch, sizeof good_watch, &got);
        ck_assert_uint_eq(reply.error, EMFILE);
        ck_assert_int_eq(got, -1);
        limit_descriptors(pid, before.rlim_cur, NULL);
        ck_assert_uint_eq(ask_bytes(&good_watch, sizeof good_watch, &got).error, 0);
        close(got);
    }
END_TEST

/* An agent in which none is left is told so, and gets what it asks for later. */
START_TEST(agent_exhausted)
    {
        struct rlimit before;
        char *why = NULL;
        int got = -1;
        struct port_helper *h = port_helper_start(-1, false, &why);

        ck_assert_msg(h != NULL, "%s", why);
        limit_descriptors(0, 3, &before);
        ck_assert_int_eq(port_helper_watch(h, &got, false, &why), EMFILE);
        ck_assert_str_eq(why, "no descriptor left (Too many open files)");
        free(why);
        limit_descriptors(0, before.rlim_cur, NULL);
        ck_assert_int_eq(port_helper_watch(h, &got, false, &why), 0);
        close(got);
        ck_assert(!port_helper_has_ended(h));
        port_helper_close(h);
    }
END_TEST

/* A port that is not there, and a name that is too long. */
START_TEST(agent_refused)
    {
        static const char *const names[] = {"no-such-device", "a-name-that-is-too-long"};
        char *why = NULL;
        struct port_helper *h = port_helper_start(-1, FILTER, &why);

        ck_assert_msg(h != NULL, "%s", why);
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
            struct port *port;

            ck_assert_int_eq(port_helper_open(h, &port, PORT_PACKET, names[i], false, NULL, &why),
                             ENODEV);
            ck_assert_ptr_null(port);
            char *want = xasprintf("%s: no such network device (No such device)", names[i]);
            ck_assert_str_eq(why, want);
            free(want);
            free(why);
        }
        port_helper_close(h);
    }
END_TEST

/* Tests may share a process: the next one is to have no helper but its own. */
static void
wait_for_all(void)
{
    while (waitpid(-1, NULL, 0) > 0) {
    }
    ck_assert_int_eq(errno, ECHILD);
}

/* The one child of a process. */
static pid_t
child_of(pid_t parent)
{
    char *path = xasprintf("/proc/%d/task/%d/children", (int) parent, (int) parent);
    FILE *f = fopen(path, "r");
    int child = 0;

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%d", &child), 1);
    fclose(f);
    free(path);
    return child;
}

/* It ends with the process that asks, whatever ends that; signals to end do not end it before. */
START_TEST(parent_gone)
    {
        int ends[2];
        char c;

        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        ck_assert_int_eq(pipe(ends), 0);
        pid_t agent = fork();
        if (!agent) {
            char *why = NULL;
            struct port_helper *h = port_helper_start(-1, FILTER, &why);

            for (int fd_ = -1; h && !port_helper_watch(h, &fd_, false, &why); close(fd_)) {
                if (write(ends[1], "x", 1) != 1) {
                    break;
                }
                usleep(1000);
            }
            _exit(1);
        }
        ck_assert_int_eq(read(ends[0], &c, 1), 1);
        pid_t helper = child_of(agent);
        ck_assert_int_eq(kill(helper, SIGTERM) | kill(helper, SIGINT), 0);
        for (int i = 0; i < 50; i++) {
            ck_assert_int_eq(read(ends[0], &c, 1), 1);
        }
        ck_assert_int_eq(kill(agent, SIGKILL), 0);
        ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
        int status;
        ck_assert_int_eq(waitpid(helper, &status, 0), helper);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
END_TEST

/* An agent sees that it is gone, and what is asked then has an answer. */
START_TEST(helper_gone)
    {
        char *why = NULL;
        struct port_helper *h = port_helper_start(-1, FILTER, &why);
        int got;

        ck_assert_msg(h != NULL, "%s", why);
        ck_assert(!port_helper_has_ended(h));
        pid_t helper = child_of(getpid());
        ck_assert_int_eq(kill(helper, SIGKILL), 0);
        ck_assert_int_eq(waitpid(helper, NULL, 0), helper);
        ck_assert(port_helper_has_ended(h));
        ck_assert_int_eq(port_helper_watch(h, &got, false, &why), EPIPE);
        ck_assert_str_eq(why, "the process that opens ports has ended (Broken pipe)");
        free(why);
        port_helper_close(h);
    }
END_TEST

Suite *
port_helper_suite(void)
{
    Suite *s = suite_create("port_helper");
    TCase *tc = tcase_create("requests");

    tcase_add_loop_test(tc, checks, 0, ARRAY_SIZE(requests));
    tcase_add_test(tc, namespaces);
    suite_add_tcase(s, tc);

    tc = tcase_create("process");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, malformed);
    tcase_add_test(tc, forgets);
    tcase_add_test(tc, given_descriptors);
    tcase_add_test(tc, exhausted);
    suite_add_tcase(s, tc);

    tc = tcase_create("agent");
    tcase_add_checked_fixture(tc, wait_for_all, wait_for_all);
    tcase_add_test(tc, agent_exhausted);
    tcase_add_test(tc, agent_refused);
    tcase_add_test(tc, parent_gone);
    tcase_add_test(tc, helper_gone);
    suite_add_tcase(s, tc);
    return s;
}
