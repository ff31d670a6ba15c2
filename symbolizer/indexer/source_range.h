/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* A range of ELF addresses that another source already covers. */
struct source_range {
	uint64_t low, high;
};
