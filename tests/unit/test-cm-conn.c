/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMA-CM connections: what a host hears, and what the registry hears of it.
 */
#include "lib/cm-conn.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/cm-conn-fixture.h"
#include "tests/unit/suites.h"

#define ID         CM_FIRST_ID /* of the first passive connection. */
#define MANY_CONNS 3000

/* Passive connections, step by step. */

static void
request(void)
{
    ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
}

static void
decide(enum cm_decision decision)
{
    cm_register();
    cm.configs[0].decision = decision;
    cm.configs[0].qpn = CM_DQPN;
    cm.configs[0].psn = psn_make(4711);
    cm.configs[0].private_len = 9;
    memcpy(cm.configs[0].private_data, "my answer", 9);
    cm_configure();
}

static void
accept_request(void)
{
    request();
    decide(CM_ACCEPT);
    cm_sent(CM_REP);
}

static void
establish(void)
{
    accept_request();
    ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
    ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    cm_register();
}

static void
disconnect(void)
{
    ck_assert_int_eq(cm_input(cm_dreq(CM_HOST_ID, ID)), DROP_none);
    cm_sent(CM_DREP);
}

START_TEST(req_waits_for_a_decision)
    {
        request();
        cm_nothing_sent();
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        struct cm_conn_info info;
        cm_conns_get(cm.conns, 0, &info);
        ck_assert_uint_eq(info.id, ID);
        ck_assert_int_eq(info.role, CM_PASSIVE);
        ck_assert_mem_eq(&info.proxy, &cm.proxy, sizeof cm.proxy);
        ck_assert_mem_eq(&info.host, &cm.host, sizeof cm.host);
        ck_assert_int_eq(info.known->state, CM_REQUESTED);
        ck_assert_int_eq(info.known->cause, CM_NOT_ENDED);
        ck_assert_uint_eq(info.known->remote_id, CM_HOST_ID);
        ck_assert_uint_eq(info.known->tid, UINT64_C(0x500000011));
        ck_assert_uint_eq(info.known->qpn, CM_HOST_QPN);
        ck_assert_uint_eq(info.known->psn.v, CM_HOST_PSN);
        ck_assert_uint_eq(info.known->mtu_code, 3);
        ck_assert_uint_eq(info.known->port, CM_PORT);
        ck_assert_uint_eq(info.known->private_len, CM_REQ_PRIVATE_LEN);
        ck_assert_str_eq((const char *) info.known->private_data, "who I am");
    }
END_TEST

START_TEST(repeated_req_gets_mra_until_decided)
    {
        request();
        uint64_t version = cm_conns_version(cm.conns);
        for (unsigned i = 0; i < 3; i++) {
            cm_wait(6 * CM_SEC);
            request();
            struct cm_msg mra = cm_sent(CM_MRA);
            ck_assert_uint_eq(mra.local_id, ID);
            ck_assert_uint_eq(mra.remote_id, CM_HOST_ID);
            ck_assert_uint_eq(mra.tid, UINT64_C(0x500000011));
            ck_assert_int_eq(mra.about, CM_ABOUT_REQ);
            /* As long as 8 s, so that a program waits for minutes. */
            ck_assert_uint_ge(cm_timeout_usec(mra.service_timeout), 8 * CM_SEC);
        }
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
    }
END_TEST

START_TEST(accepted_until_rtu)
    {
        request();
        uint64_t version = cm_conns_version(cm.conns);
        decide(CM_ACCEPT);
        struct cm_msg rep = cm_sent(CM_REP);
        ck_assert_uint_eq(rep.local_id, ID);
        ck_assert_uint_eq(rep.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(rep.tid, UINT64_C(0x500000011));
        ck_assert_uint_eq(rep.qpn, CM_DQPN);
        ck_assert_uint_eq(rep.psn.v, 4711);
        ck_assert_uint_eq(rep.rnr_retry, 7);
        ck_assert_uint_eq(rep.private_len, 9);
        ck_assert_mem_eq(rep.private_data, "my answer", 9);
        ck_assert_uint_ne(rep.ca_guid, 0);
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
        ck_assert_uint_ne(cm_conns_version(cm.conns), version);

        cm_configure(); /* once more: nothing new. */
        cm_nothing_sent();
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(lost_rep_is_repeated)
    {
        accept_request();
        for (unsigned i = 0; i < CM_RETRIES; i++) {
            cm_wait(CM_RETRY_USEC);
            cm_sent(CM_REP);
        }
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
        cm_wait(CM_RETRY_USEC);
        struct cm_msg dreq = cm_sent(CM_DREQ); /* for a program that has heard of the REP. */
        ck_assert_uint_eq(dreq.local_id, ID);
        ck_assert_uint_eq(dreq.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(dreq.remote_qpn, CM_HOST_QPN);
        ck_assert_int_eq(cm_cause(ID), CM_BY_SILENCE);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(repeated_req_gets_the_same_rep)
    {
        request();
        decide(CM_ACCEPT);
        struct cm_msg first = cm_sent(CM_REP);
        request();
        struct cm_msg again = cm_sent(CM_REP);
        ck_assert_mem_eq(&first, &again, sizeof first);
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
        request(); /* late. */
        again = cm_sent(CM_REP);
        ck_assert_mem_eq(&first, &again, sizeof first);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    }
END_TEST

/* A program that is slow has got the REP: its kernel says so. */
START_TEST(mra_of_a_rep_gives_time)
    {
        accept_request();
        for (unsigned i = 0; i < 100; i++) {
            cm_wait(CM_MAX_RETRY_USEC);
            ck_assert_uint_ge(cm_n_sent(), 1);
            ck_assert_uint_le(cm_n_sent(), CM_MAX_RETRY_USEC / CM_RETRY_USEC);
            cm_forget_sent();
            ck_assert_int_eq(cm_input(cm_of(CM_MRA, CM_HOST_ID, ID)), DROP_none);
        }
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
        cm_wait(2 * CM_MAX_RETRY_USEC);
        ck_assert_uint_le(cm_n_sent(), 2);
    }
END_TEST

START_TEST(packet_is_as_good_as_rtu)
    {
        accept_request();
        uint64_t version = cm_conns_version(cm.conns);
        struct in6_addr other = cm_addr("fd00:1::2");
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN + 1);
        cm_conns_traffic(cm.conns, &cm.proxy, &other, CM_HOST_QPN);
        cm_conns_traffic(cm.conns, &other, &cm.host, CM_HOST_QPN);
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        ck_assert_uint_ne(cm_conns_version(cm.conns), version);
        version = cm_conns_version(cm.conns);
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    }
END_TEST

START_TEST(packet_before_the_decision_is_nothing)
    {
        request();
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        ck_assert_int_eq(cm_state(ID), CM_REQUESTED);
    }
END_TEST

START_TEST(rejected_by_decision)
    {
        request();
        cm_register();
        cm.configs[0].reason = CM_REJ_NO_RESOURCES;
        decide(CM_REJECT);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_uint_eq(rej.local_id, ID);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(rej.tid, UINT64_C(0x500000011));
        ck_assert_int_eq(rej.about, CM_ABOUT_REQ);
        ck_assert_uint_eq(rej.reason, CM_REJ_NO_RESOURCES);
        ck_assert_uint_eq(rej.private_len, 9);
        ck_assert_mem_eq(rej.private_data, "my answer", 9);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
        request(); /* the REJ was lost. */
        struct cm_msg again = cm_sent(CM_REJ);
        ck_assert_mem_eq(&rej, &again, sizeof rej);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

/* There is nothing to close yet. */
START_TEST(close_before_rep_is_a_rej)
    {
        request();
        decide(CM_CLOSE);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_uint_eq(rej.reason, CM_REJ_CONSUMER);
        ck_assert_uint_eq(rej.private_len, 0);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
    }
END_TEST

static void
spoil_transport(struct cm_msg *m)
{
    m->transport = 1; /* UC. */
}

static void
spoil_service(struct cm_msg *m)
{
    m->service = UINT64_C(0x0000000001110000) | CM_PORT; /* RDMA_PS_UDP. */
}

static void
spoil_header(struct cm_msg *m)
{
    m->ip_header = false;
}

static void
spoil_source(struct cm_msg *m)
{
    m->ip_src = cm_addr("fd00:1::2");
}

static void
spoil_destination(struct cm_msg *m)
{
    m->ip_dst = cm_addr("fd00:ffff::2");
}

static void
spoil_qpn(struct cm_msg *m)
{
    m->qpn = 1;
}

/* What no connection can come of. */
static const struct {
    void (*spoil)(struct cm_msg *);
    enum cm_rej_reason reason;
} refusals[] = {
    {spoil_transport, CM_REJ_TRANSPORT},     {spoil_service, CM_REJ_SERVICE_ID},
    {spoil_header, CM_REJ_UNSUPPORTED},      {spoil_source, CM_REJ_UNSUPPORTED},
    {spoil_destination, CM_REJ_UNSUPPORTED}, {spoil_qpn, CM_REJ_UNSUPPORTED},
};

START_TEST(refused_without_a_decision)
    {
        struct cm_msg req = cm_req(CM_HOST_ID, CM_HOST_QPN);
        refusals[_i].spoil(&req);
        ck_assert_int_eq(cm_input(req), DROP_none);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_uint_eq(rej.reason, refusals[_i].reason);
        ck_assert_int_eq(rej.about, CM_ABOUT_REQ);
        ck_assert_uint_eq(rej.local_id, 0);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(rej.tid, req.tid);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        ck_assert_uint_eq(cm_conns_deadline(cm.conns), UINT64_MAX);
    }
END_TEST

START_TEST(no_service_for_datagrams)
    {
        struct cm_msg req = cm_of(CM_SIDR_REQ, 99, 0);
        req.service = 0x1110005;
        ck_assert_int_eq(cm_input(req), DROP_none);
        struct cm_msg rep = cm_sent(CM_SIDR_REP);
        ck_assert_uint_eq(rep.remote_id, 99);
        ck_assert_uint_eq(rep.sidr_status, 1);
        ck_assert_uint_eq(rep.service, 0x1110005);
        ck_assert_uint_eq(rep.tid, req.tid);
    }
END_TEST

START_TEST(dreq_ends_it)
    {
        establish();
        struct cm_msg dreq = cm_dreq(CM_HOST_ID, ID);
        ck_assert_int_eq(cm_input(dreq), DROP_none);
        struct cm_msg drep = cm_sent(CM_DREP);
        ck_assert_uint_eq(drep.local_id, ID);
        ck_assert_uint_eq(drep.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(drep.tid, dreq.tid);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);

        /* The DREP was lost. */
        uint64_t version = cm_conns_version(cm.conns);
        disconnect();
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
        /* It is nobody's queue pair now. */
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
    }
END_TEST

/* The RTU was lost, and the program ends. */
START_TEST(dreq_before_rtu)
    {
        accept_request();
        disconnect();
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(dreq_with_wrong_ids)
    {
        establish();
        struct cm_msg dreq = cm_dreq(CM_HOST_ID + 1, ID);
        ck_assert_int_eq(cm_input(dreq), DROP_cm_ids);
        struct cm_msg drep = cm_sent(CM_DREP); /* whoever it is may have rest. */
        ck_assert_uint_eq(drep.local_id, ID);
        ck_assert_uint_eq(drep.remote_id, CM_HOST_ID + 1);
        dreq = cm_dreq(CM_HOST_ID, ID);
        dreq.remote_qpn = CM_DQPN + 1;
        ck_assert_int_eq(cm_input(dreq), DROP_cm_ids);
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    }
END_TEST

START_TEST(dreq_of_an_unknown_connection)
    {
        struct cm_msg dreq = cm_dreq(0x22, 0x80001234);
        ck_assert_int_eq(cm_input(dreq), DROP_cm_unknown);
        struct cm_msg drep = cm_sent(CM_DREP);
        ck_assert_uint_eq(drep.local_id, 0x80001234);
        ck_assert_uint_eq(drep.remote_id, 0x22);
        ck_assert_uint_eq(drep.tid, dreq.tid);
    }
END_TEST

/* What a listener accepts too late: its kernel would repeat it for long. */
START_TEST(rep_of_an_unknown_connection)
    {
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_cm_unknown);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_int_eq(rej.about, CM_ABOUT_REP);
        ck_assert_uint_eq(rej.local_id, CM_ACTIVE_ID);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(rej.reason, CM_REJ_COMM_ID);
    }
END_TEST

START_TEST(messages_of_unknown_connections)
    {
        static const enum cm_attribute attributes[] = {CM_MRA, CM_REJ, CM_RTU, CM_DREP,
                                                       CM_SIDR_REP};
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            ck_assert_int_eq(cm_input(cm_of(attributes[i], CM_HOST_ID, ID)), DROP_cm_unknown);
        }
        ck_assert_int_eq(cm_input(cm_rej(CM_HOST_ID, 0, CM_ABOUT_OTHER, CM_REJ_TIMEOUT)),
                         DROP_cm_unknown);
        cm_nothing_sent();
    }
END_TEST

/* IDs alone are not enough: another host may guess them. */
START_TEST(messages_of_another_host)
    {
        static const enum cm_attribute attributes[] = {CM_MRA, CM_REJ,  CM_REP,
                                                       CM_RTU, CM_DREP, CM_DREQ};
        accept_request();
        struct in6_addr real = cm.host;
        for (size_t i = 0; i < 2 * sizeof attributes / sizeof *attributes; i++) {
            struct in6_addr real_proxy = cm.proxy;
            struct cm_msg m = cm_dreq(CM_HOST_ID, ID);
            m.attribute = attributes[i / 2];
            *(i % 2 ? &cm.host : &cm.proxy) = cm_addr("fd00:1::2");
            ck_assert_int_eq(cm_input(m), DROP_cm_ids);
            cm_forget_sent();
            cm.host = real;
            cm.proxy = real_proxy;
        }
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
    }
END_TEST

START_TEST(messages_with_another_local_id)
    {
        static const enum cm_attribute attributes[] = {CM_MRA, CM_REJ, CM_RTU, CM_DREP};
        accept_request();
        for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
            ck_assert_int_eq(cm_input(cm_of(attributes[i], CM_HOST_ID + 1, ID)), DROP_cm_ids);
        }
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
    }
END_TEST

START_TEST(messages_that_do_not_fit_the_state)
    {
        request();
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_cm_state);
        ck_assert_int_eq(cm_input(cm_of(CM_MRA, CM_HOST_ID, ID)), DROP_cm_state);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, ID)), DROP_cm_state);
        ck_assert_int_eq(cm_input(cm_of(CM_REP, CM_HOST_ID, ID)), DROP_cm_state);
        ck_assert_int_eq(cm_state(ID), CM_REQUESTED);
        decide(CM_ACCEPT);
        cm_sent(CM_REP);
        cm_input(cm_of(CM_RTU, CM_HOST_ID, ID));
        ck_assert_int_eq(cm_input(cm_rej(CM_HOST_ID, 0, CM_ABOUT_OTHER, CM_REJ_TIMEOUT)),
                         DROP_cm_state);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        cm_nothing_sent();
    }
END_TEST

/* A program that is killed before it has a REP: Linux knows no ID of ours. */
START_TEST(rej_of_a_req)
    {
        if (_i) {
            accept_request(); /* the REP is lost, or late. */
        } else {
            request();
        }
        ck_assert_int_eq(cm_input(cm_rej(CM_HOST_ID, 0, CM_ABOUT_OTHER, CM_REJ_TIMEOUT)),
                         DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_REJ);
        ck_assert_uint_eq(cm_known(ID)->reason, CM_REJ_TIMEOUT);
        if (!_i) {
            decide(CM_ACCEPT); /* too late. */
        }
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(rej_of_a_rep)
    {
        accept_request();
        struct cm_msg rej = cm_rej(CM_HOST_ID, ID, CM_ABOUT_REP, CM_REJ_CONSUMER);
        ck_assert_int_eq(cm_input(rej), DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_REJ);
        ck_assert_uint_eq(cm_known(ID)->reason, CM_REJ_CONSUMER);
        uint64_t version = cm_conns_version(cm.conns);
        ck_assert_int_eq(cm_input(rej), DROP_none);
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
        cm_nothing_sent();
    }
END_TEST

START_TEST(close_repeats_dreq_until_drep)
    {
        establish();
        decide(CM_CLOSE);
        ck_assert_int_eq(cm_state(ID), CM_CLOSING);
        for (unsigned i = 0; i < 3; i++) {
            struct cm_msg dreq = cm_sent(CM_DREQ);
            ck_assert_uint_eq(dreq.local_id, ID);
            ck_assert_uint_eq(dreq.remote_id, CM_HOST_ID);
            ck_assert_uint_eq(dreq.remote_qpn, CM_HOST_QPN);
            cm_nothing_sent();
            cm_wait(CM_RETRY_USEC);
        }
        cm_sent(CM_DREQ);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, ID)), DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, ID)), DROP_none);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(close_gives_up)
    {
        establish();
        decide(CM_CLOSE);
        cm_wait(CM_RETRIES * CM_RETRY_USEC);
        ck_assert_uint_eq(cm_n_sent(), 1 + CM_RETRIES);
        ck_assert_int_eq(cm_state(ID), CM_CLOSING);
        cm_wait(CM_RETRY_USEC);
        ck_assert_uint_eq(cm_n_sent(), 1 + CM_RETRIES);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
    }
END_TEST

START_TEST(close_and_a_crossing_dreq)
    {
        establish();
        decide(CM_CLOSE);
        cm_sent(CM_DREQ);
        disconnect();
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

/* Who has missed all of the DREQs says RTU to a REP, or his REQ again. */
START_TEST(ended_for_who_takes_it_for_established)
    {
        establish();
        decide(CM_CLOSE);
        cm_wait(3600 * CM_SEC);
        cm_forget_sent();
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
        cm_sent(CM_DREQ);
        request();
        ck_assert_uint_eq(cm_sent(CM_REJ).reason, CM_REJ_CONSUMER);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
    }
END_TEST

START_TEST(late_req_begins_nothing)
    {
        establish();
        disconnect();
        request();
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_uint_eq(rej.reason, CM_REJ_STALE);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        /* Nor after the registry has removed it. */
        cm.n_configs = 0;
        cm_configure();
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        cm_wait(CM_LINGER_USEC - 1);
        request();
        cm_sent(CM_REJ);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        disconnect();
        /* Then all is forgotten. */
        cm_wait(1);
        ck_assert_uint_eq(cm_conns_deadline(cm.conns), UINT64_MAX);
        request();
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
    }
END_TEST

/* A late copy must not be taken for a new program with the queue pair of one that lives. */
START_TEST(late_req_does_not_end_the_next_connection)
    {
        establish();
        disconnect();
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID + 5, CM_HOST_QPN)), DROP_none);
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
        request();
        cm_sent(CM_REJ);
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 2);
    }
END_TEST

START_TEST(same_queue_pair_asks_again)
    {
        establish();
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID + 5, CM_HOST_QPN)), DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_NEW_REQ);
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
        ck_assert_uint_eq(cm_known(ID + 1)->remote_id, CM_HOST_ID + 5);
        cm_nothing_sent();
        /* What is late of the first does not touch the second. */
        disconnect();
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
    }
END_TEST

/* A host that was started again may give an ID twice. */
START_TEST(same_id_in_another_transaction)
    {
        establish();
        struct cm_msg req = cm_req(CM_HOST_ID, CM_HOST_QPN + 1);
        req.tid++;
        ck_assert_int_eq(cm_input(req), DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_NEW_REQ);
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
        ck_assert_int_eq(cm_input(req), DROP_none);
        ck_assert_uint_eq(cm_sent(CM_MRA).local_id, ID + 1);
    }
END_TEST

START_TEST(other_queue_pairs_and_hosts_are_others)
    {
        establish();
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID + 1, CM_HOST_QPN + 1)), DROP_none);
        cm.host = cm_addr("fd00:1::2");
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        cm.host = cm_addr("fd00:1::1");
        cm.proxy = cm_addr("fd00:ffff::2");
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 4);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        cm_nothing_sent();
    }
END_TEST

START_TEST(source_that_asks_no_more)
    {
        request();
        cm_wait(CM_REQUEST_USEC - 1);
        request();
        cm_sent(CM_MRA);
        cm_wait(CM_REQUEST_USEC - 1);
        ck_assert_int_eq(cm_state(ID), CM_REQUESTED);
        cm_wait(1);
        ck_assert_int_eq(cm_cause(ID), CM_BY_SILENCE);
        cm_nothing_sent();
        /* The registry has never had it. */
        cm_wait(CM_LINGER_USEC - 1);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        cm_wait(1);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
    }
END_TEST

START_TEST(ended_stays_as_long_as_the_registry_has_it)
    {
        establish();
        disconnect();
        cm_wait(3600 * CM_SEC);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
        uint64_t version = cm_conns_version(cm.conns);
        cm.n_configs = 0;
        cm_configure();
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        ck_assert_uint_ne(cm_conns_version(cm.conns), version);
    }
END_TEST

/* Also if the registry hears of it no sooner. */
START_TEST(ended_before_the_registry_had_it)
    {
        request();
        cm_input(cm_rej(CM_HOST_ID, 0, CM_ABOUT_OTHER, CM_REJ_TIMEOUT));
        cm_register();
        cm_configure();
        cm_wait(3600 * CM_SEC);
        ck_assert_int_eq(cm_cause(ID), CM_BY_REJ);
    }
END_TEST

START_TEST(removed_is_forgotten_without_a_word)
    {
        establish();
        cm.n_configs = 0;
        cm_configure();
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        ck_assert_int_eq(cm_input(cm_dreq(CM_HOST_ID, ID)), DROP_cm_unknown);
        cm_sent(CM_DREP);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

/* A configuration that was made before the registry had heard of a REQ. */
START_TEST(configuration_without_it_is_older)
    {
        request();
        cm_configure();
        ck_assert_int_eq(cm_state(ID), CM_REQUESTED);
    }
END_TEST

START_TEST(requests_of_a_host_are_bounded)
    {
        for (uint32_t i = 0; i < CM_CONNS_PER_HOST; i++) {
            ck_assert_int_eq(cm_input(cm_req(100 + i, 100 + i)), DROP_none);
        }
        ck_assert_int_eq(cm_input(cm_req(99, 99)), DROP_cm_full);
        ck_assert_uint_eq(cm_conns_n(cm.conns), CM_CONNS_PER_HOST);
        /* Another host has room. */
        cm.host = cm_addr("fd00:1::2");
        ck_assert_int_eq(cm_input(cm_req(99, 99)), DROP_none);
        cm.host = cm_addr("fd00:1::1");
        /* What the registry has is the registry's business. */
        cm.configs[cm.n_configs++] = (struct cm_conn_config){
            .id = ID, .role = CM_PASSIVE, .proxy = cm.proxy, .host = cm.host};
        cm_configure();
        cm_wait(CM_REQ_USEC);
        ck_assert_int_eq(cm_input(cm_req(99, 99)), DROP_cm_full);
        cm_nothing_sent();
        /* ... once it is decided. */
        cm.configs[cm.n_configs - 1].decision = CM_ACCEPT;
        cm_configure();
        cm_sent(CM_REP);
        ck_assert_int_eq(cm_input(cm_req(99, 99)), DROP_none);
        ck_assert_int_eq(cm_input(cm_req(98, 98)), DROP_cm_full);
        cm_nothing_sent();
    }
END_TEST

/* Even if each is decided at once. */
START_TEST(requests_of_a_host_have_a_rate)
    {
        for (uint32_t i = 0; i < CM_REQS_AT_ONCE + 10; i++) {
            ck_assert_int_eq(cm_input(cm_req(100 + i, 17)), DROP_none);
            if (i + 1 >= CM_REQS_AT_ONCE) {
                ck_assert_int_eq(cm_input(cm_req(99, 17)), DROP_cm_full);
                cm_wait(CM_REQ_USEC);
            }
        }
    }
END_TEST

/* Programs that ask and give up, for ever. */
START_TEST(ended_ones_of_a_host_are_bounded)
    {
        for (uint32_t i = 0; i < 5 * CM_CONNS_PER_HOST; i++) {
            cm_wait(CM_REQ_USEC);
            ck_assert_int_eq(cm_input(cm_req(100 + i, 100 + i)), DROP_none);
            ck_assert_int_eq(cm_input(cm_rej(100 + i, 0, CM_ABOUT_OTHER, CM_REJ_TIMEOUT)),
                             DROP_none);
            cm_wait(1);
        }
        ck_assert_uint_eq(cm_conns_n(cm.conns), CM_CONNS_PER_HOST);
        cm_wait(CM_LINGER_USEC);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
    }
END_TEST

START_TEST(ids_in_use_are_skipped)
    {
        cm.n_configs = 1;
        cm.configs[0] = (struct cm_conn_config){
            .id = ID, .role = CM_PASSIVE, .proxy = cm.proxy, .host = cm.host};
        cm.configs[0].known =
            (struct cm_known){.state = CM_ESTABLISHED, .remote_id = 5, .tid = 5, .qpn = 5};
        cm_configure();
        request();
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        ck_assert_int_eq(cm_state(ID + 1), CM_REQUESTED);
    }
END_TEST

/* Keepalive. */

static void
establish_with_keepalive(uint32_t msec)
{
    accept_request();
    cm.configs[0].keepalive_msec = msec;
    cm_configure();
    ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
}

START_TEST(keepalive_asks_the_kernel)
    {
        establish_with_keepalive(10000);
        uint64_t version = cm_conns_version(cm.conns);
        cm_wait(10 * CM_SEC - 1);
        cm_nothing_sent();
        for (unsigned i = 0; i < 20; i++) {
            cm_wait(1);
            cm_sent(CM_REP);
            ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
            /* Heard within the time between two questions; then the time itself. */
            cm_wait(30 * CM_SEC / CM_PROBES + 10 * CM_SEC - 1);
            cm_nothing_sent();
        }
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
    }
END_TEST

START_TEST(keepalive_is_content_with_packets)
    {
        establish_with_keepalive(10000);
        for (unsigned i = 0; i < 100; i++) {
            cm_wait(9 * CM_SEC);
            cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        }
        cm_nothing_sent();
    }
END_TEST

START_TEST(keepalive_ends_in_silence)
    {
        establish_with_keepalive(10000);
        cm_wait(40 * CM_SEC - 1);
        ck_assert_uint_eq(cm_n_sent(), CM_PROBES);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        cm_forget_sent();
        cm_wait(1);
        cm_sent(CM_DREQ);
        ck_assert_int_eq(cm_cause(ID), CM_BY_SILENCE);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(keepalive_begins_with_a_packet)
    {
        accept_request();
        cm.configs[0].keepalive_msec = 10000;
        cm_configure();
        cm_conns_traffic(cm.conns, &cm.proxy, &cm.host, CM_HOST_QPN);
        cm_wait(60 * CM_SEC);
        ck_assert_int_eq(cm_cause(ID), CM_BY_SILENCE);
    }
END_TEST

START_TEST(keepalive_is_switched)
    {
        establish();
        cm_wait(100 * CM_SEC);
        cm_nothing_sent();
        cm.configs[0].keepalive_msec = 10000;
        cm_configure();
        cm_wait(10 * CM_SEC);
        cm_sent(CM_REP);
        cm.configs[0].keepalive_msec = 0;
        cm_configure();
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    }
END_TEST

/* Active connections. */

static void
connect_actively_as(uint32_t id)
{
    cm.n_configs = 1;
    cm.configs[0] = (struct cm_conn_config){
        .id = id,
        .role = CM_ACTIVE,
        .proxy = cm.proxy,
        .host = cm.host,
        .port = CM_PORT,
        .qpn = CM_DQPN,
        .psn = psn_make(7000),
        .mtu = 1024,
        .ack_timeout = 14,
        .private_len = 5,
        .private_data = "hello",
    };
    cm_configure();
}

static void
connect_actively(void)
{
    connect_actively_as(CM_ACTIVE_ID);
}

static void
answer(void)
{
    connect_actively();
    cm_sent(CM_REQ);
    ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
}

static void
be_ready(void)
{
    cm_register();
    cm.configs[0].ready = true;
    cm_configure();
}

static void
establish_actively(void)
{
    answer();
    be_ready();
    cm_sent(CM_RTU);
    cm_register();
}

START_TEST(active_sends_req)
    {
        connect_actively();
        struct cm_msg req = cm_sent(CM_REQ);
        ck_assert_uint_eq(req.local_id, CM_ACTIVE_ID);
        ck_assert_uint_eq(req.remote_id, 0);
        ck_assert_uint_eq(req.qpn, CM_DQPN);
        ck_assert_uint_eq(req.psn.v, 7000);
        ck_assert_uint_eq(req.service, CM_SERVICE_TCP | CM_PORT);
        ck_assert_uint_eq(req.transport, CM_TRANSPORT_RC);
        ck_assert_uint_eq(req.mtu_code, 3);
        ck_assert_uint_eq(req.ack_timeout, 14);
        ck_assert_uint_eq(req.retry, 7);
        ck_assert_uint_eq(req.rnr_retry, 7);
        ck_assert_mem_eq(&req.local_gid, &cm.proxy, sizeof cm.proxy);
        ck_assert_mem_eq(&req.remote_gid, &cm.host, sizeof cm.host);
        ck_assert(req.ip_header);
        ck_assert_mem_eq(&req.ip_src, &cm.proxy, sizeof cm.proxy);
        ck_assert_mem_eq(&req.ip_dst, &cm.host, sizeof cm.host);
        ck_assert_uint_ne(req.sport, 0);
        ck_assert_uint_eq(req.private_len, 5);
        ck_assert_mem_eq(req.private_data, "hello", 5);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_CONNECTING);
    }
END_TEST

/* All with the same Designated QPN: to a kernel they must not be stale copies of each other. */
START_TEST(active_connections_of_a_host_have_guids_of_their_own)
    {
        connect_actively();
        cm.configs[1] = cm.configs[0];
        cm.configs[1].id++;
        cm.configs[1].port++;
        cm.n_configs = 2;
        cm_configure();
        ck_assert_uint_ne(cm_sent(CM_REQ).ca_guid, cm_sent(CM_REQ).ca_guid);
    }
END_TEST

START_TEST(active_repeats_req_for_ever)
    {
        uint64_t longest = 0, last = cm.now;

        connect_actively();
        struct cm_msg first = cm_sent(CM_REQ);
        for (unsigned i = 0; i < 100; i++) {
            cm_wait(cm_conns_deadline(cm.conns) - cm.now);
            struct cm_msg again = cm_sent(CM_REQ);
            ck_assert_mem_eq(&first, &again, sizeof first);
            ck_assert(i || cm.now - last == CM_RETRY_USEC);
            ck_assert_uint_ge(cm.now - last, longest);
            longest = cm.now - last;
            last = cm.now;
        }
        ck_assert_uint_eq(longest, CM_MAX_RETRY_USEC);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_CONNECTING);
    }
END_TEST

START_TEST(active_is_answered)
    {
        connect_actively();
        cm_sent(CM_REQ);
        uint64_t version = cm_conns_version(cm.conns);
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        cm_nothing_sent();
        const struct cm_known *known = cm_known(CM_ACTIVE_ID);
        ck_assert_int_eq(known->state, CM_ANSWERED);
        ck_assert_uint_eq(known->remote_id, CM_HOST_ID);
        ck_assert_uint_eq(known->qpn, CM_HOST_QPN);
        ck_assert_uint_eq(known->psn.v, CM_HOST_PSN);
        ck_assert_uint_eq(known->private_len, CM_REP_PRIVATE_LEN);
        ck_assert_str_eq((const char *) known->private_data, "my region");
        ck_assert_uint_ne(cm_conns_version(cm.conns), version);

        /* Not before there is a path for data. */
        version = cm_conns_version(cm.conns);
        for (unsigned i = 0; i < 3; i++) {
            cm_wait(CM_SEC);
            ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
            struct cm_msg mra = cm_sent(CM_MRA);
            ck_assert_int_eq(mra.about, CM_ABOUT_REP);
            ck_assert_uint_eq(mra.local_id, CM_ACTIVE_ID);
            ck_assert_uint_eq(mra.remote_id, CM_HOST_ID);
        }
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);

        be_ready();
        struct cm_msg rtu = cm_sent(CM_RTU);
        ck_assert_uint_eq(rtu.local_id, CM_ACTIVE_ID);
        ck_assert_uint_eq(rtu.remote_id, CM_HOST_ID);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ESTABLISHED);
        cm_configure();
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(lost_rtu_is_repeated)
    {
        establish_actively();
        for (unsigned i = 0; i < 3; i++) {
            ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
            cm_sent(CM_RTU);
        }
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ESTABLISHED);
    }
END_TEST

START_TEST(refused_is_tried_again)
    {
        connect_actively();
        cm_sent(CM_REQ);
        struct cm_msg rej = cm_rej(0, CM_ACTIVE_ID, CM_ABOUT_REQ, CM_REJ_SERVICE_ID);
        ck_assert_int_eq(cm_input(rej), DROP_none);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_REFUSED);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->reason, CM_REJ_SERVICE_ID);
        uint64_t version = cm_conns_version(cm.conns);
        for (unsigned i = 0; i < 5; i++) {
            cm_wait(CM_PAUSE_USEC / 2);
            ck_assert_int_eq(cm_input(rej), DROP_none); /* a copy makes no longer pause. */
            cm_wait(CM_PAUSE_USEC / 2 - 1);
            cm_nothing_sent();
            cm_wait(1);
            cm_sent(CM_REQ);
            ck_assert_int_eq(cm_input(rej), DROP_none);
        }
        /* The same once more is no news for the registry. */
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
        rej.reason = CM_REJ_CONSUMER;
        rej.private_len = 4;
        memcpy(rej.private_data, "full", 4);
        ck_assert_int_eq(cm_input(rej), DROP_none);
        ck_assert_uint_ne(cm_conns_version(cm.conns), version);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->private_len, 4);
        ck_assert_str_eq((const char *) cm_known(CM_ACTIVE_ID)->private_data, "full");

        /* Somebody listens at last. */
        cm_wait(CM_PAUSE_USEC);
        cm_sent(CM_REQ);
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ANSWERED);
    }
END_TEST

START_TEST(refused_and_silent)
    {
        connect_actively();
        cm_sent(CM_REQ);
        cm_input(cm_rej(0, CM_ACTIVE_ID, CM_ABOUT_REQ, CM_REJ_SERVICE_ID));
        cm_wait(100 * CM_SEC);
        ck_assert_uint_ge(cm_n_sent(), 24); /* REQ on REQ. */
        ck_assert_uint_le(cm_n_sent(), 30);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_REFUSED);
    }
END_TEST

/* The listener is killed before RTU, and the REJ overtakes the REP. */
START_TEST(rep_that_its_rej_has_overtaken)
    {
        connect_actively();
        cm_sent(CM_REQ);
        ck_assert_int_eq(
            cm_input(cm_rej(CM_HOST_ID, CM_ACTIVE_ID, CM_ABOUT_OTHER, CM_REJ_CONSUMER)), DROP_none);
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_cm_state);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_REFUSED);
        cm_nothing_sent();
        /* The answer to the next REQ is another's. */
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID + 1, CM_HOST_QPN)), DROP_none);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ANSWERED);
    }
END_TEST

START_TEST(rep_without_a_queue_pair)
    {
        connect_actively();
        cm_sent(CM_REQ);
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, 1)), DROP_cm_state);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_int_eq(rej.about, CM_ABOUT_REP);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
        ck_assert_int_eq(cm_input(cm_rep(0, CM_HOST_QPN)), DROP_cm_state);
        cm_sent(CM_REJ);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_CONNECTING);
    }
END_TEST

/* A late copy of the REQ has made a second connection there. */
START_TEST(second_answer_is_refused)
    {
        establish_actively();
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID + 1, CM_HOST_QPN + 1)), DROP_cm_ids);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_int_eq(rej.about, CM_ABOUT_REP);
        ck_assert_uint_eq(rej.local_id, CM_ACTIVE_ID);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID + 1);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ESTABLISHED);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->qpn, CM_HOST_QPN);
    }
END_TEST

/* A listener that died unheard had the queue pair before. */
START_TEST(answer_of_a_queue_pair_that_is_known)
    {
        establish_actively();
        cm.configs[1] = cm.configs[0];
        cm.configs[1].id = CM_ACTIVE_ID + 1;
        cm.configs[1].port++;
        memset(&cm.configs[1].known, 0, sizeof cm.configs[1].known);
        cm.n_configs = 2;
        cm_configure();
        cm_sent(CM_REQ);
        struct cm_msg rep = cm_rep(CM_HOST_ID + 1, CM_HOST_QPN);
        rep.remote_id = CM_ACTIVE_ID + 1;
        ck_assert_int_eq(cm_input(rep), DROP_none);
        ck_assert_int_eq(cm_cause(CM_ACTIVE_ID), CM_BY_NEW_REQ);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID + 1)->remote_id, CM_HOST_ID + 1);
    }
END_TEST

/* The host's kernel tells of a listener's death by what its state says. */
START_TEST(active_ends)
    {
        static const struct {
            bool established;
            struct cm_msg m;
            enum cm_cause cause;
        } rows[] = {
            {false, {.attribute = CM_REJ, .about = CM_ABOUT_OTHER, .reason = 28}, CM_BY_REJ},
            {true, {.attribute = CM_REJ, .about = CM_ABOUT_OTHER, .reason = 28}, CM_BY_REJ},
            {false, {.attribute = CM_DREQ, .remote_qpn = CM_DQPN}, CM_BY_DREQ},
            {true, {.attribute = CM_DREQ, .remote_qpn = CM_DQPN}, CM_BY_DREQ},
        };
        answer();
        if (rows[_i].established) {
            be_ready();
            cm_sent(CM_RTU);
        }
        struct cm_msg m = rows[_i].m;
        m.remote_id = CM_ACTIVE_ID;
        m.local_id = CM_HOST_ID + 1;
        ck_assert_int_eq(cm_input(m), DROP_cm_ids);
        cm_forget_sent();
        m.local_id = CM_HOST_ID;
        ck_assert_int_eq(cm_input(m), DROP_none);
        if (m.attribute == CM_DREQ) {
            cm_sent(CM_DREP);
        }
        ck_assert_int_eq(cm_cause(CM_ACTIVE_ID), rows[_i].cause);
        cm_configure();
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
    }
END_TEST

START_TEST(active_is_closed)
    {
        establish_actively();
        cm.configs[0].decision = CM_CLOSE;
        cm_configure();
        struct cm_msg dreq = cm_sent(CM_DREQ);
        ck_assert_uint_eq(dreq.remote_qpn, CM_HOST_QPN);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, CM_ACTIVE_ID)), DROP_none);
        ck_assert_int_eq(cm_cause(CM_ACTIVE_ID), CM_BY_DECISION);
    }
END_TEST

/* A program whose answers are no good, or that ends again and again, is asked again after a pause. */
START_TEST(active_follows_another)
    {
        establish_actively();
        cm.configs[0].decision = CM_CLOSE;
        cm_configure();
        cm_sent(CM_DREQ);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, CM_ACTIVE_ID)), DROP_none);
        connect_actively_as(CM_ACTIVE_ID + 1);
        cm_nothing_sent();
        cm_wait(CM_PAUSE_USEC - 1);
        cm_nothing_sent();
        cm_wait(1);
        ck_assert_uint_eq(cm_sent(CM_REQ).local_id, CM_ACTIVE_ID + 1);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
    }
END_TEST

/* The host may be about to answer. */
START_TEST(closed_before_it_is_answered)
    {
        connect_actively();
        cm_sent(CM_REQ);
        cm.configs[0].decision = CM_CLOSE;
        cm_configure();
        ck_assert_int_eq(cm_cause(CM_ACTIVE_ID), CM_BY_DECISION);
        cm_wait(3600 * CM_SEC);
        cm_nothing_sent();
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        struct cm_msg rej = cm_sent(CM_REJ);
        ck_assert_uint_eq(rej.reason, CM_REJ_CONSUMER);
        ck_assert_uint_eq(rej.remote_id, CM_HOST_ID);
    }
END_TEST

START_TEST(active_messages_that_do_not_fit)
    {
        answer();
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, CM_ACTIVE_ID)), DROP_cm_state);
        ck_assert_int_eq(cm_input(cm_of(CM_MRA, CM_HOST_ID, CM_ACTIVE_ID)), DROP_cm_state);
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, CM_ACTIVE_ID)), DROP_cm_state);
        cm_nothing_sent();
    }
END_TEST

START_TEST(listener_takes_its_time)
    {
        connect_actively();
        cm_sent(CM_REQ);
        struct cm_msg mra = cm_of(CM_MRA, CM_HOST_ID, CM_ACTIVE_ID);
        uint64_t version = cm_conns_version(cm.conns);
        ck_assert_int_eq(cm_input(mra), DROP_none);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_CONNECTING);
        ck_assert_uint_eq(cm_conns_version(cm.conns), version);
        cm_wait(CM_MAX_RETRY_USEC);
        cm_sent(CM_REQ);
    }
END_TEST

/* The node is started again. */

START_TEST(restart_requested)
    {
        request();
        cm_register();
        cm_restart();
        cm_nothing_sent();
        request();
        ck_assert_uint_eq(cm_sent(CM_MRA).local_id, ID);
        decide(CM_ACCEPT);
        ck_assert_uint_eq(cm_sent(CM_REP).local_id, ID);
    }
END_TEST

/* The registry has decided, and has not heard more than of the REQ. */
START_TEST(restart_behind_what_was_said)
    {
        request();
        cm_register();
        decide(CM_ACCEPT);
        cm_sent(CM_REP);
        cm_input(cm_of(CM_RTU, CM_HOST_ID, ID));
        cm_restart();
        cm_sent(CM_REP);
        ck_assert_int_eq(cm_state(ID), CM_ACCEPTED);
        ck_assert_int_eq(cm_input(cm_of(CM_RTU, CM_HOST_ID, ID)), DROP_none);
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
    }
END_TEST

START_TEST(restart_accepted)
    {
        accept_request();
        cm_register();
        cm_restart();
        cm_sent(CM_REP);
        cm_nothing_sent();
        cm_wait(CM_RETRY_USEC);
        cm_sent(CM_REP);
    }
END_TEST

/* The program may have the REP: a REJ of the REQ would not reach it. */
START_TEST(restart_accepted_and_closed)
    {
        accept_request();
        cm_register();
        cm.configs[0].decision = CM_CLOSE;
        cm_restart();
        cm_sent(CM_DREQ);
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_CLOSING);
    }
END_TEST

START_TEST(restart_established)
    {
        establish();
        cm_restart();
        cm_nothing_sent();
        ck_assert_int_eq(cm_state(ID), CM_ESTABLISHED);
        request();
        cm_sent(CM_REP);
        disconnect();
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
    }
END_TEST

START_TEST(restart_closing)
    {
        establish();
        decide(CM_CLOSE);
        cm_sent(CM_DREQ);
        cm_register();
        cm_restart();
        cm_sent(CM_DREQ);
        cm_nothing_sent();
        ck_assert_int_eq(cm_input(cm_of(CM_DREP, CM_HOST_ID, ID)), DROP_none);
        ck_assert_int_eq(cm_cause(ID), CM_BY_DECISION);
    }
END_TEST

/* What comes before the configuration may be of a connection that is in it. */
START_TEST(restart_before_the_configuration)
    {
        establish();
        cm_start_again();
        ck_assert_int_eq(cm_input(cm_req(CM_HOST_ID, CM_HOST_QPN)), DROP_cm_unknown);
        ck_assert_int_eq(cm_input(cm_dreq(CM_HOST_ID, ID)), DROP_cm_unknown);
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_cm_unknown);
        cm_nothing_sent();
        cm_configure();
        disconnect();
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
    }
END_TEST

START_TEST(restart_ended)
    {
        establish();
        disconnect();
        cm_register();
        cm_restart();
        cm_nothing_sent();
        ck_assert_int_eq(cm_cause(ID), CM_BY_DREQ);
        request();
        cm_sent(CM_REJ);
        disconnect();
    }
END_TEST

START_TEST(restart_rejected)
    {
        request();
        decide(CM_REJECT);
        struct cm_msg rej = cm_sent(CM_REJ);
        cm_register();
        cm_restart();
        cm_nothing_sent();
        request();
        struct cm_msg again = cm_sent(CM_REJ);
        ck_assert_mem_eq(&rej, &again, sizeof rej);
    }
END_TEST

START_TEST(restart_active)
    {
        static const enum cm_state states[] = {CM_CONNECTING, CM_REFUSED};
        connect_actively();
        struct cm_msg req = cm_sent(CM_REQ);
        if (states[_i] == CM_REFUSED) {
            cm_input(cm_rej(0, CM_ACTIVE_ID, CM_ABOUT_REQ, CM_REJ_SERVICE_ID));
        }
        cm_register();
        cm_restart();
        struct cm_msg again = cm_sent(CM_REQ);
        ck_assert_mem_eq(&req, &again, sizeof req);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), states[_i]);
        /* What was asked for before is answered now. */
        ck_assert_int_eq(cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN)), DROP_none);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ANSWERED);
    }
END_TEST

/* What an answer before was is not of use. */
START_TEST(restart_refused_after_an_answer)
    {
        connect_actively();
        cm.configs[0].known = (struct cm_known){
            .state = CM_REFUSED, .remote_id = CM_HOST_ID, .qpn = CM_HOST_QPN, .reason = 28};
        cm_restart();
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->remote_id, 0);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->qpn, 0);
        ck_assert_uint_eq(cm_known(CM_ACTIVE_ID)->reason, 28);
    }
END_TEST

START_TEST(restart_answered)
    {
        answer();
        cm_register();
        cm_restart();
        cm_nothing_sent();
        cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN));
        cm_sent(CM_MRA);
        be_ready();
        cm_sent(CM_RTU);
        /* And once more, when the registry has not heard of the RTU. */
        cm_restart();
        cm_sent(CM_RTU);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ESTABLISHED);
    }
END_TEST

START_TEST(restart_established_actively)
    {
        establish_actively();
        cm_restart();
        cm_nothing_sent();
        cm_input(cm_rep(CM_HOST_ID, CM_HOST_QPN));
        cm_sent(CM_RTU);
        ck_assert_int_eq(cm_state(CM_ACTIVE_ID), CM_ESTABLISHED);
    }
END_TEST

/* Whatever is in a row: states of the other role, without what they need. */
START_TEST(restored_from_nonsense)
    {
        for (unsigned role = 0; role < cm_role_words.n; role++) {
            for (unsigned state = 0; state < cm_state_words.n; state++) {
                for (unsigned decision = 0; decision < cm_decision_words.n; decision++) {
                    cm.n_configs = 1;
                    cm.configs[0] = (struct cm_conn_config){.id = 3,
                                                            .role = (enum cm_role) role,
                                                            .proxy = cm.proxy,
                                                            .host = cm.host,
                                                            .decision = (enum cm_decision) decision,
                                                            .private_len = UINT16_MAX};
                    cm.configs[0].known.state = (enum cm_state) state;
                    cm.configs[0].known.remote_id = _i & 1;
                    cm.configs[0].known.qpn = _i & 2;
                    cm.configs[0].known.private_len = UINT16_MAX;
                    cm_restart();
                    cm_wait(100 * CM_SEC);
                    ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
                    cm_forget_sent();
                }
            }
        }
    }
END_TEST

START_TEST(another_connection_of_the_same_name)
    {
        establish();
        cm.configs[0].host = cm_addr("fd00:1::2");
        cm.configs[0].known.remote_id = 77;
        cm_configure();
        ck_assert_uint_eq(cm_conns_n(cm.conns), 1);
        ck_assert_uint_eq(cm_known(ID)->remote_id, 77);
    }
END_TEST

START_TEST(thousands)
    {
        for (uint32_t i = 0; i < MANY_CONNS; i++) {
            cm.host.s6_addr[14] = (uint8_t) (i >> 6);
            ck_assert_int_eq(cm_input(cm_req(1 + i, 100 + i)), DROP_none);
        }
        ck_assert_uint_eq(cm_conns_n(cm.conns), MANY_CONNS);
        struct cm_conn_config *all = calloc(MANY_CONNS, sizeof *all);
        ck_assert_ptr_nonnull(all);
        for (uint32_t i = 0; i < MANY_CONNS; i++) {
            struct cm_conn_info info;
            cm_conns_get(cm.conns, i, &info);
            all[i] = (struct cm_conn_config){
                .id = info.id, .role = info.role, .proxy = info.proxy, .host = info.host};
        }
        cm_conns_configure(cm.conns, all, MANY_CONNS, cm.now);
        cm_conns_configure(cm.conns, all + 1, MANY_CONNS - 1, cm.now);
        ck_assert_uint_eq(cm_conns_n(cm.conns), MANY_CONNS - 1);
        cm_conns_configure(cm.conns, NULL, 0, cm.now);
        ck_assert_uint_eq(cm_conns_n(cm.conns), 0);
        ck_assert_uint_eq(cm_conns_deadline(cm.conns), UINT64_MAX);
        free(all);
    }
END_TEST

Suite *
cm_conn_suite(void)
{
    const TTest *const passive[] = {
        req_waits_for_a_decision,
        repeated_req_gets_mra_until_decided,
        accepted_until_rtu,
        lost_rep_is_repeated,
        repeated_req_gets_the_same_rep,
        mra_of_a_rep_gives_time,
        packet_is_as_good_as_rtu,
        packet_before_the_decision_is_nothing,
        rejected_by_decision,
        close_before_rep_is_a_rej,
        no_service_for_datagrams,
        dreq_ends_it,
        dreq_before_rtu,
        dreq_with_wrong_ids,
        dreq_of_an_unknown_connection,
        rep_of_an_unknown_connection,
        messages_of_unknown_connections,
        messages_of_another_host,
        messages_with_another_local_id,
        messages_that_do_not_fit_the_state,
        rej_of_a_rep,
        close_repeats_dreq_until_drep,
        close_gives_up,
        close_and_a_crossing_dreq,
        ended_for_who_takes_it_for_established,
        late_req_begins_nothing,
        late_req_does_not_end_the_next_connection,
        same_queue_pair_asks_again,
        same_id_in_another_transaction,
        other_queue_pairs_and_hosts_are_others,
        source_that_asks_no_more,
        ended_stays_as_long_as_the_registry_has_it,
        ended_before_the_registry_had_it,
        removed_is_forgotten_without_a_word,
        configuration_without_it_is_older,
        requests_of_a_host_are_bounded,
        requests_of_a_host_have_a_rate,
        ended_ones_of_a_host_are_bounded,
        ids_in_use_are_skipped,
        keepalive_asks_the_kernel,
        keepalive_is_content_with_packets,
        keepalive_ends_in_silence,
        keepalive_begins_with_a_packet,
        keepalive_is_switched,
    };
    const TTest *const active[] = {
        active_sends_req,
        active_connections_of_a_host_have_guids_of_their_own,
        active_repeats_req_for_ever,
        active_is_answered,
        lost_rtu_is_repeated,
        refused_is_tried_again,
        refused_and_silent,
        rep_that_its_rej_has_overtaken,
        rep_without_a_queue_pair,
        second_answer_is_refused,
        answer_of_a_queue_pair_that_is_known,
        active_is_closed,
        active_follows_another,
        closed_before_it_is_answered,
        active_messages_that_do_not_fit,
        listener_takes_its_time,
    };
    const TTest *const restart[] = {
        restart_requested,
        restart_behind_what_was_said,
        restart_accepted,
        restart_accepted_and_closed,
        restart_established,
        restart_closing,
        restart_before_the_configuration,
        restart_ended,
        restart_rejected,
        restart_refused_after_an_answer,
        restart_answered,
        restart_established_actively,
        another_connection_of_the_same_name,
        thousands,
    };
    Suite *suite = suite_create("cm_conn");
    TCase *tc = tcase_create("connections");

    tcase_add_checked_fixture(tc, cm_conn_setup, cm_conn_teardown);
    for (size_t i = 0; i < sizeof passive / sizeof *passive; i++) {
        tcase_add_test(tc, passive[i]);
    }
    tcase_add_loop_test(tc, refused_without_a_decision, 0, sizeof refusals / sizeof *refusals);
    tcase_add_loop_test(tc, rej_of_a_req, 0, 2);
    for (size_t i = 0; i < sizeof active / sizeof *active; i++) {
        tcase_add_test(tc, active[i]);
    }
    tcase_add_loop_test(tc, active_ends, 0, 4);
    for (size_t i = 0; i < sizeof restart / sizeof *restart; i++) {
        tcase_add_test(tc, restart[i]);
    }
    tcase_add_loop_test(tc, restart_active, 0, 2);
    tcase_add_loop_test(tc, restored_from_nonsense, 0, 4);
    suite_add_tcase(suite, tc);
    return suite;
}
