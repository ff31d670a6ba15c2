/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The builder's state, written by pprof.c and read by pprof_encode.c. Mappings, functions,
 * locations and samples are interned as the bytes of these records. So records have no padding, and
 * the intern number is the id; number 0, the empty byte string, is the id for "none".
 */
#include "base/intern.h"
#include "pprof/pprof.h"

struct mapping_record {
	uint64_t start, limit, offset;
	uint32_t file, build_id; /* string ids */
};

struct function_record {
	uint32_t name, system_name, file; /* string ids */
	uint32_t start_line;
	uint32_t nameless; /* 0 or 1 */
};

struct line_record {
	uint32_t function;
	uint32_t line, column; /* 0 = unknown */
};

struct location_record {
	uint64_t address;
	uint32_t mapping;
	uint32_t line_count;
	struct line_record lines[PPROF_MAX_LINES]; /* only line_count of them are stored */
};

struct label_record {
	int64_t number;
	uint32_t key, text, unit; /* string ids; text 0: numeric */
	uint32_t reserved; /* 0 */
};

/* A stack is its location ids, as uint32_t; a set of labels is label records, sorted by key. */
struct sample_record {
	uint32_t stack, labels; /* numbers among those; 0 = none */
};

/* About a mapping's locations. */
struct mapping_facts {
	bool named, unnamed; /* some have names, some have none; both false: no locations */
	bool lacks_file, lacks_line; /* some named ones have a line without it */
	uint32_t unnamed_id; /* mapping id of the unnamed ones, set while encoding; 0 = the same */
	uint64_t first_unnamed, last_unnamed; /* lowest and highest address */
};

struct type_strings {
	uint32_t type, unit;
};

/* How it is encoded; all NULL = in the order of the ids. */
struct pprof_order {
	uint32_t *samples, *locations, *functions; /* ids, from the first to the last */
	uint32_t *location_ids, *function_ids; /* in the message, by id */
};

enum { PPROF_MAX_COMMENTS = 1 << 16 };

struct pprof {
	struct type_strings types[PPROF_MAX_TYPES], period_type;
	size_t type_count;
	uint32_t default_type, drop_frames, keep_frames, doc_url; /* string ids */
	int64_t period, time_ns, duration_ns;
	bool no_inlines;
	struct pprof_order order;
	size_t limit_bytes;
	struct intern strings, mappings, functions, locations, stacks, label_sets, samples;
	struct mapping_facts *facts; /* by mapping id */
	size_t facts_capacity;
	int64_t *values; /* type_count per sample, starting with sample 1 */
	size_t values_capacity;
	struct label_record last_labels[PPROF_MAX_LABELS]; /* of the last sample, in its order */
	uint32_t *comments; /* string ids */
	size_t comment_count, comment_capacity;
};

void pprof_order_deinit(struct pprof_order *order);
/* The location ids of a sample, leaf first. */
const uint32_t *pprof_stack_of(const struct pprof *p, uint32_t sample, uint32_t *ret_depth);
/* Whether the location has lines and all of their functions have a name. */
bool pprof_is_named(const struct pprof *p, const struct location_record *location);
