/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Unwind rules of code without call frame information, such as assembly whose author wrote none,
 * from what its instructions do to the stack pointer. bare.c says when they are believed.
 */
#include "symbolizer/indexer/cfi/unwind_source.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/work.h"

/*
 * Makes the source of IMAGE's rules, which spends WORK (NULL = not bounded); both are borrowed.
 * -EOPNOTSUPP if there is no decoder for it.
 */
int bare_open(struct elf_image *image, struct work *work, struct unwind_gap_source *ret_source);
