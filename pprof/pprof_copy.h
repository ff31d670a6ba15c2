/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies stacks and labels of a profile that was read (pprof_read.h) into one that is built
 * (pprof.h), where equal ones of many profiles become one. Whose samples are copied, and with which
 * values, is the caller's choice.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pprof/pprof.h"
#include "pprof/pprof_read.h"

struct pprof_copy {
	struct pprof *to;
	const struct pprof_read *from;
	uint64_t *ids; /* in TO, by index of the location; 0 = not added yet */
	uint32_t *functions; /* in TO, by index; 0 = not added yet */
	uint32_t *strings; /* likewise, those of labels and of files of functions */
	uint64_t *mappings; /* likewise, of those whose content is all copied */
	size_t *whole; /* by index of a mapping: that of the mapping which it is a part of */
	/*
	 * For named frames only the file of the mapping counts, and they have no address: builds of
	 * a program differ in addresses.
	 */
	bool source_only;
	/* May change LINE before it is added; NULL = nothing is changed. */
	void (*line)(void *context, struct pprof_line *line);
	void *context;
};

/* Both profiles are borrowed. The last three fields may be set afterwards. */
int pprof_copy_init(struct pprof_copy *c, struct pprof *to, const struct pprof_read *from);
void pprof_copy_deinit(struct pprof_copy *c);
/*
 * Adds all functions and all locations in their order, for who wants most of them: equal tables
 * need little search.
 */
int pprof_copy_all(struct pprof_copy *c);
/* Adds the COUNT locations at these INDEXES of FROM's table, up to PPROF_MAX_FRAMES. */
int pprof_copy_locations(struct pprof_copy *c, const uint32_t *indexes, size_t count,
	uint64_t ret_stack[PPROF_MAX_FRAMES]);
/*
 * Adds the locations of SAMPLE from its location number FIRST outwards. The ids are innermost
 * first; what is beyond PPROF_MAX_FRAMES is cut off.
 */
int pprof_copy_stack(struct pprof_copy *c, const Perftools__Profiles__Sample *sample, size_t first,
	uint64_t ret_stack[PPROF_MAX_FRAMES], size_t *ret_depth);
/* Texts are FROM's, and their numbers in TO. */
int pprof_copy_label(struct pprof_copy *c, const struct pprof_sample_label *label,
	struct pprof_label *ret_label);

/*
 * The time that several profiles cover: files of one window, one for each group of processes, cover
 * its time once.
 */
struct pprof_span {
	struct map windows; /* begin → duration in ns */
	int64_t begin_ns, end_ns; /* since 1970: begin of the first window, end of the last */
	int64_t covered_ns; /* by windows; parts that overlap count twice */
};

void pprof_span_init(struct pprof_span *span);
void pprof_span_deinit(struct pprof_span *span);
/* Returns -E2BIG for more windows than anybody has. */
int pprof_span_add(struct pprof_span *span, const Perftools__Profiles__Profile *profile);
