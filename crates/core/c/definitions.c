/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of core/ as data: parameters of every scheme, what a port counts, why it passes. */

#include <stddef.h>

#include "counters.h"
#include "grant.h"
#include "hcf.h"
#include "schemes.h"
#include "sicc.h"

/* Mirrored by src/definitions.rs; a list ends with an element whose first word is null. */
struct core_word {
	const char *word;
	const char *meaning;
};

struct core_param {
	const char *key;
	const char *unit;
	const char *field; /* null: the caller's, not in the struct */
	const char *meaning;
	const struct core_word *words; /* of an ENUM */
	double min, max, standard, paper;
	u32 standard_rtts, paper_rtts;
	u32 offset, bytes; /* of the field */
};

struct core_field {
	const char *name;
	u32 offset, bytes;
};

struct core_order {
	const char *low, *high; /* keys: the first must be below the second */
};

struct core_change {
	const char *variant, *key;
	double value;
};

struct core_definition {
	const char *name;
	const char *title;
	const struct core_param *params;
	const struct core_order *orders;
	const struct core_change *variants; /* from the column `paper`; null: none */
	const struct core_field *port;	    /* fields of the struct about the port */
	u32 scheme;			    /* number of a window scheme, else 0 */
	u32 params_bytes;		    /* of its struct */
	u32 state_bytes;
	u32 offset; /* of its parameters in struct scheme_params */
	void (*preset)(void *params, u32 buffer, u32 is_paper);
};

#define STRING_(text) #text
#define STRING(text)  STRING_(text)

/* A value of a table as a number, and the round trips in it: only times are u64. */
#define VALUE(value)                                                                               \
	_Generic((value), u64 : (double)PARAM_NS((u64)(value)), default : (double)(value))
#define ROUND_TRIPS(value) _Generic((value), u64 : (u32)PARAM_RTTS((u64)(value)), default : 0)

/* By unit: the lower end of the range; a list begins at 0. */
#define MIN_TIME(min)	       VALUE(min)
#define MIN_SHARE(min)	       VALUE(min)
#define MIN_RATE(min)	       VALUE(min)
#define MIN_BUFFER_SHARE(min)  VALUE(min)
#define MIN_BUFFER_LIMIT(min)  VALUE(min)
#define MIN_SEGMENTS(min)      VALUE(min)
#define MIN_SEGMENT_BYTES(min) VALUE(min)
#define MIN_COUNT(min)	       VALUE(min)
#define MIN_AMOUNT(min)	       VALUE(min)
#define MIN_FLAG(min)	       VALUE(min)
#define MIN_ENUM(list)	       0

/* By unit: the words. */
#define WORD(value, word, meaning) {word, meaning},

#define WORDS_TIME(min)		 0
#define WORDS_SHARE(min)	 0
#define WORDS_RATE(min)		 0
#define WORDS_BUFFER_SHARE(min)	 0
#define WORDS_BUFFER_LIMIT(min)	 0
#define WORDS_SEGMENTS(min)	 0
#define WORDS_SEGMENT_BYTES(min) 0
#define WORDS_COUNT(min)	 0
#define WORDS_AMOUNT(min)	 0
#define WORDS_FLAG(min)		 0
#define WORDS_ENUM(list)                                                                           \
	(const struct core_word[])                                                                 \
	{                                                                                          \
		list(WORD)                                                                         \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* clang-format off */
#define PORT_ROW(scheme, unit_, key_, min_, max_, standard_, paper_, meaning_)                     \
	.key = #key_, .unit = #unit_, .meaning = meaning_, .words = WORDS_##unit_(min_),           \
	.min = MIN_##unit_(min_), .max = VALUE(max_),                                      \
	.standard = VALUE(standard_), .paper = VALUE(paper_),                      \
	.standard_rtts = ROUND_TRIPS(standard_), .paper_rtts = ROUND_TRIPS(paper_),

/* A row of the struct, and one that is the caller's. */
#define ROW(scheme, unit_, key_, ...)                                                              \
	{                                                                                          \
		PORT_ROW(scheme, unit_, key_, __VA_ARGS__)                                         \
		.field = STRING(PARAM_FIELD_##unit_(key_)),                                        \
		.offset = offsetof(struct scheme##_params, PARAM_FIELD_##unit_(key_)),             \
		.bytes = sizeof(PARAM_TYPE_##unit_),                                               \
	},
#define CALLERS_ROW(...) {PORT_ROW(__VA_ARGS__)},

#define ORDER(scheme, low, high) {#low, #high},
#define CHANGE(scheme, variant, key, value) {#variant, #key, VALUE(value)},

#define FIELD(scheme, field) {#field, offsetof(struct scheme##_params, field), 4},
#define PORT_FIELDS(scheme)                                                                        \
	(const struct core_field[]){FIELD(scheme, buffer_bytes) FIELD(scheme, mss_bytes){0}}

#define PRESET(name)                                                                               \
	static void name##_preset(void *params, u32 buffer, u32 is_paper)                          \
	{                                                                                          \
		*(struct name##_params *)params = is_paper ? name##_paper_params(buffer)           \
							   : name##_default_params(buffer);        \
	}

#define WINDOW_SCHEME(name_, NAME, ...)                                                            \
	{                                                                                          \
		.name = #name_, .title = NAME##_TITLE, .scheme = SCHEME_##NAME,                    \
		.params = (const struct core_param[]){NAME##_PARAMS(ROW, name_){0}},               \
		.orders = (const struct core_order[]){NAME##_ORDER(ORDER, name_){0}},              \
		.variants = (const struct core_change[]){NAME##_VARIANTS(CHANGE, name_){0}},       \
		.port = PORT_FIELDS(name_),                                                        \
		.params_bytes = sizeof(struct name_##_params),                                     \
		.state_bytes = sizeof(struct name_##_state),                                       \
		.offset = offsetof(struct scheme_params, name_), .preset = name_##_preset,         \
	},
/* clang-format on */

#define SCHEME_PRESET(name, NAME, ...) PRESET(name)
WINDOW_SCHEMES(SCHEME_PRESET)
PRESET(grant)
PRESET(sicc)
PRESET(hcf)

static void window_preset(void *params, u32 buffer, u32 is_paper)
{
	(void)buffer, (void)is_paper;
	*(struct window_params *)params = window_default_params();
}

extern const struct core_definition core_definitions[];
const struct core_definition core_definitions[] = {
	WINDOW_SCHEMES(WINDOW_SCHEME){
		.name = "window",
		.title = "What is common to all window schemes at a port",
		.params = (const struct core_param[]){WINDOW_PARAMS(ROW, window){0}},
		.orders = (const struct core_order[]){{0}},
		.port = (const struct core_field[]){{0}},
		.params_bytes = sizeof(struct window_params),
		.preset = window_preset,
	},
	{
		.name = "grant",
		.title = GRANT_TITLE,
		.params = (const struct core_param[]){GRANT_PARAMS(ROW, grant) GRANT_PORT_PARAMS(
			CALLERS_ROW, grant){0}},
		.orders = (const struct core_order[]){GRANT_ORDER(ORDER, grant){0}},
		.port = PORT_FIELDS(grant),
		.params_bytes = sizeof(struct grant_params),
		.state_bytes = sizeof(struct grant_port),
		.preset = grant_preset,
	},
	{
		.name = "sicc",
		.title = SICC_TITLE,
		.params = (const struct core_param[]){SICC_PARAMS(ROW, sicc) SICC_CHANNEL_PARAMS(
			CALLERS_ROW, sicc){0}},
		.orders = (const struct core_order[]){SICC_ORDER(ORDER, sicc){0}},
		.port = PORT_FIELDS(sicc),
		.params_bytes = sizeof(struct sicc_params),
		.state_bytes = sizeof(struct sicc_port),
		.preset = sicc_preset,
	},
	{
		.name = "hcf",
		.title = HCF_TITLE,
		.params = (const struct core_param[]){HCF_PARAMS(ROW, hcf)
							      HCF_PORT_PARAMS(CALLERS_ROW, hcf){0}},
		.orders = (const struct core_order[]){{0}},
		.port = (const struct core_field[]){FIELD(hcf, capacity_packets[0]) FIELD(
			hcf, capacity_packets[1]) FIELD(hcf, capacity_bytes[0])
							    FIELD(hcf, capacity_bytes[1]){0}},
		.params_bytes = sizeof(struct hcf_params),
		.state_bytes = sizeof(struct hcf_state),
		.preset = hcf_preset,
	},
	{0},
};

#define COUNTER(name, meaning)	    {#name, meaning},
#define REASON(NAME, name, meaning) {#name, meaning},

extern const struct core_word core_counters[], core_canary_counters[], core_credit_counters[],
	core_pass_reasons[];
const struct core_word core_counters[] = {PORT_COUNTERS(COUNTER){0}};
const struct core_word core_canary_counters[] = {CANARY_COUNTERS(COUNTER){0}};
const struct core_word core_credit_counters[] = {CREDIT_COUNTERS(COUNTER){0}};
const struct core_word core_pass_reasons[] = {PASS_REASON_LIST(REASON){0}};
