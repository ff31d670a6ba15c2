/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which version of Go built a program, from the build information, which strip does not remove. */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"

enum { GO_VERSION_TEXT_BYTES = 24 };

struct go_version {
	uint32_t minor; /* 1.21.3 → 21; GO_VERSION_UNKNOWN */
	char text[GO_VERSION_TEXT_BYTES]; /* "1.21.3", "1.22rc1"; "" = unknown */
	bool released; /* a release or release candidate; false for a development version */
};

/* Returns -ENOENT if this is not a Go program. */
int go_version_read(struct elf_image *image, struct go_version *ret_version);
