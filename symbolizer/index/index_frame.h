/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One line of an address's inline chain. */
#include <stdint.h>

enum { INDEX_MAX_FRAMES = 256 }; /* of one address's inline chain */

struct index_frame {
	const char *name; /* demangled; never "" */
	const char *linkage; /* as in the symbol table; equals `name` if not mangled */
	const char *file; /* path, or "" when unknown */
	uint32_t line; /* 0 = unknown */
	uint32_t column; /* 0 = unknown */
	uint32_t start_line; /* of the function; 0 = unknown */
};
