/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/commands/symbolize.h"
#include "base/cleanup.h"
#include "symbolizer/kallsyms/kallsyms.h"

int symbolize_kernel_open(struct kallsyms **ret_kallsyms)
{
	autoclose int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : kallsyms_create(fd, ret_kallsyms);

	if (err == -EACCES)
		fputs("fathom symbolize: the kernel hides its addresses: run as root, or lower "
		      "kernel.kptr_restrict\n",
			stderr);
	else if (err)
		fprintf(stderr, "fathom symbolize: cannot read /proc/kallsyms: %s\n",
			strerror(-err));
	return err;
}

/* On x86_64 and aarch64. */
bool symbolize_is_kernel(uint64_t address)
{
	return address >> 63;
}

void symbolize_kernel(const struct kallsyms *kallsyms, uint64_t kaddr,
	struct symbolize_kernel_text *text, struct symbolize_answer *ret_answer)
{
	struct ksymbol symbol;
	uint64_t start, end;

	ret_answer->count = 0;
	ret_answer->name_module = false;
	ret_answer->module = "";
	kallsyms_text(kallsyms, &start, &end);
	if (!kallsyms_lookup(kallsyms, kaddr, &symbol)) {
		if (kaddr >= start && kaddr < end)
			ret_answer->module = "[kernel.kallsyms]";
		return;
	}
	snprintf(text->module, sizeof(text->module), "[%s]",
		*symbol.module ? symbol.module : "kernel.kallsyms");
	ret_answer->module = text->module;
	ret_answer->name_module = *symbol.module;
	ret_answer->count = 1;
	ret_answer->frames[0] =
		(struct index_frame){ .name = symbol.name, .linkage = symbol.name, .file = "" };
}
