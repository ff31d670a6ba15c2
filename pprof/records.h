/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The builder's memory, between pprof.c (fills it) and pprof_encode.c (reads it). Mappings,
 * functions, locations and samples are interned as the bytes of these records, so a record has no
 * padding and its number is its id: number 0, the empty byte string, is the id that means "none".
 */
#include "base/intern.h"
#include "pprof/pprof.h"

struct mapping_record {
	uint64_t start, limit, offset;
	uint32_t file, build_id; /* strings */
};

struct function_record {
	uint32_t name, system_name, file; /* strings */
	uint32_t start_line;
};

struct line_record {
	uint32_t function;
	uint32_t line, column; /* 0 = unknown */
};

struct location_record {
	uint64_t address;
	uint32_t mapping;
	uint32_t line_count;
	struct line_record lines[PPROF_MAX_LINES]; /* as many as line_count are kept */
};

struct label_record {
	int64_t number;
	uint32_t key, text, unit; /* strings; text 0: numeric */
	uint32_t reserved; /* 0 */
};

/* Followed in memory by the labels, sorted by key, then the location ids. */
struct sample_record {
	uint32_t label_count, location_count;
};

enum {
	SAMPLE_RECORD_MAX_BYTES = sizeof(struct sample_record) +
				  PPROF_MAX_LABELS * sizeof(struct label_record) +
				  PPROF_MAX_FRAMES * sizeof(uint32_t),
};

/* Of a mapping's locations. */
struct mapping_facts {
	bool named, unnamed; /* some are; neither: there are none */
	bool lacks_file, lacks_line; /* some of those with a name */
	uint32_t unnamed_id; /* of the mapping for those without, while being encoded; 0 = none */
	uint64_t first_unnamed, last_unnamed; /* addresses */
};

struct type_strings {
	uint32_t type, unit;
};

enum { PPROF_MAX_COMMENTS = 1 << 16 };

struct pprof {
	struct type_strings types[PPROF_MAX_TYPES], period_type;
	size_t type_count;
	uint32_t default_type, drop_frames, keep_frames, doc_url; /* strings */
	int64_t period, time_ns, duration_ns;
	bool no_inlines;
	size_t limit_bytes;
	struct intern strings, mappings, functions, locations, samples;
	struct mapping_facts *facts; /* by mapping id */
	size_t facts_capacity;
	int64_t *values; /* type_count for each sample, from id 1 */
	size_t values_capacity;
	struct label_record last_labels[PPROF_MAX_LABELS]; /* of the last sample, as given */
	uint32_t *comments; /* strings */
	size_t comment_count, comment_capacity;
};

/* Whether each of its lines has a function's name, and there is one. */
bool pprof_is_named(const struct pprof *p, const struct location_record *location);
