/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/kallsyms with any content; each name found must be printable. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbolizer/kallsyms/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct kallsyms *k, uint64_t kaddr)
{
	struct ksymbol symbol;

	if (!kallsyms_lookup(k, kaddr, &symbol))
		return;
	if (symbol.start > kaddr || !*symbol.name ||
		!utf8_is_clean(symbol.name, strlen(symbol.name)))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autoclose int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct kallsyms_event event;
	struct kallsyms *k;
	uint64_t kaddr;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		return 0;
	if (kallsyms_create(fd, &k))
		return 0;
	for (size_t i = 0; i + sizeof(kaddr) <= size && i < 64; i++) {
		memcpy(&kaddr, data + i, sizeof(kaddr));
		look_up(k, kaddr);
		event = (struct kallsyms_event){ kaddr, (uint32_t)i * 8, i & 1, "bpf_prog_x", i };
		kallsyms_add(k, &event);
		look_up(k, kaddr);
		event.start += 8 * (i & 1);
		kallsyms_gone(k, &event);
		look_up(k, kaddr);
		if (i % 8 == 0)
			kallsyms_forget(k, i / 2);
	}
	for (uint64_t i = 0; i < 256; i++)
		look_up(k, i);
	look_up(k, UINT64_MAX);
	kallsyms_destroy(k);
	return 0;
}
