/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/bare_pointers.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"

enum {
	/* Most files have gaps of a few hundred bytes, of the compiler's own start-up code. */
	POINTERS_MIN_GAP = 16 << 10,
	POINTERS_MAX = 1 << 18,
	POINTERS_MAX_BYTES = 8 << 20, /* of data */
};

static int pointers_add(struct bare *b, uint64_t address)
{
	int err =
		array_reserve(b->pointers, b->pointer_capacity, b->pointer_count + 1, POINTERS_MAX);

	if (!err)
		b->pointers[b->pointer_count++] = address;
	return err;
}

struct bounds {
	uint64_t low, high;
};

/* From the first to the last code of the file. */
static struct bounds pointers_code(const struct elf_image *image)
{
	struct bounds code = { .low = UINT64_MAX };

	for (size_t i = 0; i < elf_image_section_count(image); i++) {
		const struct elf_section s = elf_image_section(image, i);

		if (!(s.flags & SHF_EXECINSTR))
			continue;
		code.low = MIN(code.low, s.address);
		code.high = MAX(code.high, s.address + s.size);
	}
	return code;
}

static int pointers_of_section(
	struct bare *b, const struct elf_section *s, const struct bounds *code, uint64_t *left)
{
	int err = 0;

	for (uint64_t at = 0; at + BARE_WORD <= s->size && *left && !err; at += BARE_WORD) {
		uint64_t word = 0;

		*left -= 1;
		if (work_spend(b->work, 1) && elf_image_word(b->image, s->address + at, &word) &&
			word && word >= code->low && word < code->high)
			err = pointers_add(b, word);
	}
	return err;
}

static int pointers_by_address(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int bare_read_pointers(struct bare *b)
{
	struct bounds code;
	uint64_t left = POINTERS_MAX_BYTES / BARE_WORD;
	int err = 0;

	if (b->has_pointers || b->high - b->low < POINTERS_MIN_GAP)
		return 0;
	b->has_pointers = true;
	code = pointers_code(b->image);
	for (size_t i = 0; i < elf_image_section_count(b->image) && !err; i++) {
		const struct elf_section s = elf_image_section(b->image, i);

		if (s.type == SHT_PROGBITS && s.flags & SHF_ALLOC && s.flags & SHF_WRITE &&
			!(s.flags & SHF_EXECINSTR) && !(s.address % BARE_WORD))
			err = pointers_of_section(b, &s, &code, &left);
	}
	if (b->pointer_count)
		qsort(b->pointers, b->pointer_count, sizeof(b->pointers[0]), pointers_by_address);
	/* More than that are not all looked at. */
	return err == -ENOMEM ? err : 0;
}

/* The first pointer that is not below ADDRESS. */
static size_t pointers_from(const struct bare *b, uint64_t address)
{
	size_t low = 0, high = b->pointer_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->pointers[middle] < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void bare_note_pointers(const struct bare *b)
{
	for (size_t i = pointers_from(b, b->low); i < b->pointer_count; i++) {
		uint32_t number;

		if (b->pointers[i] >= b->high)
			break;
		number = bare_number_at(b, b->pointers[i]);
		if (number < b->instruction_count && bare_is_beginning(b, number))
			b->blocks[b->instructions[number].block].is_stored = true;
	}
}
