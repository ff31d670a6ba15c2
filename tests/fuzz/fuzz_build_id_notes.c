/* SPDX-License-Identifier: Apache-2.0 */
/* A file of any bytes: the answer is a build ID of a valid size, or an error. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolizer/indexer/elf/build_id.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct build_id id = { .size = 99 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC), err;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	err = build_id_read(fd, &id);
	if (err > 0 || (!err && (id.size == 0 || id.size > BUILD_ID_MAX_BYTES)))
		abort();
	if (err && id.size != 99)
		abort();
	close(fd);
	return 0;
}
