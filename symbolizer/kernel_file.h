/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The running kernel as a file that can be indexed. Its image is in no file that every machine has,
 * and debug files are found for files; so this makes a small ELF file with the kernel's build ID
 * and its text at the addresses where it is linked, but without contents. What an index says of it
 * comes from the debug file with that build ID: names, lines and inlined functions at link
 * addresses (symbolizer/kallsyms/link_address.h).
 */
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/index/index.h"

/*
 * Returns a sealed memfd with the file, whose text is [START, END), and its identity. -ENOENT if
 * the kernel has no build ID.
 */
int kernel_file_open(uint64_t start, uint64_t end, int *ret_fd, struct module_id *ret_id);
/*
 * Where distributions put the debug file of the running kernel, below a directory of debug files:
 * Debian's and Ubuntu's have no link by build ID. A static string.
 */
const char *kernel_file_debug_name(void);
/*
 * Looks up ADDRESS, a link address, in INDEX, the kernel's; NAME is what the kernel calls the
 * function there. Fills RET_FRAMES, INDEX_MAX_FRAMES of them, innermost first, and returns how many
 * they are; the outermost has NAME. It is the only one, without a line, if the debug file has
 * nothing there or another function, since the kernel is linked elsewhere. What compilers append to
 * a name
 * (`.isra.0`, `.cold`) makes no difference.
 */
size_t kernel_file_lines(const struct index *index, uint64_t address, const char *name,
	struct index_frame *ret_frames);
