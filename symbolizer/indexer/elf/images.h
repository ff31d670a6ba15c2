/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files from which one module's index is built: its own, and the debug files that are verified
 * to belong to it. Runs in the sandbox.
 */
#include "symbolizer/sandbox/debug_files.h"
#include "symbolizer/indexer/elf/elf_image.h"

struct images {
	struct elf_image *own; /* code, unwind tables, .dynsym, pclntab */
	struct elf_image *debug; /* separate debug file: DWARF, .symtab; NULL = none */
	int debug_fd; /* of `debug` */
	struct elf_image *alternate; /* dwz file that its DWARF refers to; NULL = none */
	bool names_alternate; /* its DWARF names an alternate */
	struct elf_image *splits[DEBUG_FILES_MAX]; /* files with units of split DWARF */
	size_t split_count;
	struct elf_image *small; /* minidebuginfo of `own`: .symtab; NULL = none or not needed */
	void *small_bytes; /* decompressed bytes of `small` */
};

/*
 * Returns -ENOMEM or an error of the module's own file; debug files that do not match are skipped.
 */
int images_open(int elf_fd, const struct debug_files *debug_files, struct images *ret_images);
void images_deinit(struct images *images);
/* As elf_image_use_scratch(), all of them. */
void images_use_scratch(const struct images *images, struct elf_scratch *scratch);
/* Size of the files, and of what was decompressed of them. */
uint64_t images_bytes(const struct images *images);
/* Returns the image whose DWARF is used: `debug` if it has any, else `own`. */
struct elf_image *images_dwarf(const struct images *images);
