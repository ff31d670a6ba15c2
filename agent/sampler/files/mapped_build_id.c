/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/mapped_build_id.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"

/* struct procmap_query of linux/fs.h, absent from headers before 6.11. */
struct procmap_query_ {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size; /* 0 = the name is not wanted */
	uint32_t build_id_size; /* in: room; out: 0 = none found */
	uint64_t vma_name_addr, build_id_addr;
};

_Static_assert(sizeof(struct procmap_query_) == 104, "as the kernel has it");

enum { KERNEL_BUILD_ID_BYTES = 20 };

int mapped_build_id_read(int task_fd, uint64_t start, uint64_t end, struct build_id *ret_id)
{
	autoclose int fd = openat(task_fd, "maps", O_RDONLY | O_CLOEXEC);
	struct build_id id = { 0 };
	struct procmap_query_ query = { .size = sizeof(query),
		.query_addr = start,
		.build_id_size = KERNEL_BUILD_ID_BYTES,
		.build_id_addr = (uint64_t)(uintptr_t)id.bytes };

	_Static_assert(sizeof(id.bytes) >= KERNEL_BUILD_ID_BYTES, "room for the kernel's");
	if (fd < 0)
		return -errno;
	if (ioctl(fd, _IOWR('f', 17, struct procmap_query_), &query))
		return errno == ENOENT ? -ESTALE : -errno;
	if (query.vma_start != start || query.vma_end != end)
		return -ESTALE;
	if (!query.build_id_size || query.build_id_size > sizeof(id.bytes))
		return -ENOENT;
	id.size = (uint8_t)query.build_id_size;
	*ret_id = id;
	return 0;
}
