/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that may hold what a module's own file lacks. Whoever starts a build finds and opens them
 * (symbolizer/builds/debug_search.h); the builder verifies that they belong to the module.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum debug_file_role {
	DEBUG_FILE_SEPARATE, /* separate debug file: its build ID must be the module's */
	DEBUG_FILE_LINKED, /* named by .gnu_debuglink: the CRC-32 there must match, too */
	DEBUG_FILE_SUPPLEMENTARY, /* named by .gnu_debugaltlink: that build ID must match */
	DEBUG_FILE_SPLIT, /* split DWARF: one unit (.dwo) or many (.dwp) */
	DEBUG_FILE_ROLES
};

struct debug_file {
	int fd;
	enum debug_file_role role;
	uint32_t crc; /* of DEBUG_FILE_LINKED */
	bool is_ours; /* found below our own root, not the mapping process's */
	uint64_t bytes; /* its size, for the limits of the builder */
};

/* Most are .dwo files; programs with more units than this ship a .dwp package. */
enum {
	DEBUG_FILES_MAX_SPLIT = 128,
	DEBUG_FILES_MAX = DEBUG_FILES_MAX_SPLIT + 16,
};

struct debug_files {
	struct debug_file items[DEBUG_FILES_MAX];
	size_t count;
};

void debug_files_close(struct debug_files *c);
