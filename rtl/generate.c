/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the hardware takes from core/: constants and parameters as a SystemVerilog package
 * (`generate sv`), the same parameters as words for test benches (`cpp`), and the page of the
 * registers (`page`). Every name, range, default and meaning is that of the tables in core/.
 *
 * All parameters are 32-bit words here. Times end at 4.29 s, which a word of nanoseconds holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters.h"
#include "flow_counter.h"
#include "handshake.h"
#include "hcf.h"
#include "schemes.h"

/* The buffer of an output unless a build sets another; reset values are shares of this one. */
#define BUFFER_BYTES 65536u
#define MAX_ROWS     128
#define PORT_STRIDE  0x400u

/* A value of an ENUM; the last one has no name. */
struct word {
	u64 value;
	const char *name;
};

struct row {
	const char *scheme, *field, *unit, *meaning;
	u64 min, max, standard;
	u32 is_counter;		  /* read only */
	const struct word *words; /* of an ENUM */
};

static struct row rows[MAX_ROWS];
static u32 count;

/* Parameters that need what the hardware does not have. */
static const struct {
	const char *scheme, *field, *reason;
} absent[] = {
	{"fairq", "counting", "always by packets: there is no table of flows"},
	{"hscc", "cuts", "the switch does not shorten frames"},
	{"window", "first_acks", "without a table of flows only SYN-ACKs are known to be first"},
	{"window", "never_shrink", "needs each flow's right edge"},
	{"hcf", "high_share", "software computes the capacities from it"},
};

/* Returns the row, or one that is not printed. */
static struct row *add(const char *scheme, const char *field, const char *unit, u64 min, u64 max,
		       u64 standard, const char *meaning)
{
	static struct row left_out;

	for (u32 i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		if (!strcmp(scheme, absent[i].scheme) && !strcmp(field, absent[i].field))
			return &left_out;
	/* Sources of the scale that need no state of a flow. */
	if (!strcmp(field, "wscale_source")) {
		min = WSCALE_RESERVED_BITS;
		max = WSCALE_STRIPPED;
		standard = WSCALE_RESERVED_BITS;
	}
	if (max > 0xffffffffu)
		max = 0xffffffffu;
	rows[count] = (struct row){scheme, field, unit, meaning, min, max, standard, 0, 0};
	return &rows[count++];
}

#define TEXT_(text) #text
#define TEXT(text)  TEXT_(text)

#define ADD(scheme, unit_, key, low, high, standard, paper, meaning)                               \
	{                                                                                          \
		const u64 range[] = {PARAM_RANGE_##unit_(low, high)};                              \
		struct row *row = add(                                                             \
			#scheme, TEXT(PARAM_FIELD_##unit_(key)), #unit_, range[0], range[1],       \
			PARAM_RAW_##unit_(standard, BUFFER_BYTES, DEFAULT_MSS_BYTES), meaning);    \
		(void)row;                                                                         \
		ADD_MORE_##unit_(scheme, key, low)                                                 \
	}
#define ADD_MORE_TIME(scheme, key, low)
#define ADD_MORE_SHARE(scheme, key, low)
#define ADD_MORE_BUFFER_SHARE(scheme, key, low)
#define ADD_MORE_BUFFER_LIMIT(scheme, key, low)
#define ADD_MORE_SEGMENTS(scheme, key, low)
#define ADD_MORE_SEGMENT_BYTES(scheme, key, low)
#define ADD_MORE_COUNT(scheme, key, low)
#define ADD_MORE_FLAG(scheme, key, low)
#define WORD(value, word, meaning) {value, word},
#define ADD_MORE_ENUM(scheme, key, list)                                                           \
	static const struct word words[] = {list(WORD){0, 0}};                                     \
	row->words = words;
#define ADD_MORE_AMOUNT(scheme, key, low)                                                          \
	add(#scheme, #key "_in_bytes", "FLAG", 0, 1, 0, "Whether `" #key "` are bytes");

static void port_rows(const char *scheme)
{
	add(scheme, "buffer_bytes", "BYTES", 1, 0xffffffffu, BUFFER_BYTES, "The port's buffer");
	add(scheme, "mss_bytes", "BYTES", 1, MAX_MSS_BYTES, DEFAULT_MSS_BYTES,
	    "Size of segments until some have passed");
}

static void counter(const char *name, const char *meaning)
{
	rows[count++] = (struct row){"counter", name, "COUNTER", meaning, 0, 0xffffffffu, 0, 1, 0};
}

/* Those that need no table of flows. */
static const char *const counted[] = {
	"egress_packets", "egress_bytes", "ingress_packets", "acks",
	"acks_rewritten", "acks_floored", "ecn_marks",	     "syns",
	"zero_windows",	  "clamps",	  "data_dropped",
};

#define COUNTER(name, meaning)                                                                     \
	for (u32 i = 0; i < sizeof(counted) / sizeof(*counted); i++)                               \
		if (!strcmp(#name, counted[i]))                                                    \
			counter(#name, meaning);

static void fill(void)
{
	add("port", "scheme", "ENUM", 0, SCHEMES, 0,
	    "0 none, 1 fairq, 2 hscc, 3 hcf; a write prepares the port again");
	add("port", "ecn_threshold_bytes", "BYTES", 0, 0xffffffffu, 0,
	    "Frames with ECT are marked CE from this queue on; 0: never (FairQ §IV-E)");
	port_rows("fairq");
	FAIRQ_PARAMS(ADD, fairq)
	port_rows("hscc");
	HSCC_PARAMS(ADD, hscc)
	add("hcf", "capacity_packets_high", "COUNT", 0, 0xffffffffu, 0,
	    "Of the high queue; 0: unlimited");
	add("hcf", "capacity_packets_low", "COUNT", 0, 0xffffffffu, 0,
	    "Of the low queue; 0: unlimited");
	add("hcf", "capacity_bytes_high", "BYTES", 0, 0xffffffffu, BUFFER_BYTES / 2,
	    "Of the high queue; 0: unlimited");
	add("hcf", "capacity_bytes_low", "BYTES", 0, 0xffffffffu, BUFFER_BYTES / 2,
	    "Of the low queue; 0: unlimited");
	HCF_PARAMS(ADD, hcf)
	add("hcf", "every_ns", "TIME", 1, 0xffffffffu, US(100),
	    "Length of a fixed or ordered period");
	WINDOW_PARAMS(ADD, window)
	PORT_COUNTERS(COUNTER)
}

/* A field's name, unless that is a keyword of SystemVerilog. */
static const char *sv_name(const char *field)
{
	return strcmp(field, "bins") ? field : "bin_count";
}

static void print_struct(const char *scheme)
{
	printf("  typedef struct packed {\n");
	for (u32 i = 0; i < count; i++)
		if (!strcmp(rows[i].scheme, scheme) && !rows[i].is_counter)
			printf("    logic [31:0] %s;\n", sv_name(rows[i].field));
	printf("  } %s_params_t;\n\n", scheme);
}

static void print_reader(const char *scheme)
{
	printf("  function automatic %s_params_t %s_params(input logic [32*REGISTERS-1:0] all);\n",
	       scheme, scheme);
	for (u32 i = 0; i < count; i++)
		if (!strcmp(rows[i].scheme, scheme))
			printf("    %s_params.%s = all[32*%u+:32];\n", scheme,
			       sv_name(rows[i].field), i);
	printf("  endfunction\n\n");
}

static void print_table(const char *name, const char *type, u64 (*value)(const struct row *))
{
	printf("  function automatic logic %s register_%s(input int unsigned index);\n", type,
	       name);
	printf("    case (index)\n");
	for (u32 i = 0; i < count; i++)
		printf("      %u: register_%s = 32'd%llu;\n", i, name,
		       (unsigned long long)value(&rows[i]));
	printf("      default: register_%s = 32'd0;\n    endcase\n  endfunction\n\n", name);
}

#define NAME(name, NAME_, ...) #name,
static const char *const scheme_names[] = {"none", WINDOW_SCHEMES(NAME, 0) "hcf"};

/* Which schemes a parameter is of, a bit each; those of windows are of all window schemes. */
static u32 schemes_of(const struct row *row)
{
	u32 mask = 0;

	for (u32 i = 0; i <= SCHEMES; i++)
		if (!strcmp(row->scheme, scheme_names[i]))
			mask |= 1u << i;
	if (!strcmp(row->scheme, "window"))
		mask = (1u << SCHEMES) - 2;
	return mask;
}

static void print_built(void)
{
	printf("  // Whether one of the schemes (bit n: number n) has this register.\n");
	printf("  function automatic logic register_is_built(input int unsigned index, "
	       "input logic [%u:0] schemes);\n    case (index)\n",
	       SCHEMES);
	for (u32 i = 0; i < count; i++)
		if (schemes_of(&rows[i]))
			printf("      %u: register_is_built = (schemes & %u'd%u) != 0;\n", i,
			       SCHEMES + 1, schemes_of(&rows[i]));
	printf("      default: register_is_built = index < REGISTERS;\n    endcase\n"
	       "  endfunction\n");
}

static u64 min_of(const struct row *row)
{
	return row->min;
}

static u64 max_of(const struct row *row)
{
	return row->max;
}

static u64 reset_of(const struct row *row)
{
	return row->standard;
}

/* N(name, value): the constants that the hardware uses. */
/* clang-format off */
#define CONSTANTS(N) \
	N(MAX_MSS_BYTES) \
	N(TCP_FLAG_FIN) N(TCP_FLAG_SYN) N(TCP_FLAG_RST) N(TCP_FLAG_PSH) \
	N(TCP_FLAG_ACK) N(TCP_MAX_SCALE) N(TCP_SCALE_UNKNOWN) N(TCP_MAX_WINDOW) \
	N(TCP_ACK_LATER) N(TCP_ACK_SYN) \
	N(WSCALE_RESERVED_BITS) N(WSCALE_WINDOW_BITS) N(WSCALE_UNIFIED) \
	N(WSCALE_STRIPPED) \
	N(SCHEME_FAIRQ) N(SCHEME_HSCC) \
	N(FAIRQ_MAX_FLOWS) N(FAIRQ_SLOW_START_EACH) N(FAIRQ_SLOW_START_OFF) \
	N(FAIRQ_FLOWS_DIVIDE) \
	N(HSCC_MAX_STEPS) \
	N(HCF_GOLDEN_32) N(HCF_MAX_BINS) N(HCF_PERIOD_DYNAMIC) \
	N(HCF_PERIOD_FIXED) N(HCF_PERIOD_ORDERED) N(HCF_DROP_BOTH) N(HCF_NONE)
/* clang-format on */

#define WIDE_CONSTANTS(N)                                                                          \
	N(FAIRQ_MAX_WINDOW_Q8) N(FAIRQ_MAX_SENT) N(SEGMENT_PERIOD_NS) N(HCF_GOLDEN_64)

#define PRINT_CONSTANT(name) printf("  localparam logic [31:0] " #name " = 32'd%u;\n", (u32)name);
#define PRINT_WIDE_CONSTANT(name)                                                                  \
	printf("  localparam logic [63:0] " #name " = 64'd%llu;\n", (unsigned long long)name);
/* The reasons of the parser. */
#define REASONS(N)                                                                                 \
	N(PASS_NOT_IP)                                                                             \
	N(PASS_NOT_TCP) N(PASS_FRAGMENT) N(PASS_TRUNCATED) N(PASS_MALFORMED) N(PASS_TOO_DEEP)
#define PRINT_REASON(name) printf("  localparam logic [3:0] " #name " = 4'd%u;\n", name);

static void print_package(void)
{
	printf("// Printed by rtl/generate.c from the tables of core/.\npackage core_pkg;\n");
	CONSTANTS(PRINT_CONSTANT)
	printf("  localparam logic [31:0] SCHEME_HCF = 32'd%u;\n", SCHEMES);
	WIDE_CONSTANTS(PRINT_WIDE_CONSTANT)
	REASONS(PRINT_REASON)
	printf("  localparam logic [3:0] PASS_NONE = 4'd15;  // understood\n");
	printf("  localparam int unsigned DEFAULT_BUFFER_BYTES = %u;\n", BUFFER_BYTES);
	printf("  localparam int unsigned PORT_STRIDE = 'h%x;  // bytes\n", PORT_STRIDE);
	printf("  localparam int unsigned REGISTERS = %u;\n", count);
	for (u32 i = 0, first = 1; i < count; i++)
		if (rows[i].is_counter && first) {
			first = 0;
			printf("  localparam int unsigned COUNTERS = %u;  // the last of them\n",
			       count - i);
		}
	for (u32 i = 0; i < count; i++)
		printf("  localparam int unsigned REG_%s_%s = %u;\n", rows[i].scheme, rows[i].field,
		       i);
	printf("\n");
	print_struct("port");
	print_struct("fairq");
	print_struct("hscc");
	print_struct("hcf");
	print_struct("window");
	print_reader("port");
	print_reader("fairq");
	print_reader("hscc");
	print_reader("hcf");
	print_reader("window");
	print_table("min", "[31:0]", min_of);
	print_table("max", "[31:0]", max_of);
	print_table("reset", "[31:0]", reset_of);
	printf("  function automatic logic register_is_counter(input int unsigned index);\n");
	for (u32 i = 0; i < count; i++)
		if (rows[i].is_counter) {
			printf("    register_is_counter = index >= %u;\n  endfunction\n", i);
			break;
		}
	print_built();
	printf("endpackage\n");
}

/* The words of a struct as Verilator has them: the last member first. */
static void print_words(const char *scheme, const char *type)
{
	u32 word = 0;

	printf("template <class W> void set_%s(W &words, const struct %s &p) {\n", scheme, type);
	for (u32 i = count; i-- > 0;) {
		const char *field = rows[i].field;
		char end[8] = "";

		if (strcmp(rows[i].scheme, scheme))
			continue;
		if (!strcmp(field, "every_ns")) { /* the caller's, not in the struct */
			printf("    words[%u] = 0;\n", word++);
			continue;
		}
		if (!strncmp(field, "capacity", 8))
			strcpy(end, strstr(field, "_high") ? "[0]" : "[1]");
		printf("    words[%u] = (uint32_t)p.%.*s%s;\n", word++,
		       (int)(end[0] ? strrchr(field, '_') - field : (long)strlen(field)), field,
		       end);
	}
	printf("}\n");
}

static void print_cpp(void)
{
	printf("// Printed by rtl/generate.c from the tables of core/.\n#pragma once\n");
	print_words("fairq", "fairq_params");
	print_words("hscc", "hscc_params");
	print_words("hcf", "hcf_params");
	print_words("window", "window_params");
	printf("static const struct { const char *name; uint32_t min, max, reset, is_counter; } "
	       "registers[] = {\n");
	for (u32 i = 0; i < count; i++)
		printf("    {\"%s_%s\", %lluu, %lluu, %lluu, %u},\n", rows[i].scheme, rows[i].field,
		       (unsigned long long)rows[i].min, (unsigned long long)rows[i].max,
		       (unsigned long long)rows[i].standard, rows[i].is_counter);
	printf("};\n");
}

/*
 * What a register means: core/ writes of shares of the buffer, of which 1 is all of it, where the
 * register has bytes and 0 for no limit; and core/ names the values of which the register has numbers.
 */
static void print_meaning(const struct row *row)
{
	static const char no_limit[] = "; 1 for none";
	const char *meaning = row->meaning, *limit = strstr(meaning, no_limit);
	const char *separator = ": ";

	if (!strcmp(row->unit, "BUFFER_LIMIT")) {
		if (!limit) {
			fprintf(stderr, "%s_%s: core/ does not name its value for no limit as \"%s\"\n",
				row->scheme, row->field, no_limit);
			exit(1);
		}
		printf("%.*s; 0 for none%s", (int)(limit - meaning), meaning,
		       limit + strlen(no_limit));
	} else {
		printf("%s", meaning);
	}
	for (const struct word *word = row->words; word && word->name; word++)
		if (word->value >= row->min && word->value <= row->max) {
			printf("%s%llu %s", separator, (unsigned long long)word->value, word->name);
			separator = ", ";
		}
}

static void print_page(void)
{
	printf("# Registers of the switch\n\n<!-- Written by `make -C rtl page`. -->\n\n");
	printf("Each port has %u registers of 32 bits on AXI4-Lite, port n from byte %u n on. A "
	       "write outside of the range, of less\nthan 4 bytes, or to a counter is refused "
	       "(SLVERR) and changes nothing.\n\n"
	       "Reset values are those of a buffer of %u bytes, the default of `BUFFER_BYTES`. With "
	       "another buffer, write the\nregisters `buffer_bytes`, HSCC's alpha1, alpha2 and sigma, "
	       "and HCF's capacities before `port_scheme`.\n\n",
	       count, PORT_STRIDE, BUFFER_BYTES);
	printf("| offset | register | range | reset | meaning |\n|---|---|---|---|---|\n");
	for (u32 i = 0; i < count; i++) {
		const struct row *row = &rows[i];

		printf("| 0x%03x | `%s_%s` | ", 4 * i, row->scheme, row->field);
		if (row->is_counter)
			printf("counter | 0 | ");
		else
			printf("%llu .. %llu | %llu | ", (unsigned long long)row->min,
			       (unsigned long long)row->max, (unsigned long long)row->standard);
		print_meaning(row);
		printf(" |\n");
	}
	printf("\nNot in hardware:\n\n");
	for (u32 i = 0; i < sizeof(absent) / sizeof(*absent); i++)
		printf("- `%s_%s`: %s.\n", absent[i].scheme, absent[i].field, absent[i].reason);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	fill();
	if (!strcmp(what, "sv"))
		print_package();
	else if (!strcmp(what, "cpp"))
		print_cpp();
	else if (!strcmp(what, "page"))
		print_page();
	else
		return fprintf(stderr, "usage: generate sv|cpp|page\n"), 1;
	return 0;
}
