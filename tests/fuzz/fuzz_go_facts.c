/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Go facts and build IDs of any file: the input is the ELF file. Supported facts must be in the
 * ranges that the sampler can use.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "symbolizer/indexer/go/go.h"

enum { MAX_OFFSET = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct index_go *go)
{
	if (!go->supported)
		return;
	if (!go->version || !go->g_tls_offset || go->g_m > MAX_OFFSET || go->m_curg > MAX_OFFSET ||
		go->g_goid > MAX_OFFSET)
		abort();
	if (!go->g_tls_in_word && llabs(go->g_tls_offset) > INT32_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct elf_image *image;
	struct index_go go;
	struct cursor id;

	if (fd < 0 || io_write_all(fd, data, size))
		abort();
	if (!elf_image_open(fd, &image)) {
		if (!go_facts_read(image, &go))
			check(&go);
		id = go_build_id(image);
		while (cursor_left(&id))
			cursor_u8(&id);
		elf_image_destroy(image);
	}
	close(fd);
	return 0;
}
