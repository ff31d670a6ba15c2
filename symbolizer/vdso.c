/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/vdso.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/build_id_note.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"

enum { MAX_VDSO_BYTES = 64 * 1024, MAX_HEADERS = 64 };

/*
 * The image comes from the kernel and lies in our own memory, so its headers are trusted. The
 * limits are for a kernel that puts something else at that address.
 */
struct image {
	const uint8_t *bytes;
	const Elf64_Ehdr *header;
	const Elf64_Phdr *segments;
	size_t size;
};

/* The file ends with its section headers or its last segment. */
static size_t image_size(const Elf64_Ehdr *header, const Elf64_Phdr *segments)
{
	uint64_t size = header->e_shoff + (uint64_t)header->e_shnum * header->e_shentsize;

	for (size_t i = 0; i < header->e_phnum; i++)
		size = MAX(size, segments[i].p_offset + segments[i].p_filesz);
	return size;
}

static int find_image(struct image *ret_image)
{
	const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
	struct image image;

	if (!bytes)
		return -ENOENT;
	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
		header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > MAX_HEADERS ||
		header->e_shnum > MAX_HEADERS || header->e_phoff != sizeof(*header))
		return -EBADMSG;
	image = (struct image){
		.bytes = bytes,
		.header = header,
		.segments = (const Elf64_Phdr *)(bytes + header->e_phoff),
	};
	image.size = image_size(header, image.segments);
	if (image.size > MAX_VDSO_BYTES)
		return -E2BIG;
	*ret_image = image;
	return 0;
}

/* 128 bits from two hashes, one of the content, one of the content without its first byte. */
static void identify_by_content(const struct image *image, struct build_id *ret_id)
{
	uint64_t hashes[2] = {
		hash_bytes(image->bytes, image->size),
		hash_bytes(image->bytes + 1, image->size - 1),
	};

	*ret_id = (struct build_id){ .size = sizeof(hashes) };
	memcpy(ret_id->bytes, hashes, sizeof(hashes));
}

static void identify(const struct image *image, struct build_id *ret_id)
{
	for (size_t i = 0; i < image->header->e_phnum; i++) {
		const Elf64_Phdr *segment = &image->segments[i];

		if (segment->p_type == PT_NOTE &&
			!build_id_from_notes(
				image->bytes + segment->p_offset, segment->p_filesz, ret_id))
			return;
	}
	identify_by_content(image, ret_id);
}

int vdso_open(int *ret_fd, struct module_id *ret_id)
{
	struct module_id id = { 0 };
	autoclose int fd = -1;
	struct image image;
	int err;

	err = find_image(&image);
	if (err)
		return err;
	fd = memfd_create("vdso", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = io_write_all(fd, image.bytes, image.size);
	if (err)
		return err;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	identify(&image, &id.build_id);
	*ret_fd = take_fd(&fd);
	*ret_id = id;
	return 0;
}
