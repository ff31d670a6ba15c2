/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* A stretch of ELF addresses that another source already answers. */
struct source_range {
	uint64_t low, high;
};
