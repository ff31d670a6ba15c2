/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files that one module's index is built from: its own, and the companions that turned out to
 * belong to it. Runs in the sandbox.
 */
#include "symbolizer/sandbox/companions.h"
#include "symbolizer/indexer/elf/elf_image.h"

struct images {
	struct elf_image *own; /* code, unwind tables, .dynsym, pclntab */
	struct elf_image *debug; /* separate debug file: DWARF, .symtab; NULL = none */
	int debug_fd; /* of that */
	struct elf_image *alternate; /* what its DWARF shares with other programs; NULL = nothing */
	bool names_alternate; /* its DWARF says that there is such a file */
	struct elf_image *splits[COMPANIONS_MAX]; /* files with units of split DWARF */
	size_t split_count;
	struct elf_image *small; /* .gnu_debugdata of `own`: .symtab; NULL = none, or not needed */
	void *small_bytes; /* what that is in */
};

/* Errors are those of the module's own file; a companion that is not right is left out. */
int images_open(int elf_fd, const struct companions *companions, struct images *ret_images);
void images_deinit(struct images *images);
/* The one with the DWARF: `debug` where `own` has none. */
struct elf_image *images_dwarf(const struct images *images);
