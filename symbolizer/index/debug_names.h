/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What an ELF file says about its debug information. The sandboxed child reads it, asks its parent
 * for the files named here, and stores it in the index.
 */
#include "base/module_id.h"

enum { DEBUG_NAME_BYTES = 4096 };

struct debug_names {
	struct build_id build_id;
	uint8_t has_dwarf; /* 1: has .debug_info or .zdebug_info itself */
	char link[DEBUG_NAME_BYTES]; /* .gnu_debuglink: a name, no path; "" = none */
	uint32_t link_crc;
	char alternate[DEBUG_NAME_BYTES]; /* .gnu_debugaltlink or .debug_sup; "" = none */
	struct build_id alternate_id;
};
