/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads what an ELF file says about its debug information, with bounded reads of section headers,
 * build ID and a few small sections; the file is not mapped.
 */
#include "symbolizer/index/debug_names.h"

/* Returns -EBADMSG if this is not a 64-bit little-endian ELF file with readable section headers. */
int debug_names_read(int elf_fd, struct debug_names *ret_names);
