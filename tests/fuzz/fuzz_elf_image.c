/* SPDX-License-Identifier: Apache-2.0 */
/* Arbitrary bytes as an ELF file, all of which is read, symbols included. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static unsigned int read_all(struct cursor c)
{
	unsigned int sum = 0;

	while (cursor_left(&c))
		sum += cursor_u8(&c);
	return sum;
}

static void walk(struct elf_image *image)
{
	volatile unsigned int sum = 0;
	struct build_id id;
	uint64_t word;

	for (size_t i = 0; i < elf_image_section_count(image) && i < 64; i++)
		sum += read_all(elf_image_section_bytes(image, i));
	for (size_t i = 0; i < elf_image_segment_count(image) && i < 64; i++) {
		uint64_t address = elf_image_segment(image, i).address;

		sum += read_all(elf_image_from(image, address));
		elf_image_word(image, address, &word);
	}
	elf_image_bytes(image, ".debug_info");
	elf_image_build_id(image, &id);
}

static void read_symbols(struct elf_image *image)
{
	struct index_writer *w = index_writer_create();

	if (!w)
		return;
	writer_code(w, 0, UINT32_MAX);
	symbols_read(image, NULL, w);
	index_writer_destroy(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_image *image = NULL;

	if (fd < 0 || io_write_all(fd, bytes, size))
		return 0;
	if (!elf_image_open(fd, &image)) {
		walk(image);
		read_symbols(image);
	}
	elf_image_destroy(image);
	return 0;
}
