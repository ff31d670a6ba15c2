/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/elf_writer.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "tests/unit/bytes.h"

enum { FILE_LIMIT = 64 << 20, PAGE = 4096 };

void elf_writer_init(struct elf_writer *w)
{
	*w = (struct elf_writer){ .machine = EM_X86_64, .type = ET_DYN, .section_count = 1 };
	buffer_init(&w->file, FILE_LIMIT);
	buffer_init(&w->names, FILE_LIMIT);
	put_zeros(&w->file, sizeof(Elf64_Ehdr));
	put_string(&w->names, "");
	for (int i = 0; i < 2; i++) {
		buffer_init(&w->symbols[i], FILE_LIMIT);
		buffer_init(&w->symbol_names[i], FILE_LIMIT);
		put_zeros(&w->symbols[i], sizeof(Elf64_Sym));
		put_string(&w->symbol_names[i], "");
	}
}

void elf_writer_deinit(struct elf_writer *w)
{
	buffer_deinit(&w->file);
	buffer_deinit(&w->names);
	for (int i = 0; i < 2; i++) {
		buffer_deinit(&w->symbols[i]);
		buffer_deinit(&w->symbol_names[i]);
	}
}

void elf_writer_segment(struct elf_writer *w, const Elf64_Phdr *segment)
{
	assert(w->segment_count < ELF_WRITER_SEGMENTS);
	w->segments[w->segment_count++] = *segment;
}

static void add_segments(struct elf_writer *w, const Elf64_Shdr *section)
{
	Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | (section->sh_flags & SHF_EXECINSTR ? PF_X : 0) |
			   (section->sh_flags & SHF_WRITE ? PF_W : 0),
		.p_offset = section->sh_offset,
		.p_vaddr = section->sh_addr,
		.p_paddr = section->sh_addr,
		.p_filesz = section->sh_type == SHT_NOBITS ? 0 : section->sh_size,
		.p_memsz = section->sh_size,
		.p_align = PAGE,
	};

	elf_writer_segment(w, &segment);
	if (section->sh_type != SHT_NOTE)
		return;
	segment.p_type = PT_NOTE;
	segment.p_align = 4;
	elf_writer_segment(w, &segment);
}

/* Loaded bytes stand at the same place in their page in the file as in memory. */
static void pad_file(struct elf_writer *w, const struct elf_section_spec *spec)
{
	uint64_t align = spec->flags & SHF_ALLOC ? PAGE : 8;

	while (w->file.size % align != spec->address % align)
		put_u8(&w->file, 0);
}

uint32_t elf_writer_section(struct elf_writer *w, const struct elf_section_spec *spec)
{
	uint32_t number = w->section_count++;
	Elf64_Shdr *section = &w->sections[number];

	assert(number < ELF_WRITER_SECTIONS);
	pad_file(w, spec);
	*section = (Elf64_Shdr){
		.sh_name = (uint32_t)w->names.size,
		.sh_type = spec->type ? spec->type : SHT_PROGBITS,
		.sh_flags = spec->flags,
		.sh_addr = spec->address,
		.sh_offset = w->file.size,
		.sh_size = spec->size,
		.sh_link = spec->link,
		.sh_info = spec->info,
		.sh_entsize = spec->entry_size,
		.sh_addralign = 1,
	};
	put_string(&w->names, spec->name);
	if (section->sh_type != SHT_NOBITS && spec->bytes)
		buffer_append(&w->file, spec->bytes, spec->size);
	for (uint64_t i = 0; section->sh_type != SHT_NOBITS && !spec->bytes && i < spec->size; i++)
		put_u8(&w->file, 0x90);
	if (spec->flags & SHF_ALLOC && !w->no_segments)
		add_segments(w, section);
	return number;
}

uint32_t elf_writer_code(struct elf_writer *w, const char *name, uint64_t address, uint64_t size)
{
	return elf_writer_section(w, &(struct elf_section_spec){
					     .name = name,
					     .flags = SHF_ALLOC | SHF_EXECINSTR,
					     .address = address,
					     .size = size,
				     });
}

uint32_t elf_writer_build_id(struct elf_writer *w, uint64_t address, const void *id, uint32_t size)
{
	struct buffer note;
	uint32_t number;

	buffer_init(&note, PAGE);
	put_u32(&note, 4);
	put_u32(&note, size);
	put_u32(&note, NT_GNU_BUILD_ID);
	put_string(&note, "GNU");
	buffer_append(&note, id, size);
	put_zeros(&note, -size & 3);
	number = elf_writer_section(w, &(struct elf_section_spec){
					       .name = ".note.gnu.build-id",
					       .type = SHT_NOTE,
					       .flags = SHF_ALLOC,
					       .address = address,
					       .bytes = note.bytes,
					       .size = note.size,
				       });
	buffer_deinit(&note);
	return number;
}

void elf_writer_symbol(struct elf_writer *w, const struct elf_symbol_spec *spec)
{
	uint8_t type = spec->type ? spec->type : spec->notype ? STT_NOTYPE : STT_FUNC;
	Elf64_Sym symbol = {
		.st_name = (uint32_t)w->symbol_names[spec->dynamic].size,
		.st_info = ELF64_ST_INFO(spec->bind, type),
		.st_shndx = (uint16_t)spec->section,
		.st_value = spec->address,
		.st_size = spec->size,
	};

	put_string(&w->symbol_names[spec->dynamic], spec->name);
	buffer_append(&w->symbols[spec->dynamic], &symbol, sizeof(symbol));
}

static void add_symbol_table(struct elf_writer *w, int dynamic)
{
	uint32_t names;

	if (w->symbols[dynamic].size == sizeof(Elf64_Sym))
		return;
	names = elf_writer_section(w, &(struct elf_section_spec){
					      .name = dynamic ? ".dynstr" : ".strtab",
					      .type = SHT_STRTAB,
					      .bytes = w->symbol_names[dynamic].bytes,
					      .size = w->symbol_names[dynamic].size,
				      });
	elf_writer_section(w, &(struct elf_section_spec){
				      .name = dynamic ? ".dynsym" : ".symtab",
				      .type = dynamic ? SHT_DYNSYM : SHT_SYMTAB,
				      .bytes = w->symbols[dynamic].bytes,
				      .size = w->symbols[dynamic].size,
				      .link = names,
				      .entry_size = sizeof(Elf64_Sym),
			      });
}

/* The names' own section comes last: its contents are complete once its own name is in. */
static uint32_t add_section_names(struct elf_writer *w)
{
	uint32_t number = elf_writer_section(w,
		&(struct elf_section_spec){ .name = ".shstrtab", .type = SHT_STRTAB, .bytes = "" });

	w->sections[number].sh_size = w->names.size;
	buffer_append(&w->file, w->names.bytes, w->names.size);
	return number;
}

void elf_writer_finish(struct elf_writer *w)
{
	Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT },
		.e_type = w->type,
		.e_machine = w->machine,
		.e_version = EV_CURRENT,
		.e_entry = w->entry_point,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	assert(!w->finished);
	w->finished = true;
	add_symbol_table(w, 0);
	add_symbol_table(w, 1);
	header.e_shstrndx = (uint16_t)add_section_names(w);
	put_zeros(&w->file, -w->file.size & 7);
	header.e_phoff = w->file.size;
	header.e_phnum = (uint16_t)w->segment_count;
	buffer_append(&w->file, w->segments, w->segment_count * sizeof(Elf64_Phdr));
	if (w->no_section_headers) {
		header.e_shstrndx = 0;
	} else {
		header.e_shoff = w->file.size;
		header.e_shnum = (uint16_t)w->section_count;
		buffer_append(&w->file, w->sections, w->section_count * sizeof(Elf64_Shdr));
	}
	assert(!w->file.error);
	memcpy(w->file.bytes, &header, sizeof(header));
}

int memory_file(const void *bytes, size_t size)
{
	int fd = memfd_create("test", MFD_CLOEXEC);

	assert(fd >= 0);
	assert(!size || !io_write_all(fd, bytes, size));
	return fd;
}

int elf_writer_file(struct elf_writer *w)
{
	elf_writer_finish(w);
	return memory_file(w->file.bytes, w->file.size);
}
