/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the files of a language runtime's programs say beyond ELF, DWARF and call frame information:
 * a row of runtimes.def and a folder. Any function may be NULL. What is read is untrusted: -ENOMEM
 * and -E2BIG end the build; after other errors it goes on without this source, or part of it.
 */
#include <stdbool.h>

#include "symbolizer/indexer/cfi/unwind_source.h"
#include "symbolizer/indexer/source.h"
#include "symbolizer/indexer/toolchain.h"

struct runtime_source {
	/* Names and lines, before DWARF and symbols. -ENOENT if it is not this runtime's program.
	 */
	int (*read_names)(struct source_build *b);
	/* Opens the runtime's unwind tables, which close() frees. -ENOENT if there are none. */
	int (*open_unwind)(struct elf_image *image, struct unwind_source *ret_source);
	/* What BPF needs to read the runtime's state (writer_runtime()), and the like. */
	int (*read_facts)(struct source_build *b);
	/*
	 * Reads the prologue of the runtime's function at ENTRY: struct index_function.stack_check.
	 * Only called for functions that read_names() has named.
	 */
	uint32_t (*stack_check)(const struct elf_image *image, uint64_t entry);
	/* Returns false if IMAGE is not this runtime's program. */
	bool (*toolchain)(struct elf_image *image, char text[TOOLCHAIN_BYTES]);
};

#define RUNTIME(name) extern const struct runtime_source runtime_source_##name;
#include "symbolizer/indexer/runtimes.def"
#undef RUNTIME

/* The same for all rows; a program has one runtime at most. */
int runtime_sources_names(struct source_build *b);
int runtime_sources_open_unwind(struct elf_image *image, struct unwind_source *ret_source);
int runtime_sources_facts(struct source_build *b);
uint32_t runtime_sources_stack_check(const struct elf_image *image, uint64_t entry);
bool runtime_sources_toolchain(struct elf_image *image, char text[TOOLCHAIN_BYTES]);
