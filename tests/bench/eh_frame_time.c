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

struct file {
	Elf *elf;
	struct cfi_section section;
	Elf_Data *frames;
};

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Calls EACH with the sections of FILE. */
static void each_section(struct file *file, void *context,
	void (*each)(struct file *, const char *name, Elf_Scn *, const GElf_Shdr *, void *))
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(file->elf, &names))
		return;
	while ((scn = elf_nextscn(file->elf, scn))) {
		GElf_Shdr header;
		const char *name;

		if (!gelf_getshdr(scn, &header))
			continue;
		name = elf_strptr(file->elf, names, header.sh_name);
		each(file, name ?: "", scn, &header, context);
	}
}

static void find_frames(
	struct file *file, const char *name, Elf_Scn *scn, const GElf_Shdr *header, void *context)
{
	(void)context;
	if (!strcmp(name, ".text"))
		file->section.text = header->sh_addr;
	if (!strcmp(name, ".got"))
		file->section.data = header->sh_addr;
	if (strcmp(name, ".eh_frame") != 0)
		return;
	file->frames = elf_getdata(scn, NULL);
	file->section.address = header->sh_addr;
}

static void add_code(
	struct file *file, const char *name, Elf_Scn *scn, const GElf_Shdr *header, void *context)
{
	(void)file;
	(void)name;
	(void)scn;
	if (header->sh_flags & SHF_EXECINSTR &&
		writer_code(context, header->sh_addr, header->sh_size))
		exit(1);
}

static double turn_s(struct file *file)
{
	static const struct source_range nothing = { 0 };
	struct index_writer *w = index_writer_create();
	double begin;

	if (!w)
		exit(1);
	each_section(file, w, add_code);
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
	GElf_Ehdr header;
	double lowest = 1e9;

	elf_version(EV_CURRENT);
	file.elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!file.elf || !gelf_getehdr(file.elf, &header))
		return 1;
	file.section.machine = header.e_machine;
	each_section(&file, NULL, find_frames);
	if (!file.frames || !file.frames->d_size)
		return 1;
	file.section.bytes = cursor_over(file.frames->d_buf, file.frames->d_size);
	for (int i = 0; i < strtol(argv[2], NULL, 10); i++)
		lowest = MIN(lowest, turn_s(&file));
	printf("%.6f %zu\n", lowest, file.frames->d_size);
	elf_end(file.elf);
	return 0;
}
