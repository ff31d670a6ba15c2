/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Files that may hold what a module's own file lacks. Whoever starts a build finds and opens them
 * (symbolizer/builds/debug_files.h); whether one belongs to the module, the builder sees for
 * itself.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum companion_role {
	COMPANION_DEBUG, /* separate debug file: counts with the module's build ID */
	COMPANION_LINKED, /* named by .gnu_debuglink: counts with the CRC-32 given there, too */
	COMPANION_SUPPLEMENTARY, /* named by .gnu_debugaltlink: counts with the build ID given there
				  */
	COMPANION_SPLIT, /* split DWARF: of one unit (.dwo) or of many (.dwp) */
	COMPANION_ROLES
};

struct companion {
	int fd;
	enum companion_role role;
	uint32_t crc; /* of COMPANION_LINKED */
	bool is_ours; /* found below our own root, not below that of who maps the module */
};

/* Most are .dwo files; a program of more units than this is shipped with a package of them. */
enum {
	COMPANIONS_MAX_SPLIT = 128,
	COMPANIONS_MAX = COMPANIONS_MAX_SPLIT + 16,
};

struct companions {
	struct companion items[COMPANIONS_MAX];
	size_t count;
};

/* Closes them all. */
void companions_close(struct companions *c);
