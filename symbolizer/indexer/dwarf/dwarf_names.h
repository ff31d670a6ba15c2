/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The name of a function and the line of its declaration. An entry with code often has neither: it
 * refers to its abstract instance or its declaration, maybe in another unit, which may refer
 * further. Results for referenced entries are cached.
 */
#include "symbolizer/indexer/dwarf/dwarf_die.h"
#include "symbolizer/indexer/dwarf/dwarf_scope.h"

/* Strings of the writer; 0 = unknown. */
struct dwarf_function {
	uint32_t linkage; /* the linkage name, else the plain name */
	uint32_t name; /* qualified with namespaces and classes, if `linkage` is a plain name */
	uint32_t start_line;
};

struct dwarf_names {
	struct dwarf *d;
	struct dwarf_names *alternate; /* of the supplementary file; NULL = none */
	struct index_writer *w;
	struct dwarf_scopes scopes;
	struct map known; /* cache: offset of an entry → index into `functions` */
	struct dwarf_function *functions;
	size_t count, capacity;
};

void dwarf_names_init(struct dwarf_names *n, struct dwarf *d, struct index_writer *w);
void dwarf_names_deinit(struct dwarf_names *n);
/*
 * Resolves the function of entry DIE at OFFSET in U. Broken references leave fields unknown; only
 * -ENOMEM and -E2BIG are errors.
 */
int dwarf_names_get(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset,
	const struct dwarf_die *die, struct dwarf_function *ret_function);
