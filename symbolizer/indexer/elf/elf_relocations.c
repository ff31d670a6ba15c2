/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words as the dynamic linker leaves them: in position-independent files a pointer's slot often
 * holds 0, and its value is the addend of a RELATIVE relocation. (RELR relocations keep the value
 * in the slot and need nothing here.)
 */
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbolizer/indexer/elf/elf_image_state.h"

enum {
	MAX_RELOCATIONS = 1 << 23,
	MAX_DYNAMIC_ENTRIES = 4096,
	RELA_BYTES = 24,
};

static struct cursor find_rela(const struct elf_image *image)
{
	struct cursor dynamic = { .bad = true };
	uint64_t address = 0, size = 0;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_DYNAMIC)
			dynamic = elf_image_file(image, s->file_off, s->file_size);
	}
	for (int i = 0; i < MAX_DYNAMIC_ENTRIES && !dynamic.bad; i++) {
		uint64_t tag = cursor_u64(&dynamic);
		uint64_t value = cursor_u64(&dynamic);

		if (tag == DT_NULL)
			break;
		if (tag == DT_RELA)
			address = value;
		if (tag == DT_RELASZ)
			size = value;
	}
	return elf_image_at(image, address, size);
}

static int elf_relocations_by_address(const void *a, const void *b)
{
	const struct relative_relocation *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static void read_relocations(struct elf_image *image)
{
	struct cursor rela = find_rela(image);
	uint64_t relative = image->machine == EM_AARCH64 ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE;
	bool sorted = true;

	while (cursor_left(&rela) >= RELA_BYTES) {
		uint64_t address = cursor_u64(&rela);
		uint64_t info = cursor_u64(&rela);
		uint64_t addend = cursor_u64(&rela);
		size_t n = image->relocation_count;

		if (ELF64_R_TYPE(info) != relative)
			continue;
		if (array_reserve(
			    image->relocations, image->relocation_capacity, n + 1, MAX_RELOCATIONS))
			break;
		if (n && image->relocations[n - 1].address > address)
			sorted = false;
		image->relocations[n] = (struct relative_relocation){ address, addend };
		image->relocation_count++;
	}
	if (!sorted)
		qsort(image->relocations, image->relocation_count, sizeof(*image->relocations),
			elf_relocations_by_address);
}

bool elf_image_word(struct elf_image *image, uint64_t address, uint64_t *ret_word)
{
	const struct relative_relocation key = { .address = address }, *found = NULL;
	struct cursor word;

	if (!image->relocations_read) {
		read_relocations(image);
		image->relocations_read = true;
	}
	if (image->relocation_count)
		found = bsearch(&key, image->relocations, image->relocation_count, sizeof(key),
			elf_relocations_by_address);
	if (found) {
		*ret_word = found->value;
		return true;
	}
	word = elf_image_at(image, address, sizeof(*ret_word));
	if (word.bad)
		return false;
	*ret_word = cursor_u64(&word);
	return true;
}
