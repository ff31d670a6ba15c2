/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads what an ELF file says of its debug information: section headers, build ID and a few small
 * sections, by bounded reads; the file is not mapped.
 */
#include "symbolizer/index/debug_names.h"

/* -EBADMSG: no 64-bit little-endian ELF file with section headers that can be read. */
int debug_names_read(int elf_fd, struct debug_names *ret_names);
