/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of test suites: SUITE(x) is x_suite() in tests/unit/test-<x>.c.
 */
#ifndef TESTS_UNIT_SUITES_H
#define TESTS_UNIT_SUITES_H 1

#include <check.h>

/* How often a test does something that follows from chance: with sanitizers, which are slow and look for
 * something else, a fifth of that. */
#ifdef __SANITIZE_ADDRESS__
#define BY_CHANCE(N) ((N) / 5)
#else
#define BY_CHANCE(N) (N)
#endif

#define SUITES(SUITE)    \
    SUITE(address_plan)  \
    SUITE(agent_edge)    \
    SUITE(agent_rate)    \
    SUITE(agent_signals) \
    SUITE(agent_trace)   \
    SUITE(aggregate)     \
    SUITE(auth)          \
    SUITE(auth_node)     \
    SUITE(bench)         \
    SUITE(bench_cli)     \
    SUITE(bench_counter) \
    SUITE(castfwd)       \
    SUITE(cm)            \
    SUITE(cm_drops)      \
    SUITE(cm_kernels)    \
    SUITE(cm_conn)       \
    SUITE(cnp)           \
    SUITE(cnp_node)      \
    SUITE(cnp_window)    \
    SUITE(congestion)    \
    SUITE(connection)    \
    SUITE(content)       \
    SUITE(data_auth)     \
    SUITE(data_model)    \
    SUITE(copies)        \
    SUITE(cover)         \
    SUITE(deadlines)     \
    SUITE(drop)          \
    SUITE(ecn)           \
    SUITE(egress)        \
    SUITE(end)           \
    SUITE(end_mt)        \
    SUITE(end_mt_ip)     \
    SUITE(fanout)        \
    SUITE(fast_cnp)      \
    SUITE(fib)           \
    SUITE(figure)        \
    SUITE(frame_ring)    \
    SUITE(group_answer)  \
    SUITE(guard)         \
    SUITE(hash_index)    \
    SUITE(headend)       \
    SUITE(headend_edge)  \
    SUITE(headend_fail)  \
    SUITE(headend_load)  \
    SUITE(headend_plan)  \
    SUITE(icmp6)         \
    SUITE(icrc)          \
    SUITE(impair)        \
    SUITE(intent)        \
    SUITE(ioam)          \
    SUITE(join)          \
    SUITE(l3)            \
    SUITE(l3_icmp)       \
    SUITE(l3_next)       \
    SUITE(locate)        \
    SUITE(locate_many)   \
    SUITE(loss)          \
    SUITE(messages)      \
    SUITE(mirror)        \
    SUITE(modes)         \
    SUITE(neigh)         \
    SUITE(node_cm)       \
    SUITE(node_config)   \
    SUITE(node_egress)   \
    SUITE(pace)          \
    SUITE(pacer)         \
    SUITE(packet)        \
    SUITE(packet_text)   \
    SUITE(parse)         \
    SUITE(parse_fields)  \
    SUITE(path_health)   \
    SUITE(path_order)    \
    SUITE(path_switch)   \
    SUITE(pcap_write)    \
    SUITE(perftest)      \
    SUITE(plan)          \
    SUITE(plan_edge)     \
    SUITE(plan_grow)     \
    SUITE(plan_headend)  \
    SUITE(plan_locate)   \
    SUITE(plan_path)     \
    SUITE(plan_probe)    \
    SUITE(plan_rates)    \
    SUITE(plan_tree)     \
    SUITE(plan_via)      \
    SUITE(plan_planes)   \
    SUITE(planes)        \
    SUITE(policy)        \
    SUITE(port_gso)      \
    SUITE(port_helper)   \
    SUITE(port_uso)      \
    SUITE(position)      \
    SUITE(presume)       \
    SUITE(printable)     \
    SUITE(private_data)  \
    SUITE(prober)        \
    SUITE(rate_control)  \
    SUITE(rate_loop)     \
    SUITE(reflector)     \
    SUITE(resend)        \
    SUITE(response)      \
    SUITE(response_auth) \
    SUITE(retry)         \
    SUITE(reverse)       \
    SUITE(reverse_cost)  \
    SUITE(reverse_model) \
    SUITE(reverse_start) \
    SUITE(roce)          \
    SUITE(rollout)       \
    SUITE(rollout_auth)  \
    SUITE(rollout_join)  \
    SUITE(routes)        \
    SUITE(schema)        \
    SUITE(settings)      \
    SUITE(spelling)      \
    SUITE(srcagent)      \
    SUITE(srcagent_root) \
    SUITE(srh)           \
    SUITE(stamp)         \
    SUITE(steer)         \
    SUITE(survey)        \
    SUITE(syscalls)      \
    SUITE(swedge)        \
    SUITE(transit)       \
    SUITE(tree_sim)      \
    SUITE(tunnelled)     \
    SUITE(tx_queues)     \
    SUITE(usid)          \
    SUITE(usid_node)     \
    SUITE(values)        \
    SUITE(view)          \
    SUITE(wire)          \
    SUITE(words)

#define SUITE(NAME) Suite *NAME##_suite(void);
SUITES(SUITE)
#undef SUITE

#endif /* tests/unit/suites.h */
