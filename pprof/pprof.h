/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one profile.proto message (proto/profile.proto) and encodes it. Equal mappings, functions,
 * locations and strings are stored once, with ids 1..N in order of first use. Knows nothing about
 * processes or symbols. Bytes that are not UTF-8 become '?'. The options bound its memory.
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
	PPROF_MAX_LABELS = 64, /* per sample */
	PPROF_MAX_FRAMES = 1024, /* locations per sample */
	PPROF_MAX_LINES = 256, /* per location */
	PPROF_MAX_STRING = 64 << 10, /* bytes; longer strings are truncated */
};

struct pprof_options {
	struct pprof_type types[PPROF_MAX_TYPES];
	size_t type_count;
	const char *default_type; /* name of one of `types` */
	struct pprof_type period_type;
	int64_t period;
	int64_t time_ns; /* since 1970 */
	int64_t duration_ns;
	/* Regular expressions for readers: functions to hide, and exceptions to show anyway. */
	const char *drop_frames, *keep_frames; /* NULL = none */
	const char *doc_url; /* NULL = none */
	size_t limit_bytes; /* of memory, and of the encoded message; 0 = 256 MiB */
	bool no_inlines; /* inlined calls were not resolved: has_inline_frames is never set */
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
	int64_t line, column, start_line; /* 0 or out of range = unknown */
	bool nameless; /* `name` is a stand-in: pprof_is_nameless() */
	uint32_t file_string; /* of pprof_string(), which then stands for the file; 0 = none */
	uint32_t function; /* of pprof_function(), which then stands for the fields of the function;
			      0 = none */
};

/*
 * Tells whether a function in a profile has no name: NAME is where it starts, `libfoo.so+0x62f00`,
 * and SYSTEM_NAME is "".
 */
bool pprof_is_nameless(const char *name, const char *system_name);

/*
 * A label has either TEXT or a number with UNIT. A label with an empty text is ignored; of labels
 * with equal keys only the first is kept. google/pprof drops a number 0 without a unit.
 */
struct pprof_label {
	const char *key;
	const char *text; /* NULL: numeric */
	int64_t number;
	const char *unit;
	/* Of pprof_string(), which then stand for the key and for the text or unit; 0 = none. */
	uint32_t key_string, value_string;
};

/*
 * All functions return -E2BIG over a limit, -ENOMEM, or -ENOENT for an unknown id. A failed call
 * leaves the profile unchanged, except that strings, functions, stacks and sets of labels may have
 * been added.
 */
int pprof_create(const struct pprof_options *options, struct pprof **ret_pprof);
void pprof_destroy(struct pprof *p);
/* Adds a text and returns its number, for those who have it many times; 0 for "". */
int pprof_string(struct pprof *p, const char *text, uint32_t *ret_string);
/* Adds a mapping and returns its id. Equal mappings get the same id. */
int pprof_mapping(struct pprof *p, const struct pprof_mapping *mapping, uint64_t *ret_id);
/* Adds the function of LINE and returns its id, for those who have many lines of it. */
int pprof_function(struct pprof *p, const struct pprof_line *line, uint32_t *ret_id);
/*
 * Adds a location at ADDRESS in MAPPING (id; 0 = none). LINES are innermost first; LINE_COUNT 0: an
 * address without a name. A caller's address must be inside its call instruction (return address
 * - 1): profile.proto requires it, and symbolizers of profiles look addresses up unchanged.
 *
 * A has_* flag of a mapping is set only if it holds for every line of all of its locations, and
 * nameless lines count as none.
 * has_inline_frames is set if all have line numbers (a source that knows the line of an address
 * knows the inlined calls there) and options.no_inlines is false. A mapping without locations has
 * no flags. If only some locations have names, the others get a mapping of their own, without
 * flags: the part of MAPPING that they are in.
 */
int pprof_location(struct pprof *p, uint64_t mapping, uint64_t address,
	const struct pprof_line *lines, size_t line_count, uint64_t *ret_id);
/*
 * Adds a sample. LOCATIONS are leaf first; VALUES has one value per type. Samples with equal stacks
 * and labels are summed; sums saturate at INT64_MAX.
 */
int pprof_sample(struct pprof *p, const uint64_t *locations, size_t location_count,
	const int64_t *values, const struct pprof_label *labels, size_t label_count);
/* The same in parts, for many samples of one stack or with one set of labels; number 0 = none. */
int pprof_stack(struct pprof *p, const uint64_t *locations, size_t count, uint32_t *ret_stack);
int pprof_labels(
	struct pprof *p, const struct pprof_label *labels, size_t count, uint32_t *ret_labels);
int pprof_sample_of(struct pprof *p, uint32_t stack, uint32_t labels, const int64_t *values);
int pprof_comment(struct pprof *p, const char *text);
/* Adds a type, of which the samples that are there have 0. Returns its number among the types. */
int pprof_add_type(struct pprof *p, const struct pprof_type *type, size_t *ret_number);
/* Replaces these of the options, for callers who know them only at the end. */
void pprof_set_times(struct pprof *p, int64_t period, int64_t time_ns, int64_t duration_ns);
/*
 * Locations will be encoded in the order of files and addresses, and samples in that of their
 * stacks from the root on: the message is smaller when it is compressed, and messages of the same
 * programs have about the same order. -ENOMEM: the order stays that in which they were added.
 */
int pprof_sort(struct pprof *p);
size_t pprof_sample_count(const struct pprof *p);
/* Returns how many bytes of memory the builder holds. */
size_t pprof_bytes(const struct pprof *p);
/*
 * Appends the encoded message, compressed if GZIP. The same calls produce the same bytes. On
 * failure OUT is unchanged.
 */
int pprof_encode(struct pprof *p, bool gzip, struct buffer *out);
/* Appends PLAIN, an encoded message, compressed. Returns -E2BIG over OUT's limit, or -ENOMEM. */
int pprof_gzip(const struct buffer *plain, struct buffer *out);
