/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eh_frame_time FILE TURNS: CPU time in seconds that the table of FILE's .eh_frame takes, the
 * lowest of TURNS, and the size of .eh_frame in bytes.
 */
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/cfi/cfi.h"
#include "symbolizer/indexer/writer/writer.h"

enum { MAX_CODE = 32 };

struct file {
	struct cfi_section section; /* .eh_frame */
	GElf_Shdr code[MAX_CODE]; /* sections of code */
	size_t code_count;
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_section(struct file *file, const char *name, Elf_Scn *scn, const GElf_Shdr *header)
{
	const Elf_Data *data;

	if (header->sh_flags & SHF_EXECINSTR && file->code_count < MAX_CODE)
		file->code[file->code_count++] = *header;
	if (!strcmp(name, ".text"))
		file->section.text = header->sh_addr;
	if (!strcmp(name, ".got"))
		file->section.data = header->sh_addr;
	if (strcmp(name, ".eh_frame") != 0)
		return;
	file->section.address = header->sh_addr;
	data = elf_getdata(scn, NULL);
	if (data)
		file->section.bytes = cursor_over(data->d_buf, data->d_size);
}

static bool read_file(struct file *file, Elf *elf)
{
	GElf_Ehdr head;
	Elf_Scn *scn = NULL;
	size_t names;

	if (!gelf_getehdr(elf, &head) || elf_getshdrstrndx(elf, &names))
		return false;
	file->section.machine = head.e_machine;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr header;

		if (gelf_getshdr(scn, &header))
			read_section(
				file, elf_strptr(elf, names, header.sh_name) ?: "", scn, &header);
	}
	return cursor_left(&file->section.bytes) > 0;
}

static double turn_s(const struct file *file)
{
	static const struct source_range nothing = { 0 };
	struct index_writer *w = index_writer_create();
	double begin;

	if (!w)
		exit(1);
	for (size_t i = 0; i < file->code_count; i++)
		if (writer_code(w, file->code[i].sh_addr, file->code[i].sh_size))
			exit(1);
	begin = cpu_s();
	if (unwind_read_sections(&file->section, 1, 0, &nothing, w))
		exit(1);
	begin = cpu_s() - begin;
	index_writer_destroy(w);
	return begin;
}

int main(int argc, char **argv)
{
	struct file file = { .section = { .eh = true } };
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	double lowest = 1e9;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || !read_file(&file, elf))
		return 1;
	for (int i = 0; i < strtol(argv[2], NULL, 10); i++)
		lowest = MIN(lowest, turn_s(&file));
	printf("%.6f %zu\n", lowest, cursor_left(&file.section.bytes));
	elf_end(elf);
	return 0;
}
