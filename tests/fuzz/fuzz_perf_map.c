/* SPDX-License-Identifier: Apache-2.0 */
/* A perf map with any content, appended in two parts; names found must be printable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbolizer/perf_map/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void append(struct perf_map *m, int fd, const uint8_t *data, size_t size)
{
	if (write(fd, data, size) == (ssize_t)size)
		perf_map_update(m, fd);
}

static void look_up(const struct perf_map *m, uint64_t pc)
{
	const char *name;
	uint64_t start;

	if (!perf_map_lookup(m, pc, &name, &start))
		return;
	if (start > pc || !*name || !utf8_is_clean(name, strlen(name)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct perf_map *m;

	if (fd < 0 || perf_map_create(&m))
		return 0;
	append(m, fd, data, size / 2);
	append(m, fd, data + size / 2, size - size / 2);
	for (uint64_t pc = 0; pc < 4096; pc += 7)
		look_up(m, pc);
	look_up(m, UINT64_MAX);
	perf_map_destroy(m);
	return 0;
}
