/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the arguments and results of chosen functions are, by DWARF. A sandboxed child reads it
 * when it is asked for. It takes a second for a program of 60 MB, so nobody waits for it here, and
 * what was read is kept (kept_arguments.h).
 */
#include <stdbool.h>
#include <stddef.h>

#include "symbolizer/builds/arguments_answer.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/builds/kept_arguments.h"

/* A child that reads. */
struct arguments_reading;

/*
 * Starts to read the plans of the functions WANTED of the file ELF_FD, which is duplicated; what
 * SEARCH and WANTED point to is borrowed until the end. Returns -E2BIG for too many functions.
 */
int arguments_reading_begin(int elf_fd, const struct debug_search *search,
	const struct arguments_wanted *wanted, struct arguments_reading **ret_reading);
/*
 * Goes on, without waiting for the child; to be called some times a second. Returns true once it
 * has ended, which it is made to if its files do not answer for some seconds.
 */
bool arguments_reading_step(struct arguments_reading *reading);
/*
 * Once it has ended: sets RET_ITEMS, one for each of the entries, and all empty on failure; without
 * failure they are kept. Returns -ENOENT if the file has no debug information, -EOPNOTSUPP if part
 * of that is elsewhere and was not found, -E2BIG for a file beyond the child's limits, -EBADMSG if
 * it cannot be read, -EAGAIN if the child was interrupted.
 */
int arguments_reading_finish(
	struct arguments_reading *reading, struct function_arguments *ret_items);
/* Ends the child, if it still reads. */
void arguments_reading_destroy(struct arguments_reading *reading);
