/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the arguments and results of chosen functions are, by DWARF. A sandboxed child reads it
 * when it is asked for; an index of all functions would be several times as large for it.
 */
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/arguments/argument_plan.h"
#include "symbolizer/builds/debug_search.h"

struct function_arguments {
	struct argument_plan *entry, *results; /* owned; NULL = nothing is known */
};

/*
 * Reads the plans of COUNT functions of the file ELF_FD, by their ENTRIES (ELF addresses, ascending
 * and each once), into RET_ITEMS, of which it sets all. Waits for the child, which is ended if its
 * files do not answer for some seconds. Returns -ENOENT if the file has no debug information,
 * -EOPNOTSUPP if part of that is elsewhere and was not found, -E2BIG for too many functions or a
 * file beyond the child's limits, -EBADMSG if it cannot be read, -EAGAIN if the child was
 * interrupted.
 */
int function_arguments_read(int elf_fd, const struct debug_search *search, const uint64_t *entries,
	size_t count, struct function_arguments *ret_items);
void function_arguments_deinit(struct function_arguments *arguments);
