/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kernel_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/kernel_image.h"

#ifdef __x86_64__
enum { MACHINE = EM_X86_64 };
#else
enum { MACHINE = EM_AARCH64 };
#endif

enum { PAGE_BYTES = 4096, NOTE_NAME_BYTES = 4, MAX_TEXT_BYTES = 1 << 30 };

static const char section_names[] = "\0.text\0.notes\0.shstrtab";

enum { NAME_TEXT = 1, NAME_NOTES = 7, NAME_NAMES = 14 }; /* offsets in it */
enum { SECTION_NONE, SECTION_TEXT, SECTION_NOTES, SECTION_NAMES, SECTIONS };

/* The file's first page; its text is a hole behind. */
struct head {
	Elf64_Ehdr header;
	Elf64_Phdr text, notes;
	Elf64_Shdr sections[SECTIONS];
	Elf64_Nhdr note;
	char name[NOTE_NAME_BYTES];
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	char names[sizeof(section_names)];
};

/* A section with what SEGMENT has. */
static Elf64_Shdr section_of(const Elf64_Phdr *segment, uint32_t name, uint32_t type)
{
	return (Elf64_Shdr){
		.sh_name = name,
		.sh_type = type,
		.sh_flags = SHF_ALLOC | (segment->p_flags & PF_X ? SHF_EXECINSTR : 0),
		.sh_addr = segment->p_vaddr,
		.sh_offset = segment->p_offset,
		.sh_size = segment->p_filesz,
		.sh_addralign = segment->p_align,
	};
}

static void fill_sections(struct head *head)
{
	head->sections[SECTION_TEXT] = section_of(&head->text, NAME_TEXT, SHT_PROGBITS);
	head->sections[SECTION_NOTES] = section_of(&head->notes, NAME_NOTES, SHT_NOTE);
	head->sections[SECTION_NAMES] = (Elf64_Shdr){
		.sh_name = NAME_NAMES,
		.sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct head, names),
		.sh_size = sizeof(head->names),
		.sh_addralign = 1,
	};
	memcpy(head->names, section_names, sizeof(section_names));
}

static void fill_head(
	struct head *head, uint64_t start, uint64_t end, const struct build_id *build_id)
{
	*head = (struct head){
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				EV_CURRENT },
			.e_type = ET_EXEC,
			.e_machine = MACHINE,
			.e_version = EV_CURRENT,
			.e_phoff = offsetof(struct head, text),
			.e_ehsize = sizeof(Elf64_Ehdr),
			.e_phentsize = sizeof(Elf64_Phdr),
			.e_phnum = 2,
			.e_shoff = offsetof(struct head, sections),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shnum = SECTIONS,
			.e_shstrndx = SECTION_NAMES,
		},
		.text = {
			.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = PAGE_BYTES,
			.p_vaddr = start,
			.p_filesz = end - start,
			.p_memsz = end - start,
			.p_align = PAGE_BYTES,
		},
		.notes = {
			.p_type = PT_NOTE,
			.p_flags = PF_R,
			.p_offset = offsetof(struct head, note),
			.p_filesz = sizeof(Elf64_Nhdr) + NOTE_NAME_BYTES + build_id->size,
			.p_align = 4,
		},
		.note = { NOTE_NAME_BYTES, build_id->size, NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	memcpy(head->build_id, build_id->bytes, build_id->size);
	fill_sections(head);
}

int kernel_file_open(uint64_t start, uint64_t end, int *ret_fd, struct module_id *ret_id)
{
	struct module_id id = { 0 };
	autoclose int fd = -1;
	struct head head;
	int err;

	start &= ~(uint64_t)(PAGE_BYTES - 1);
	if (start >= end || end - start > MAX_TEXT_BYTES)
		return -EINVAL;
	err = kernel_build_id(&id.build_id);
	if (err)
		return err;
	fill_head(&head, start, end, &id.build_id);
	fd = memfd_create("kernel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	err = io_write_all(fd, &head, sizeof(head));
	if (err)
		return err;
	if (ftruncate(fd, (off_t)(PAGE_BYTES + (end - start))))
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL))
		return -errno;
	*ret_fd = take_fd(&fd);
	*ret_id = id;
	return 0;
}

const char *kernel_file_debug_name(void)
{
	static char name[sizeof("/boot/vmlinux-") + sizeof(((struct utsname *)0)->release)];
	struct utsname host;

	if (!*name && !uname(&host) && !strchr(host.release, '/'))
		snprintf(name, sizeof(name), "/boot/vmlinux-%s", host.release);
	return name;
}

/* The length of NAME without what compilers append. Names of labels begin with a dot. */
static size_t plain_length(const char *name)
{
	return strcspn(name + (*name == '.'), ".") + (*name == '.');
}

size_t kernel_file_lines(const struct index *index, uint64_t address, const char *name,
	struct index_frame *ret_frames)
{
	size_t count = index_lookup(index, address, ret_frames, INDEX_MAX_FRAMES);
	struct index_frame *outermost = count ? &ret_frames[count - 1] : NULL;
	size_t length = plain_length(name);

	if (!count || plain_length(outermost->linkage) != length ||
		strncmp(outermost->linkage, name, length) != 0) {
		*ret_frames = (struct index_frame){ .name = name, .linkage = name, .file = "" };
		return 1;
	}
	outermost->name = outermost->linkage = name;
	return count;
}
