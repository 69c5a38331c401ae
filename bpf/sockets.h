/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the scales of TCP sockets into the map `known`: those of the network namespace of the
 * agent, which runs it when it has attached a port, and again from time to time.
 */
#ifndef PENSTOCK_SOCKETS_H
#define PENSTOCK_SOCKETS_H

#include <bpf/bpf_endian.h>

#include "sender.h"
#include "sweep.h"

#define AF_INET	 2
#define AF_INET6 10

/* ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT (include/net/tcp_states.h): data may pass. */
#define OPEN_STATES (1u << 1 | 1u << 4 | 1u << 5 | 1u << 8)

/* The flow whose data the socket sends. */
static __always_inline void socket_key(struct flow_key6 *key, struct sock_common *socket)
{
	if (socket->skc_family == AF_INET) {
		key->source[2] = key->destination[2] = bpf_htonl(0xffff);
		key->source[3] = socket->skc_rcv_saddr;
		key->destination[3] = socket->skc_daddr;
	} else {
		bpf_probe_read_kernel(key->source, 16, &socket->skc_v6_rcv_saddr);
		bpf_probe_read_kernel(key->destination, 16, &socket->skc_v6_daddr);
	}
	key->source_port = bpf_htons(socket->skc_num);
	key->destination_port = socket->skc_dport;
}

static __always_inline void socket_read(struct sock_common *socket, struct tcp_sock *tcp)
{
	struct flow_known seen = {.seen_ns = bpf_ktime_get_ns()};
	struct flow_key6 key = {};

	socket_key(&key, socket);
	socket_options(tcp, FLOW_DATA, &seen);
	bpf_map_update_elem(&known, &key, &seen, BPF_ANY);
}

static int known_expire(void *map, const struct flow_key6 *key, const struct flow_known *known,
			const u64 *now_ns)
{
	_Bool is_old = elapsed_ns(known->seen_ns, *now_ns) >= KNOWN_LIFE_NS;
	struct sweep_port at;

	if ((is_old && !known->unified) || (key->port && !sweep_find_port(&at, key->port)))
		bpf_map_delete_elem(map, key);
	return 0;
}

SEC("iter/tcp")
int sockets(struct bpf_iter__tcp *context)
{
	struct sock_common *socket = context->sk_common;
	struct tcp_sock *tcp;

	if (!socket) {
		u64 now_ns = bpf_ktime_get_ns();

		bpf_for_each_map_elem(&known, known_expire, &now_ns, 0);
		return 0;
	}
	tcp = bpf_skc_to_tcp_sock(socket);
	if (tcp && 1u << (socket->skc_state & 31) & OPEN_STATES)
		socket_read(socket, tcp);
	return 0;
}

#endif
