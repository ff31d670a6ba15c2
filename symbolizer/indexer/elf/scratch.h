/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A file for big decompressed sections. In memory of the process they would be memory that the
 * machine cannot have back while the index is made, hundreds of MB for a big program; the pages of
 * a file it can.
 */
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"

struct elf_scratch {
	int fd; /* borrowed; empty at first */
	uint64_t used, limit; /* bytes */
};

enum scratch_method { SCRATCH_ZLIB, SCRATCH_ZSTD };

/* Whether a section of SIZE bytes is worth it and fits. */
bool scratch_takes(const struct elf_scratch *scratch, uint64_t size);
/*
 * Decompresses IN, bytes of IMAGE, to exactly SIZE bytes and maps them: *RET_MAP is to be unmapped.
 * -EBADMSG if they are not what IN holds; otherwise, as with -ENOSPC, memory may still do.
 */
int scratch_inflate(struct elf_scratch *scratch, const struct elf_image *image, struct cursor in,
	enum scratch_method method, uint64_t size, void **ret_map);
/* Makes the file empty again; nothing of it may be mapped. */
int scratch_clear(struct elf_scratch *scratch);
