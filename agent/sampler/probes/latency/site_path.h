/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Writes a cookie into the path of a file, for kernels without cookies: bpf/abi/site_path.h. */
#include <stdint.h>

#include "bpf/abi/site_path.h"

enum { SITE_PATH_PLAIN_BYTES = 32 /* "/proc/self/fd/N" */ };

/*
 * RET_PATH, of SITE_PATH_PLAIN_BYTES + ABI_SITE_PATH_CHARACTERS bytes, names the same file as PLAIN
 * ("/proc/self/fd/N").
 */
void site_path_write(const char *plain, uint64_t cookie, char *ret_path);
