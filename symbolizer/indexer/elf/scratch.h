/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A file for big decompressed sections. Held as memory of the process they would be hundreds of MB
 * that the kernel cannot reclaim while the index is built; the pages of a file it can.
 */
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"

struct elf_scratch {
	int fd; /* borrowed; empty at first */
	uint64_t used, limit; /* bytes */
};

/* How a section is compressed: ELFCOMPRESS_* of the gABI. */
enum { COMPRESSED_ZLIB = 1, COMPRESSED_ZSTD = 2 };

/* Whether a section of SIZE bytes is worth it and fits. */
bool scratch_takes(const struct elf_scratch *scratch, uint64_t size);
/*
 * Decompresses IN, bytes of IMAGE, to exactly SIZE bytes and maps them; the caller unmaps *RET_MAP.
 * Returns -EBADMSG if IN does not hold that. After another error, as -ENOSPC, decompressing it in
 * memory may still work.
 */
int scratch_inflate(struct elf_scratch *scratch, const struct elf_image *image, struct cursor in,
	uint32_t method, uint64_t size, void **ret_map);
/* Makes the file empty again; nothing of it may be mapped. */
int scratch_clear(struct elf_scratch *scratch);
