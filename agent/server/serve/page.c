/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page (FATHOM_PAGE), assembled and compressed by the Makefile from agent/server/serve/page/.
 */
#include "agent/server/serve/serve_internal.h"

__asm__(".section .rodata\n"
	"fathom_page_start:\n"
	".incbin \"" FATHOM_PAGE "\"\n"
	"fathom_page_end:\n"
	".previous\n");

/* Hidden for the same reason as the BPF objects: bpf/skeleton.awk. */
extern const char fathom_page_start[] __attribute__((visibility("hidden")));
extern const char fathom_page_end[] __attribute__((visibility("hidden")));

void page_gzip(const char **ret_bytes, size_t *ret_size)
{
	*ret_bytes = fathom_page_start;
	*ret_size = (size_t)(fathom_page_end - fathom_page_start);
}
