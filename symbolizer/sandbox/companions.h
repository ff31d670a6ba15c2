/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that may hold what a module's own file lacks. Whoever starts a build finds and opens them
 * (symbolizer/builds/debug_files.h); the builder verifies that they belong to the module.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum companion_role {
	COMPANION_DEBUG, /* separate debug file: its build ID must be the module's */
	COMPANION_LINKED, /* named by .gnu_debuglink: the CRC-32 there must match, too */
	COMPANION_SUPPLEMENTARY, /* named by .gnu_debugaltlink: that build ID must match */
	COMPANION_SPLIT, /* split DWARF: one unit (.dwo) or many (.dwp) */
	COMPANION_ROLES
};

struct companion {
	int fd;
	enum companion_role role;
	uint32_t crc; /* of COMPANION_LINKED */
	bool is_ours; /* found below our own root, not the mapping process's */
};

/* Most are .dwo files; programs with more units than this ship a .dwp package. */
enum {
	COMPANIONS_MAX_SPLIT = 128,
	COMPANIONS_MAX = COMPANIONS_MAX_SPLIT + 16,
};

struct companions {
	struct companion items[COMPANIONS_MAX];
	size_t count;
};

void companions_close(struct companions *c);
