/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/kallsyms/link_address.h"

/* Where _text of a kernel with the default configuration is linked. */
static const uint64_t TEXT_X86_64 = UINT64_C(0xffffffff81000000);
static const uint64_t TEXT_AARCH64 = UINT64_C(0xffff800080000000);

/* x86_64 has the kernel in the last 2 GiB, aarch64 never. */
static const uint64_t LOWEST_X86_64 = UINT64_C(0xffffffff80000000);

/* The largest kernel: KERNEL_IMAGE_SIZE of x86_64. Beyond it are modules. */
static const uint64_t KERNEL_BYTES = UINT64_C(1) << 30;

static uint64_t link_address_of_text(uint64_t text)
{
	return text >= LOWEST_X86_64 ? TEXT_X86_64 : TEXT_AARCH64;
}

static uint64_t link_address_in_kernel(uint64_t text, uint64_t kaddr)
{
	if (!text || kaddr < text || kaddr - text >= KERNEL_BYTES)
		return LINK_UNKNOWN;
	return link_address_of_text(text) + (kaddr - text);
}

uint64_t link_address_of(const struct ksymbol *symbol, uint64_t kaddr)
{
	uint64_t offset = kaddr - symbol->image_start;

	if (!*symbol->image)
		return link_address_in_kernel(symbol->image_start, kaddr);
	return offset < LINK_IMAGES_END - LINK_IMAGES ? LINK_IMAGES + offset : LINK_UNKNOWN;
}

bool link_address_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end)
{
	uint64_t text = kallsyms_marks(k)->text, start, end;

	kallsyms_text(k, &start, &end);
	start = link_address_in_kernel(text, start);
	end = link_address_in_kernel(text, end);
	if (start == LINK_UNKNOWN || end == LINK_UNKNOWN || start >= end)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

uint64_t link_address_in_text(const struct kallsyms *k, uint64_t kaddr)
{
	uint64_t start, end;

	kallsyms_text(k, &start, &end);
	if (kaddr < start || kaddr >= end)
		return LINK_UNKNOWN;
	return link_address_in_kernel(kallsyms_marks(k)->text, kaddr);
}

bool link_address_resolve(
	const struct kallsyms *k, const char *image, uint64_t address, uint64_t *ret_kaddr)
{
	uint64_t start, linked, bytes;

	if (!kallsyms_image_start(k, image, &start))
		return false;
	linked = *image ? LINK_IMAGES : link_address_of_text(start);
	bytes = *image ? LINK_IMAGES_END - LINK_IMAGES : KERNEL_BYTES;
	if (address < linked || address - linked >= bytes)
		return false;
	*ret_kaddr = start + (address - linked);
	return true;
}
