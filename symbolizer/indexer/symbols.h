/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Functions from ELF symbol tables, read into a writer. The input is hostile: -EBADMSG costs the
 * caller these names, nothing more. -ENOMEM and -E2BIG end the build.
 */
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/* .symtab, else .dynsym (both where both are there). Symbols inside SKIP are left out. */
int symbols_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w);
