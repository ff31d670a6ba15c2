/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The index's sources, each reading one kind of section into a writer. All run in the sandbox, all
 * take hostile input: -EBADMSG costs the caller that source (or a part of it), nothing more.
 * -ENOMEM and -E2BIG end the build.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/writer.h"

/* A stretch of ELF addresses that another source already answers. */
struct source_range {
	uint64_t low, high;
};

/* .symtab, else .dynsym (both where both are there). Symbols inside SKIP are left out. */
int symbols_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w);

/* .plt, .plt.sec, .plt.got: each stub that jumps to `puts` is a function `puts@plt`. */
int plt_read(struct elf_image *image, struct index_writer *w);

/*
 * .debug_*: functions, inline trees, lines of DWARF 2 to 5. Units wholly written in Go are left out
 * when SKIP_GO (pclntab answers for them). *RET_BROKEN_UNITS counts units given up.
 */
int dwarf_read(struct elf_image *image, bool skip_go, struct index_writer *w, uint32_t *ret_units,
	uint32_t *ret_broken_units);

/* The same of a module whose DWARF is in other files. */
struct images;
int dwarf_read_images(const struct images *images, bool skip_go, struct index_writer *w,
	uint32_t *ret_units, uint32_t *ret_broken_units);

/* Offset of MEMBER in structure TYPE (`runtime.g`, `goid`), from DWARF; -ENOENT when not there. */
int dwarf_member_offset(
	struct elf_image *image, const char *type, const char *member, uint64_t *ret_offset);

/*
 * .gopclntab with its inline tree, Go 1.16 to 1.27 (section found or searched for). *RET_TEXT is
 * the stretch it answers for. -ENOENT: not a Go program. -EOPNOTSUPP: a pclntab of another
 * version; nothing was written.
 */
int gopclntab_read(struct elf_image *image, struct index_writer *w, struct source_range *ret_text);

/*
 * Go version and goroutine-id offsets; `version` 0 when not a Go program, GO_VERSION_UNKNOWN for
 * one whose version does not say which release it is.
 */
enum { GO_VERSION_UNKNOWN = UINT32_MAX };
int go_facts_read(struct elf_image *image, struct index_go *ret_go);
/* The text of .note.go.buildid, or an empty cursor. */
struct cursor go_build_id(struct elf_image *image);
