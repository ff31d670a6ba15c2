/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pclntab, its module data and its inline trees from the input, in a valid ELF file: so the
 * reader gets to the bytes at once, and no mutations are spent on ELF headers. The input's first
 * bytes give the format and how the rest is divided. The result must be an index that opens and
 * answers, its unwind pages included.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/io.h"
#include "symbolizer/index/index.h"
#include "symbolizer/indexer/go/go.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/index/unwind.h"

enum {
	TEXT = 0x401000,
	TEXT_SIZE = 0x1000,
	PCLNTAB = 0x500000,
	FUNCDATA = 0x540000,
	MODULE = 0x600000,
	MODULE_SIZE = 0x250,
	PAGE = 4096,
	MAX_INPUT_BYTES = 1 << 16,
	SEGMENTS = 4,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct part {
	uint64_t address;
	uint32_t flags;
	const void *bytes;
	size_t size;
};

/* Writes segments alone: without section headers, the pclntab is found by a search. */
static int write_elf(const struct part *parts)
{
	Elf64_Ehdr header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
				      EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = SEGMENTS,
		.e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr segments[SEGMENTS];
	uint64_t offset = PAGE;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	for (int i = 0; i < SEGMENTS; i++) {
		segments[i] = (Elf64_Phdr){ .p_type = PT_LOAD,
			.p_flags = parts[i].flags,
			.p_offset = offset,
			.p_vaddr = parts[i].address,
			.p_filesz = parts[i].size,
			.p_memsz = parts[i].size,
			.p_align = PAGE };
		if (pwrite(fd, parts[i].bytes, parts[i].size, (off_t)offset) < 0)
			abort();
		offset += (parts[i].size + PAGE - 1) / PAGE * PAGE;
	}
	if (pwrite(fd, &header, sizeof(header), 0) < 0 ||
		pwrite(fd, segments, sizeof(segments), sizeof(header)) < 0 ||
		ftruncate(fd, (off_t)offset))
		abort();
	return fd;
}

/* Puts a header in front of the blob that is valid as far as the search checks it. */
static void put_header(uint8_t *blob, size_t size, uint8_t format)
{
	static const uint32_t magics[] = { 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	uint64_t word;

	if (size < 72)
		return;
	memcpy(blob, &magics[format % 3], 4);
	memcpy(blob + 4, "\0\0\1\10", 4);
	memcpy(&word, blob + 8, 8);
	word = word % 8 + 1; /* number of functions */
	memcpy(blob + 8, &word, 8);
	for (int i = 0; i < 5; i++) {
		memcpy(&word, blob + (format % 3 ? 32 : 24) + i * 8, 8);
		word %= size;
		memcpy(blob + (format % 3 ? 32 : 24) + i * 8, &word, 8);
	}
}

/* Module data that names the blob's tables. */
static void put_module(uint8_t *module, const uint8_t *blob, size_t size, uint8_t format)
{
	uint64_t words[9] = { 0 };
	const uint64_t *offsets = words + (format % 3 ? 4 : 3);
	uint64_t fields[][2] = { { 0, PCLNTAB }, { 8, 0 }, { 104, 0 }, { 136, 0 }, { 176, TEXT },
		{ format % 3 == 2 ? 320 : 304, FUNCDATA } };

	memcpy(words, blob, size < sizeof(words) ? size : sizeof(words));
	fields[1][1] = PCLNTAB + offsets[0];
	fields[2][1] = PCLNTAB + offsets[4];
	fields[3][1] = words[1] + 1;
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		memcpy(module + fields[i][0], &fields[i][1], 8);
}

static void look_up(int fd)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	const struct abi_unwind_page *page;
	struct index *index;
	size_t page_size;

	if (index_open(fd, &index))
		abort();
	for (uint64_t a = TEXT - 1; a <= TEXT + TEXT_SIZE; a += 3)
		index_lookup(index, a, frames, INDEX_MAX_FRAMES);
	for (size_t i = 0; i < index_unwind_page_count(index); i++)
		if (!index_unwind_page(
			    index, index_unwind_page_address(index, i), &page, &page_size))
			abort();
	index_destroy(index);
}

static void read_elf(int fd)
{
	struct index_writer *w = index_writer_create();
	int output = memfd_create("fuzz", MFD_CLOEXEC);
	struct source_range text;
	struct unwind_source source;
	struct elf_image *image;
	int unwound;

	if (!w || elf_image_open(fd, &image))
		abort();
	writer_segment(w, &(struct writer_segment){ TEXT, TEXT_SIZE, PAGE });
	if (!gopclntab_read(image, w, &text)) {
		unwound = go_open_unwind(image, &source);
		if (!unwound) {
			unwound = unwind_read(image, &text, &source, NULL, w);
			source.close(source.state);
		}
		if (unwound && unwound != -EBADMSG && unwound != -E2BIG)
			abort();
		if (!writer_finish(w, output))
			look_up(output);
	}
	index_writer_destroy(w);
	elf_image_destroy(image);
	close(output);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t text[TEXT_SIZE], blob[MAX_INPUT_BYTES], module[MODULE_SIZE];
	size_t tree;
	int fd;

	if (size < 80 || size > MAX_INPUT_BYTES)
		return 0;
	tree = data[1] * 16u < size - 80 ? data[1] * 16u : 0;
	memcpy(blob, data + 2, size - 2);
	put_header(blob, size - 2 - tree, data[0]);
	memset(module, 0, sizeof(module));
	put_module(module, blob, size - 2 - tree, data[0]);
	fd = write_elf((struct part[SEGMENTS]){
		{ TEXT, PF_R | PF_X, text, sizeof(text) },
		{ PCLNTAB, PF_R, blob, size - 2 - tree },
		{ FUNCDATA, PF_R, blob + size - 2 - tree, tree },
		{ MODULE, PF_R | PF_W, module, sizeof(module) },
	});
	read_elf(fd);
	close(fd);
	return 0;
}
