/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads functions from ELF symbol tables into a writer. The input is hostile: -EBADMSG costs only
 * these names; -ENOMEM and -E2BIG end the build.
 */
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/* Reads .symtab and .dynsym, without symbols inside SKIP. */
int symbols_read(struct elf_image *image, const struct source_range *skip, struct index_writer *w);
