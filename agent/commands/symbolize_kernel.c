/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "agent/commands/symbolize.h"
#include "base/cleanup.h"
#include "symbolizer/kallsyms/link_address.h"
#include "symbolizer/kernel_file.h"

/* A kernel without modules has no /proc/modules. */
static void place_modules(struct kallsyms *kallsyms)
{
	autoclose int fd = open("/proc/modules", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)kallsyms_place_modules(kallsyms, fd);
}

int symbolize_kernel_open(bool raw, struct symbolize_kernel *ret_kernel)
{
	autoclose int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	struct symbolize_kernel kernel = { .raw = raw };
	int err = fd < 0 ? -errno : kallsyms_create(fd, &kernel.kallsyms);

	if (!err) {
		place_modules(kernel.kallsyms);
		*ret_kernel = kernel;
	} else if (err == -EACCES) {
		fputs("fathom symbolize: the kernel hides its addresses: run as root, or lower "
		      "kernel.kptr_restrict\n",
			stderr);
	} else {
		fprintf(stderr, "fathom symbolize: cannot read /proc/kallsyms: %s\n",
			strerror(-err));
	}
	return err;
}

void symbolize_kernel_add_lines(struct symbolize_kernel *kernel, struct symbolize_indexes *indexes)
{
	const char *name = kernel_file_debug_name();
	autoclose int fd = -1;
	struct module_id id;
	uint64_t start, end;

	if (!indexes->kernel_debuginfo)
		return;
	if (link_address_text(kernel->kallsyms, &start, &end) &&
		!kernel_file_open(start, end, &fd, &id) &&
		!symbolize_index(indexes, &id,
			&(struct symbolize_file){
				.path = name, .also = name, .elf_fd = fd, .root_fd = -1 },
			&kernel->index) &&
		index_sources(kernel->index) & INDEX_SOURCE_DWARF)
		return;
	fputs("fathom symbolize: the debug file of this kernel was not found: no lines\n", stderr);
}

void symbolize_kernel_close(struct symbolize_kernel *kernel)
{
	index_destroy(kernel->index);
	kallsyms_destroy(kernel->kallsyms);
}

/* On x86_64 and aarch64. */
bool symbolize_is_kernel(uint64_t address)
{
	return address >> 63;
}

/* The running kernel may have code at a link address: then the user has to tell. */
static void say_ambiguous(struct symbolize_kernel *kernel, uint64_t address, uint64_t kaddr)
{
	struct ksymbol symbol;

	if (kernel->ambiguity_said || kaddr == address ||
		!kallsyms_lookup(kernel->kallsyms, address, &symbol))
		return;
	kernel->ambiguity_said = true;
	fprintf(stderr,
		"fathom symbolize: 0x%" PRIx64 " is taken for a link address, as in profiles; for "
		"addresses of the running kernel say --raw\n",
		address);
}

/*
 * The address in the running kernel. One that is given with an image, or that is in the kernel's
 * text as linked, is a link address. False if it is in nothing that is loaded.
 */
static bool find_kaddr(
	struct symbolize_kernel *kernel, uint64_t address, const char *image, uint64_t *ret_kaddr)
{
	uint64_t start, end;

	if (image)
		return link_address_resolve(kernel->kallsyms,
			strcmp(image, "kernel.kallsyms") ? image : "", address, ret_kaddr);
	*ret_kaddr = address;
	if (kernel->raw || !link_address_text(kernel->kallsyms, &start, &end) || address < start ||
		address >= end)
		return true;
	if (!link_address_resolve(kernel->kallsyms, "", address, ret_kaddr))
		return false;
	say_ambiguous(kernel, address, *ret_kaddr);
	return true;
}

void symbolize_kernel(struct symbolize_kernel *kernel, uint64_t address, const char *image,
	struct symbolize_answer *ret_answer)
{
	struct ksymbol symbol;
	uint64_t kaddr, start, end;

	ret_answer->count = 0;
	ret_answer->name_module = false;
	ret_answer->module = "";
	if (!find_kaddr(kernel, address, image, &kaddr))
		return;
	kallsyms_text(kernel->kallsyms, &start, &end);
	if (!kallsyms_lookup(kernel->kallsyms, kaddr, &symbol)) {
		if (kaddr >= start && kaddr < end)
			ret_answer->module = "[kernel.kallsyms]";
		return;
	}
	snprintf(kernel->module, sizeof(kernel->module), "[%s]",
		*symbol.module ? symbol.module : "kernel.kallsyms");
	ret_answer->module = kernel->module;
	ret_answer->name_module = *symbol.module;
	ret_answer->count = 1;
	ret_answer->frames[0] =
		(struct index_frame){ .name = symbol.name, .linkage = symbol.name, .file = "" };
	if (!kernel->index || *symbol.image)
		return;
	ret_answer->count = kernel_file_lines(
		kernel->index, link_address_of(&symbol, kaddr), symbol.name, ret_answer->frames);
}
