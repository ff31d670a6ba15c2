/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one profile.proto message (proto/profile.proto) and encodes it. Equal mappings, functions,
 * locations and strings become one each, with ids 1..N in order of first use. Knows nothing of
 * processes or symbols. Strings that are not UTF-8 are cleaned ('?'). Bounded by the options.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

struct pprof;

struct pprof_type {
	const char *type; /* "cpu" */
	const char *unit; /* "nanoseconds" */
};

enum {
	PPROF_MAX_TYPES = 16,
	PPROF_MAX_LABELS = 64, /* of a sample */
	PPROF_MAX_FRAMES = 1024, /* locations of a sample */
	PPROF_MAX_LINES = 256, /* of a location */
	PPROF_MAX_STRING = 64 << 10, /* bytes; what is longer is cut */
};

struct pprof_options {
	struct pprof_type types[PPROF_MAX_TYPES];
	size_t type_count;
	const char *default_type; /* type name */
	struct pprof_type period_type;
	int64_t period;
	int64_t time_ns; /* since 1970 */
	int64_t duration_ns;
	/* Regular expressions for readers: functions to leave out, and those to show nevertheless.
	 */
	const char *drop_frames, *keep_frames; /* NULL = none */
	const char *doc_url; /* NULL = none */
	size_t limit_bytes; /* of memory, and of the encoded message; 0 = 256 MiB */
	bool no_inlines; /* inlined calls were not looked for: has_inline_frames is never true */
};

struct pprof_mapping {
	uint64_t start, limit, offset;
	const char *file;
	const char *build_id; /* hex, "" = none */
};

struct pprof_line {
	const char *name; /* demangled */
	const char *system_name; /* linkage */
	const char *file; /* "" = unknown */
	int64_t line, column, start_line; /* 0 (or what is no line number) = unknown */
};

/*
 * A label has either TEXT or a number with UNIT. An empty text is no label at all; of labels with
 * one key the first is kept. google/pprof drops a number 0 that has no unit.
 */
struct pprof_label {
	const char *key;
	const char *text; /* NULL: numeric */
	int64_t number;
	const char *unit;
};

/*
 * Errors of all functions: -E2BIG over a limit, -ENOMEM, -ENOENT for an id or a type that was never
 * given out. A call that fails leaves the profile as it was, but for
 * strings and functions.
 */
int pprof_create(const struct pprof_options *options, struct pprof **ret_pprof);
void pprof_destroy(struct pprof *p);
/* The id of this mapping; the same content gives the same id. */
int pprof_mapping(struct pprof *p, const struct pprof_mapping *mapping, uint64_t *ret_id);
/*
 * The id of the location at ADDRESS of MAPPING (0 = none). LINES innermost first; LINE_COUNT 0: an
 * address without a name. The address of a caller is inside its call instruction (the return
 * address less one): profile.proto wants it so, and what symbolizes a profile looks it up as it is.
 *
 * The has_* flags of a mapping are true only when they hold for every line of every one of its
 * locations; has_inline_frames where all have line numbers (what knows the line of an address knows
 * the inlined calls there) and options.no_inlines was not given. A mapping without locations has
 * none of them. Where some locations have a name and others have not, these are given a mapping of
 * their own: the part of MAPPING that they lie in, with no flag.
 */
int pprof_location(struct pprof *p, uint64_t mapping, uint64_t address,
	const struct pprof_line *lines, size_t line_count, uint64_t *ret_id);
/*
 * LOCATIONS leaf first; one value per type. Equal stacks with equal labels are summed, at most to
 * INT64_MAX.
 */
int pprof_sample(struct pprof *p, const uint64_t *locations, size_t location_count,
	const int64_t *values, const struct pprof_label *labels, size_t label_count);
int pprof_comment(struct pprof *p, const char *text);
size_t pprof_sample_count(const struct pprof *p);
/* Bytes of memory the builder holds. */
size_t pprof_bytes(const struct pprof *p);
/* Appends the encoded message, gzip-compressed with GZIP. The same calls give the same bytes. */
int pprof_encode(struct pprof *p, bool gzip, struct buffer *out);
/* Appends the bytes of PLAIN, an encoded message, as gzip. -E2BIG over OUT's limit. */
int pprof_gzip(const struct buffer *plain, struct buffer *out);
