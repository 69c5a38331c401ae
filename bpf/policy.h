/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which flows of a port are controlled: all, unless the agent gave rules (exclude, include) or a
 * canary, the share of flows that a hash of their key chooses. Without either, `policy` of the
 * configuration is 0, and that one test is all that it costs.
 *
 * The flow's addresses and ports decide (those of the inner headers of a tunnel), and the DSCP of
 * the outer header and the mark of what leaves by the port: an ACK that enters has its sender's
 * DSCP and no mark yet. So each packet that leaves stamps its flow's entry with the answer, by
 * which ACKs are judged. Until then, rules by DSCP or mark leave a flow alone.
 *
 * What is not controlled passes untouched, without a mark too, but is followed and counted as any
 * other flow: it uses the port, so a share of it is not there for others.
 */
#ifndef PENSTOCK_POLICY_H
#define PENSTOCK_POLICY_H

#include <bpf/bpf_endian.h>

#include "packet.h"
#include "state.h"

/* What the rules look at. */
struct policy_facts {
	u32 family;		       /* 4, 6, or 0: not IP */
	u32 source[4], destination[4]; /* as on the wire; IPv4 in the first word */
	u32 ports[2];		       /* of TCP; 0: another protocol */
	u32 dscp, mark;
	_Bool leaves; /* else dscp and mark are not known */
};

static __always_inline struct policy_facts policy_facts_of(const struct __sk_buff *skb,
							   const struct packet *packet,
							   _Bool is_tcp, _Bool leaves)
{
	struct policy_facts facts = {
		.family = packet->family,
		.dscp = packet_dscp(packet),
		.mark = skb->mark,
		.leaves = leaves,
	};

	if (packet->family == 4) {
		facts.source[0] = packet->key.v4.source;
		facts.destination[0] = packet->key.v4.destination;
	} else {
		__builtin_memcpy(facts.source, packet->key.v6.source, 16);
		__builtin_memcpy(facts.destination, packet->key.v6.destination, 16);
	}
	if (is_tcp && packet->family == 4) {
		facts.ports[0] = bpf_ntohs(packet->key.v4.source_port);
		facts.ports[1] = bpf_ntohs(packet->key.v4.destination_port);
	} else if (is_tcp) {
		facts.ports[0] = bpf_ntohs(packet->key.v6.source_port);
		facts.ports[1] = bpf_ntohs(packet->key.v6.destination_port);
	}
	return facts;
}

static __always_inline _Bool policy_has_prefix(const struct policy_rule *rule, const u32 *address)
{
	u32 other = 0;

	for (u32 i = 0; i < 4; i++)
		other |= (address[i] & rule->mask[i]) ^ rule->value[i];
	return !other;
}

/*
 * Whether a packet fits a rule. Global, so that the verifier checks it once, by itself, and not for
 * each rule.
 */
__noinline u32 policy_matches(struct policy_facts *facts, u32 element, u32 number)
{
	const struct port_policy *rules = bpf_map_lookup_elem(&policy, &element);
	const struct policy_rule *rule;
	u32 value, mask;

	if (!facts || !rules || number >= POLICY_RULES)
		return 0;
	rule = &rules->rule[number];
	value = rule->value[0];
	mask = rule->mask[0];
	switch (rule->kind) {
	case POLICY_IPV4:
	case POLICY_IPV6:
		return facts->family == (rule->kind == POLICY_IPV4 ? 4 : 6) &&
		       (policy_has_prefix(rule, facts->source) ||
			policy_has_prefix(rule, facts->destination));
	case POLICY_TCP:
		return (facts->ports[0] - value <= mask - value) ||
		       (facts->ports[1] - value <= mask - value);
	case POLICY_DSCP:
		return facts->leaves ? facts->dscp == value : !rule->includes;
	case POLICY_MARK:
		return facts->leaves ? (facts->mark & mask) == value : !rule->includes;
	}
	return 0;
}

/* Equal for both directions of a flow, as its key is that of the data. */
static __always_inline u32 policy_hash(const struct policy_facts *facts, u64 seed)
{
	const u64 odd = 0x9e3779b97f4a7c15ull;
	u64 hash = seed;

	for (u32 i = 0; i < 4; i++) {
		hash = (hash ^ ((u64)facts->source[i] << 32 | facts->destination[i])) * odd;
		hash ^= hash >> 32;
	}
	hash = (hash ^ ((u64)facts->ports[0] << 32 | facts->ports[1])) * odd;
	hash ^= hash >> 32;
	hash *= odd;
	return (u32)(hash >> 32);
}

/* The answer of the rules and the canary: an enum policy_side. */
static __always_inline u32 policy_side_of(const struct port_policy *rules,
					  struct policy_facts *facts, u32 element)
{
	_Bool is_included = !rules->includes;

	for (u32 i = 0; i < POLICY_RULES && i < rules->rules; i++) {
		if (!policy_matches(facts, element, i))
			continue;
		if (!rules->rule[i].includes)
			return SIDE_EXCLUDED;
		is_included = 1;
		break;
	}
	if (!is_included)
		return SIDE_EXCLUDED;
	if (!rules->canary)
		return SIDE_CONTROLLED;
	return facts->ports[0] && policy_hash(facts, rules->seed) <= rules->canary ? SIDE_CONTROLLED
										   : SIDE_HELD_OUT;
}

/*
 * The same for a packet under a policy of the configuration. Global, so that the verifier checks it
 * once.
 */
__noinline u32 policy_judge(struct __sk_buff *skb, struct packet *packet, u32 element, u32 is_tcp,
			    u32 leaves)
{
	const struct port_policy *rules = bpf_map_lookup_elem(&policy, &element);
	struct policy_facts facts;

	if (!packet || !rules)
		return SIDE_EXCLUDED;
	facts = policy_facts_of(skb, packet, is_tcp, leaves);
	return policy_side_of(rules, &facts, element);
}

/*
 * How the present packet is judged; null if all flows are controlled. Looked up at each use: kept
 * in a register, it would double what the verifier has to follow.
 */
static __always_inline struct judgement *policy_judgement(const struct port_config *config,
							  struct port_counters *counted)
{
	return config->policy ? &stats_of(counted)->judged : 0;
}

/* Begins to follow a packet. */
static __always_inline void policy_begin(const struct port_config *config,
					 const struct port_state *state,
					 struct port_counters *counted)
{
	struct judgement *judgement = policy_judgement(config, counted);

	if (!judgement)
		return;
	judgement->policy = config->policy; /* which may be another by now */
	judgement->element = 2 * (state->id & PORT_SLOT_MASK) + (judgement->policy & 1);
	judgement->side = SIDE_CONTROLLED;
	judgement->is_counted = 0;
#define SIDE_NOTE(name, ...) judgement->before.name = counted->name;
	CANARY_PORT_COUNTERS(SIDE_NOTE)
}

/* Apart, as without a policy one test is all that it costs. */
static __noinline void policy_judge_data(const struct port_config *config,
					 struct port_counters *counted, struct __sk_buff *skb,
					 struct packet *packet, _Bool is_tcp)
{
	struct judgement *judgement = policy_judgement(config, counted);

	if (judgement)
		judgement->side = policy_judge(skb, packet, judgement->element, is_tcp, 1);
}

/* Judges a packet that leaves. */
static __always_inline void policy_on_data(const struct port_config *config,
					   struct port_counters *counted, struct __sk_buff *skb,
					   struct packet *packet, _Bool is_tcp)
{
	if (config->policy)
		policy_judge_data(config, counted, skb, packet, is_tcp);
}

/* It stamps its flow, whose ACKs are judged by that. */
static __always_inline void policy_stamp(const struct port_config *config,
					 struct port_counters *counted, u8 *side, u8 *policy)
{
	const struct judgement *judgement = policy_judgement(config, counted);

	if (!judgement)
		return;
	*side = (u8)judgement->side;
	*policy = (u8)judgement->policy;
}

/* Judges an ACK that enters. */
static __always_inline void policy_on_acks(const struct port_config *config,
					   struct port_counters *counted, struct __sk_buff *skb,
					   struct packet *packet, const struct port_flow *flow,
					   const struct port_half *half)
{
	struct judgement *judgement = policy_judgement(config, counted);

	if (!judgement)
		return;
	if (flow && flow->policy == (u8)judgement->policy)
		judgement->side = flow->side;
	else if (half && half->policy == (u8)judgement->policy)
		judgement->side = half->side;
	else
		judgement->side = policy_judge(skb, packet, judgement->element, 1, 0);
}

/*
 * Whether the packet is to be left alone. Drop, priority, mark and window each ask, but the packet
 * counts once, by reason.
 */
static __always_inline _Bool policy_spares(const struct port_config *config,
					   struct port_counters *counted)
{
	struct judgement *judgement = policy_judgement(config, counted);

	if (!judgement || judgement->side == SIDE_CONTROLLED)
		return 0;
	counted->passed[judgement->side == SIDE_HELD_OUT ? PASS_HELD_OUT : PASS_EXCLUDED] +=
		!judgement->is_counted;
	judgement->is_counted = 1;
	return 1;
}

/* The window of an ACK was lowered. */
static __always_inline void policy_on_rewritten(const struct port_config *config,
						struct port_counters *counted)
{
	if (config->policy)
		stats_of(counted)->sides[SIDE_CONTROLLED].acks_rewritten++;
}

/* Apart, as above. */
static __noinline void policy_sum(const struct port_config *config, struct port_counters *counted)
{
	struct judgement *judgement = policy_judgement(config, counted);
	struct side_counters *sum;

	if (!judgement || !judgement->policy || judgement->side >= SIDES)
		return; /* the configuration came between, or it is excluded */
	sum = &stats_of(counted)->sides[judgement->side == SIDE_HELD_OUT];
#define SIDE_ADD(name, ...) sum->name += counted->name - judgement->before.name;
	CANARY_PORT_COUNTERS(SIDE_ADD)
}

/* What the packet added to the port's counters counts for its side. */
static __always_inline void policy_end(const struct port_config *config,
				       struct port_counters *counted)
{
	if (config->policy)
		policy_sum(config, counted);
}

#endif
