/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The code that this process executes. A breakpoint that the kernel puts into a file's code is hit
 * by all processes that map the file, also by the one that asked for it.
 */
#include <stddef.h>

/*
 * Executes copies of the program and its libraries from now on, which have no breakpoints, nor get
 * any. What cannot be copied stays; *RET_BYTES is the size of the copies. Needs the right to open
 * /proc/self/map_files.
 */
void own_code_copy(size_t *ret_bytes);
