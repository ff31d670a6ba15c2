/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kallsyms/ksym_modules.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/kallsyms/kallsyms_parse.h"

enum { MAX_LINE_BYTES = 4096 }; /* a page: the kernel's own limit for one line is below it */

static void ksym_modules_place(
	struct ksym_module *modules, size_t count, const struct ksym_module *at)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(modules[i].name, at->name))
			continue;
		modules[i].base = at->base;
		modules[i].size = at->size;
	}
}

int ksym_modules_read(int fd, struct ksym_module *modules, size_t count)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	autofclose FILE *file = copy < 0 ? NULL : fdopen(copy, "r");
	char line[MAX_LINE_BYTES];

	if (!file) {
		int err = -errno;

		if (copy >= 0)
			close(copy);
		return err;
	}
	while (fgets(line, sizeof(line), file)) {
		struct ksym_module at = { 0 };

		if (sscanf(line, "%63s %" SCNu64 " %*s %*s %*s 0x%" SCNx64, at.name, &at.size,
			    &at.base) == 3 &&
			at.base && at.size)
			ksym_modules_place(modules, count, &at);
	}
	return ferror(file) ? -EIO : 0;
}
