/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/kernel_functions/kernel_lists.h"

#include <errno.h>
#include <fcntl.h>

#include "agent/sampler/collect/admin.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "base/io.h"

enum { MAX_LIST_BYTES = 64 << 20 };

/* Where a list is: in a file system that is usually mounted at one of two places. */
struct kernel_list_place {
	const char *paths[2]; /* the second one may be NULL */
	const char *file_system, *path_in_it;
};

static const struct kernel_list_place traceable_place = {
	.paths = { "/sys/kernel/tracing/available_filter_functions",
		"/sys/kernel/debug/tracing/available_filter_functions" },
	.file_system = "tracefs",
	.path_in_it = "available_filter_functions",
};

static const struct kernel_list_place forbidden_place = {
	.paths = { "/sys/kernel/debug/kprobes/blacklist" },
	.file_system = "debugfs",
	.path_in_it = "kprobes/blacklist",
};

static int kernel_lists_open(const struct kernel_list_place *place)
{
	for (size_t i = 0; i < ARRAY_SIZE(place->paths) && place->paths[i]; i++) {
		int fd = host_openat(AT_FDCWD, place->paths[i], O_RDONLY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return admin_mount_open(place->file_system, place->path_in_it);
}

static int kernel_lists_read_one(int opened, struct buffer *list)
{
	autoclose int fd = opened;

	return fd < 0 ? fd : io_read_all(fd, list);
}

int kernel_lists_read(struct kernel_lists *ret_lists)
{
	struct kernel_lists lists;
	int fd = host_openat(AT_FDCWD, "/proc/kallsyms", O_RDONLY | O_CLOEXEC);
	int err;

	buffer_init(&lists.symbols, MAX_LIST_BYTES);
	buffer_init(&lists.traceable, MAX_LIST_BYTES);
	buffer_init(&lists.forbidden, MAX_LIST_BYTES);
	err = kernel_lists_read_one(fd < 0 ? -errno : fd, &lists.symbols);
	if (err) {
		kernel_lists_deinit(&lists);
		return err;
	}
	/* A list that cannot be read completely would say that other functions are not in it. */
	if (kernel_lists_read_one(kernel_lists_open(&traceable_place), &lists.traceable))
		lists.traceable.size = 0;
	if (kernel_lists_read_one(kernel_lists_open(&forbidden_place), &lists.forbidden))
		lists.forbidden.size = 0;
	*ret_lists = lists;
	return 0;
}

void kernel_lists_deinit(struct kernel_lists *lists)
{
	buffer_deinit(&lists->symbols);
	buffer_deinit(&lists->traceable);
	buffer_deinit(&lists->forbidden);
}
