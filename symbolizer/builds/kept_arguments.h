/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Plans of functions that were read before, as files of the index cache, beside the index of their
 * module. A file is for one question: the module and all functions that were asked for. The plans
 * of all functions of a program would take about as much as the program, several times as much as
 * its index.
 *
 *	header | entries (u64) | answers (symbolizer/sandbox/arguments_wire.h) | XXH3 of all before
 *
 * A file comes from a sandboxed process that parsed a foreign file: each plan is checked when it is
 * taken from it. Like an index it answers for one inode.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/builds/arguments_answer.h"

struct cache;

/* All are borrowed. */
struct arguments_wanted {
	struct cache *cache; /* NULL = plans are not kept */
	const struct module_id *id; /* likewise */
	const uint64_t *entries; /* of functions: ELF addresses, ascending and each once */
	size_t count;
};

static const uint64_t KEPT_ARGUMENTS_MAGIC = UINT64_C(0x534752414d485446); /* "FTHMARGS" */

struct kept_arguments_header {
	uint64_t magic;
	uint32_t version; /* ARGUMENTS_VERSION */
	uint32_t count; /* of entries */
	uint64_t file_bytes; /* checksum included */
	struct build_id build_id;
	uint8_t padding[3];
	struct file_hash content;
	struct file_id file;
};
_Static_assert(sizeof(struct kept_arguments_header) == 24 + 24 + 16 + 64, "no padding");

/* Whether plans of such a file are kept: it must have been read and its numbers must be true. */
bool kept_arguments_is_wanted(const struct arguments_wanted *wanted);
/*
 * Sets RET_ITEMS, one for each entry; all empty on failure. Returns -ENOENT if they were not kept,
 * -EBADMSG if what was kept is damaged and has been removed.
 */
int kept_arguments_read(
	const struct arguments_wanted *wanted, struct function_arguments *ret_items);
/* Keeps what a child has answered: the SIZE bytes at ANSWERS, which were found to be sound. */
int kept_arguments_write(const struct arguments_wanted *wanted, const void *answers, size_t size);
/* The part of kept_arguments_read() that looks into a file, the SIZE bytes at BYTES. */
int kept_arguments_take(const struct arguments_wanted *wanted, const void *bytes, size_t size,
	struct function_arguments *ret_items);
