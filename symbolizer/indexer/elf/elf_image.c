/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/elf/elf_image.h"

#include <errno.h>
#include <gelf.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/build_id_note.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/elf/elf_image_state.h"

DEFINE_AUTO(elf_image);

enum {
	MAX_SEGMENTS = 256, /* programs have about ten, and lookups go over all */
	FORGET_BYTES = 8 << 20, /* of a section are read before their memory is returned */
	MAX_NOTES = 64, /* segments or sections that are searched for a build ID */
};

/*
 * The whole file is mapped, and libelf reads its headers from that memory (file class, extended
 * numbering of sections and segments, misaligned tables). Contents are sliced out of the mapping
 * through cursors, so a forged header ends in a bad cursor.
 */

struct cursor elf_image_file(const struct elf_image *image, uint64_t offset, uint64_t size)
{
	struct cursor whole = cursor_over(image->map, image->map_size);

	return cursor_slice(&whole, offset, size);
}

/*
 * Shared, as the kernel writes the breakpoints of uprobes into every private mapping of a file,
 * even one that nobody may execute: while another tool traces the program, its code would have
 * no returns. Some file systems have no shared mappings.
 */
static void *map_whole(int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED && (errno == ENODEV || errno == EINVAL))
		map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	return map;
}

static int map_file(struct elf_image *image, int fd)
{
	struct stat st;
	void *map;
	int err = io_fstat(fd, &st);

	if (err)
		return err;
	if (!S_ISREG(st.st_mode) || st.st_size < EI_NIDENT)
		return -EBADMSG;
	map = map_whole(fd, (size_t)st.st_size);
	if (map == MAP_FAILED)
		return -errno;
	image->map = map;
	image->map_size = (size_t)st.st_size;
	return 0;
}

static int elf_image_read_header(struct elf_image *image)
{
	GElf_Ehdr header;

	if (memcmp(image->map, ELFMAG, SELFMAG))
		return -EBADMSG;
	if (image->map[EI_CLASS] != ELFCLASS64 || image->map[EI_DATA] != ELFDATA2LSB)
		return -EOPNOTSUPP;
	elf_version(EV_CURRENT);
	image->elf = elf_memory((char *)(uintptr_t)image->map, image->map_size);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF || !gelf_getehdr(image->elf, &header))
		return -EBADMSG;
	if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64)
		return -EOPNOTSUPP;
	image->machine = header.e_machine;
	image->type = header.e_type;
	image->entry_point = header.e_entry;
	return 0;
}

static int read_segments(struct elf_image *image)
{
	GElf_Phdr header;
	size_t count;

	if (elf_getphdrnum(image->elf, &count) || !count)
		return 0;
	if (count > MAX_SEGMENTS)
		return -E2BIG;
	image->segments = calloc(count, sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(image->elf, (int)i, &header))
			return -EBADMSG;
		image->segments[image->segment_count++] = (struct elf_segment){
			.type = header.p_type,
			.flags = header.p_flags,
			.address = header.p_vaddr,
			.file_off = header.p_offset,
			.file_size = header.p_filesz,
			.memory_size = header.p_memsz,
			.align = header.p_align,
		};
	}
	return 0;
}

static int read_image(struct elf_image *image)
{
	int err = elf_image_read_header(image);

	if (!err)
		err = read_segments(image);
	if (!err)
		err = elf_sections_read(image);
	return err;
}

int elf_image_open_any(int fd, struct elf_image **ret_image)
{
	autocall(auto_elf_image_destroy) struct elf_image *image = calloc(1, sizeof(*image));
	int err;

	if (!image)
		return -ENOMEM;
	image->peek_fd = -1;
	err = map_file(image, fd);
	if (!err)
		err = read_image(image);
	if (!err)
		*ret_image = take(image);
	return err;
}

int elf_image_open(int fd, struct elf_image **ret_image)
{
	autocall(auto_elf_image_destroy) struct elf_image *image = NULL;
	int err = elf_image_open_any(fd, &image);

	if (err)
		return err;
	if (image->type != ET_EXEC && image->type != ET_DYN && image->type != ET_REL)
		return -EOPNOTSUPP;
	if (image->type == ET_REL)
		err = elf_relocatable_lay_out(image);
	if (err)
		return err;
	*ret_image = take(image);
	return 0;
}

int elf_image_open_bytes(const void *bytes, size_t size, struct elf_image **ret_image)
{
	autocall(auto_elf_image_destroy) struct elf_image *image = calloc(1, sizeof(*image));
	int err;

	if (!image)
		return -ENOMEM;
	if (size < EI_NIDENT)
		return -EBADMSG;
	image->peek_fd = -1;
	image->map = bytes;
	image->map_size = size;
	image->borrowed = true;
	err = read_image(image);
	if (!err)
		*ret_image = take(image);
	return err;
}

void elf_image_destroy(struct elf_image *image)
{
	if (!image)
		return;
	elf_sections_free(image);
	free(image->segments);
	free(image->relocations);
	elf_end(image->elf);
	if (image->map && !image->borrowed)
		munmap((void *)(uintptr_t)image->map, image->map_size);
	free(image);
}

void elf_image_peek_in(struct elf_image *image, int fd)
{
	image->peek_fd = fd;
}

size_t elf_image_peek(const struct elf_image *image, const struct cursor *section, uint64_t offset,
	void *bytes, size_t size)
{
	const size_t section_bytes = (size_t)(section->end - section->start);
	const uintptr_t start = (uintptr_t)section->start, map = (uintptr_t)image->map;
	const size_t there = MIN(size, section_bytes - MIN(offset, section_bytes));

	if (image->peek_fd >= 0 && start >= map && start - map < image->map_size &&
		io_read_at(image->peek_fd, start - map + offset, bytes, there) == (ssize_t)there)
		return there;
	if (there)
		memcpy(bytes, section->start + offset, there);
	return there;
}

uint16_t elf_image_machine(const struct elf_image *image)
{
	return image->machine;
}

uint16_t elf_image_type(const struct elf_image *image)
{
	return image->type;
}

uint64_t elf_image_entry_point(const struct elf_image *image)
{
	return image->entry_point;
}

size_t elf_image_segment_count(const struct elf_image *image)
{
	return image->segment_count;
}

struct elf_segment elf_image_segment(const struct elf_image *image, size_t number)
{
	if (number >= image->segment_count)
		return (struct elf_segment){ 0 };
	return image->segments[number];
}

struct cursor elf_image_from(const struct elf_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *s = &image->segments[i];
		uint64_t offset = address - s->address;

		if (s->type != PT_LOAD || address < s->address || offset >= s->file_size)
			continue;
		if (s->file_off > image->map_size - MIN(offset, image->map_size))
			break;
		/* A truncated file ends before its segment does. */
		return elf_image_file(image, s->file_off + offset,
			MIN(s->file_size - offset, image->map_size - s->file_off - offset));
	}
	return (struct cursor){ .bad = true };
}

struct cursor elf_image_at(const struct elf_image *image, uint64_t address, uint64_t size)
{
	struct cursor rest = elf_image_from(image, address);

	return cursor_slice(&rest, 0, size);
}

static bool id_from(struct cursor notes, struct build_id *ret_id)
{
	return !notes.bad && !build_id_from_notes(notes.at, cursor_left(&notes), ret_id);
}

void elf_image_build_id(const struct elf_image *image, struct build_id *ret_id)
{
	unsigned int segments = 0, sections = 0;

	*ret_id = (struct build_id){ 0 };
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *s = &image->segments[i];

		if (s->type == PT_NOTE && segments++ < MAX_NOTES &&
			id_from(elf_image_file(image, s->file_off, s->file_size), ret_id))
			return;
	}
	for (size_t i = 0; i < image->section_count; i++) {
		const struct elf_section *s = &image->sections[i].header;

		if (s->type == SHT_NOTE && sections++ < MAX_NOTES &&
			id_from(elf_image_file(image, s->file_off, s->size), ret_id))
			return;
	}
}

uint64_t elf_image_bytes_held(const struct elf_image *image)
{
	return image->map_size + image->inflated_bytes;
}

struct cursor elf_image_whole(const struct elf_image *image)
{
	return cursor_over(image->map, image->map_size);
}

uint32_t elf_image_crc32(const struct elf_image *image)
{
	return libdeflate_crc32(0, image->map, image->map_size);
}

void elf_image_use_scratch(struct elf_image *image, struct elf_scratch *scratch)
{
	image->scratch = scratch;
}

/* Forgets the bytes if they are in MAP, of MAP_SIZE bytes. */
static void forget_in(const void *map, size_t map_size, const void *bytes, size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t start = (uintptr_t)map, at = (uintptr_t)bytes;
	size_t low, high;

	if (at < start || at - start > map_size || size > map_size - (at - start))
		return;
	low = (at - start + page - 1) & ~(page - 1);
	high = (at - start + size) & ~(page - 1);
	if (low < high)
		madvise((void *)(start + low), high - low, MADV_DONTNEED);
}

void elf_image_forget(const struct elf_image *image, const void *bytes, size_t size)
{
	if (!image->borrowed)
		forget_in(image->map, image->map_size, bytes, size);
	for (size_t i = 0; i < image->section_count && image->scratch; i++) {
		const struct image_section *section = &image->sections[i];

		if (section->scratched)
			forget_in(section->scratched, section->scratched_bytes, bytes, size);
	}
}

void elf_image_forget_read(const struct elf_image *image, const struct cursor *section,
	uint64_t read, uint64_t *forgotten)
{
	if (read < *forgotten || read - *forgotten < FORGET_BYTES)
		return;
	elf_image_forget(image, section->start + *forgotten, read - *forgotten);
	*forgotten = read;
}
