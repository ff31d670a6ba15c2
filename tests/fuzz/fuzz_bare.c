/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is code without tables, of either machine. The rows that it gets are in order, inside
 * of it, and such that a page can hold them; its functions are inside of it, too.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/indexer/code/bare.h"
#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/elf/images.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CODE = 0x1000, MAX_BYTES = 1 << 16 };

struct rows {
	uint16_t machine;
	uint64_t end, high;
	uint64_t functions_end;
};

static void check_row(
	void *context, uint64_t low, uint64_t high, const struct abi_unwind_rule *rule)
{
	struct rows *rows = context;
	/* x86_64 has a word on the stack at a function's beginning: the return address. */
	const int word = rows->machine == EM_X86_64 ? 8 : 0;

	if (low < rows->end || low >= high || high > rows->high)
		abort();
	rows->end = high;
	if (rule->cfa == ABI_CFA_SIGNAL || rule->cfa == ABI_CFA_END)
		return;
	if (rule->cfa == ABI_CFA_SP && rule->cfa_off < word)
		abort();
	if (rule->ra != ABI_REG_AT_CFA && (word || rule->ra != ABI_REG_SAME))
		abort();
	if (rule->fp == ABI_REG_AT_CFA && rule->fp_off > -8 - word)
		abort();
}

static void check_function(void *context, uint64_t low, uint64_t high)
{
	struct rows *rows = context;

	if (low < rows->functions_end || low >= high || high > rows->high)
		abort();
	rows->functions_end = high;
}

/* A file with nothing but a segment of this code. */
static int file_with(uint16_t machine, const uint8_t *code, size_t size)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 1,
	};
	const Elf64_Phdr segment = {
		.p_type = PT_LOAD,
		.p_flags = PF_R | PF_X,
		.p_offset = CODE,
		.p_vaddr = CODE,
		.p_filesz = size,
		.p_memsz = size,
		.p_align = CODE,
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || io_write_all(fd, &header, sizeof(header)) ||
		io_write_all(fd, &segment, sizeof(segment)) || lseek(fd, CODE, SEEK_SET) < 0 ||
		io_write_all(fd, code, size))
		abort();
	return fd;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	code_libraries_load(false);
	return 0;
}

static void run_on(uint16_t machine, const uint8_t *data, size_t size)
{
	static const struct debug_files none;
	struct rows rows = {
		.machine = machine, .end = CODE, .high = CODE + size, .functions_end = CODE
	};
	const struct unwind_gap_sink sink = { check_row, check_function, &rows };
	struct unwind_gap_source source = { 0 };
	autocall(images_deinit) struct images images = { 0 };
	autoclose int fd = file_with(machine, data, size);

	if (images_open(fd, &none, &images) || bare_open(images.own, NULL, &source))
		abort();
	if (source.run(source.state, CODE, CODE + size, &sink))
		abort();
	source.close(source.state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size || size > MAX_BYTES)
		return 0;
	run_on(EM_X86_64, data, size);
	run_on(EM_AARCH64, data, size);
	return 0;
}
