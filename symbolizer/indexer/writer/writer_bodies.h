/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The functions that the sources have named, by entry: what there is to decode. A function's code
 * comes from debug information or a runtime's table if they know it (a function may have several
 * parts), else it is that of its largest symbol. To be made after the last source.
 *
 * What a debug file says is not trusted: whoever can forge one would choose where probes corrupt a
 * program. If the module's own file has no symbol and no runtime's table for an entry, its call
 * frame information has to describe each part of the function, and decides where the part ends.
 *
 * A typeless symbol (a label in assembly, which may mark data) only adds a name to a function. A
 * part that the compiler moved away (`f.cold`) is no function; code/ gives it to the function that
 * jumps there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/writer/writer.h"

struct writer_part {
	uint64_t low, high; /* [low, high), ELF addresses */
};

struct writer_body_name {
	uint32_t linkage, name; /* strings, as in struct writer_node */
	bool is_resolver;
};

struct writer_body {
	uint64_t entry; /* low of the first part */
	const struct writer_part *parts;
	size_t part_count; /* at least 1 */
	bool is_confirmed; /* by the module's own file */
	bool has_end; /* else it ends where its code does, at the high of its only part at most */
	const struct writer_body_name *names;
	size_t name_count; /* at least 1 */
};

struct writer_bodies;

/*
 * DESCRIBED are the ranges that the module's own call frame information describes, in any order;
 * needed only if there are debug files. Takes a copy. Returns -ENOMEM or -E2BIG. W must outlive the
 * result and not change.
 */
int writer_bodies_create(struct index_writer *w, const struct writer_part *described, size_t count,
	struct writer_bodies **ret_bodies);
void writer_bodies_destroy(struct writer_bodies *bodies);
/* Passes each function to SINK, in order of the entries; stops at its first error. */
typedef int writer_body_sink(void *context, const struct writer_body *body);
int writer_bodies_each(struct writer_bodies *bodies, writer_body_sink *sink, void *context);
/* Finds the moved part that has ADDRESS. */
bool writer_bodies_cold(
	const struct writer_bodies *bodies, uint64_t address, struct writer_part *ret_part);
