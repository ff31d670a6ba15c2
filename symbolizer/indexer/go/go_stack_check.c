/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/go/go_stack_check.h"

#include <elf.h>

#include "symbolizer/index/functions.h"

uint32_t go_stack_check(const struct elf_image *image, uint64_t entry)
{
	struct cursor prologue = elf_image_from(image, entry);

	if (prologue.bad)
		return INDEX_NO_STACK_CHECK;
	if (elf_image_machine(image) == EM_AARCH64)
		return go_stack_check_arm64(prologue);
	return go_stack_check_amd64(prologue);
}
