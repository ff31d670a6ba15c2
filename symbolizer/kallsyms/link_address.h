/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kernel addresses as they may leave this machine. The kernel and its modules are loaded at random
 * addresses (KASLR), which an attacker of the kernel has to know first. So profiles have link
 * addresses, which are the same at each boot and tell nothing about it:
 *
 * - The kernel's own are those of vmlinux: its _text is at 0xffffffff81000000 on x86_64, and at
 *   0xffff800080000000 on aarch64. A kernel that was linked elsewhere (another PHYSICAL_START; on
 *   aarch64 before Linux 6.5, or with fewer than 48 address bits) does not tell where: the
 *   distances between its functions are right, and to _text.
 * - Everything that is loaded separately begins at LINK_IMAGES, each in a mapping of its own: a
 *   module, a BPF program, a trampoline.
 * - What is in none of these is at LINK_UNKNOWN, all of it.
 *
 * No kernel has code from LINK_IMAGES to LINK_IMAGES_END, so these addresses cannot be mistaken for
 * those of the running kernel. All have the top bit set, as kernel addresses have.
 */
#include <stdbool.h>
#include <stdint.h>

#include "symbolizer/kallsyms/kallsyms.h"

/* A hole in the memory map of x86_64; part of a guard region or of data on aarch64. */
static const uint64_t LINK_IMAGES = UINT64_C(0xffffffff00000000);
static const uint64_t LINK_IMAGES_END = UINT64_C(0xffffffff80000000);
static const uint64_t LINK_UNKNOWN = UINT64_C(1) << 63;

/* The link address of KADDR, where SYMBOL was found; LINK_UNKNOWN if it is not in its image. */
uint64_t link_address_of(const struct ksymbol *symbol, uint64_t kaddr);
/* [_stext, _etext) of the kernel itself, as linked; false if the table does not tell. */
bool link_address_text(const struct kallsyms *k, uint64_t *ret_start, uint64_t *ret_end);
/* The link address of a KADDR in [_stext, _etext) of the kernel itself, else LINK_UNKNOWN. */
uint64_t link_address_in_text(const struct kallsyms *k, uint64_t kaddr);
/*
 * The address in the running kernel for ADDRESS of IMAGE ("" = the kernel itself, else a module or
 * a function that was loaded alone). False if it is not loaded, or ADDRESS is not in it.
 */
bool link_address_resolve(
	const struct kallsyms *k, const char *image, uint64_t address, uint64_t *ret_kaddr);
