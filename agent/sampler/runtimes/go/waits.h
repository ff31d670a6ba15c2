/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Why goroutines wait, in the words of Go's own tracebacks. */
#include <stdint.h>

/* WAIT is that of struct abi_fiber_facts, with Go's minor version. NULL = it is not known. */
const char *go_wait_text(uint32_t wait);
