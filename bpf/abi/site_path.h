/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#pragma once
/*
 * How an event's cookie reaches its program on kernels before 5.15, which have no cookies: in the
 * path by which the event's file is opened, since the kernel keeps the path as it was given. Two
 * characters between "/proc/self/fd" and "/N" stand for each bit and do not change what the path
 * names: "/." for 1, "//" for 0. An address would not do. It is known only when the file has been
 * mapped, and the first call may come at once.
 */
#include "bpf/abi/unwind.h"

enum {
	ABI_SITE_PATH_PREFIX = 13, /* characters of "/proc/self/fd" */
	ABI_SITE_PATH_BITS = 33,
	ABI_SITE_PATH_CHARACTERS = 2 * ABI_SITE_PATH_BITS,
};

/* No path has so many bits. */
#define ABI_SITE_NO_COOKIE (~0ULL)

/*
 * The cookie that CHARACTERS, ABI_SITE_PATH_CHARACTERS of them, stand for. '.' and '/' differ in
 * the lowest bit. (The verifier would follow both sides of a branch for every bit.)
 */
static inline __attribute__((always_inline)) abi_u64 abi_site_path_cookie(const char *characters)
{
	abi_u64 cookie = 0;

	for (int bit = 0; bit < ABI_SITE_PATH_BITS; bit++)
		cookie |= (abi_u64)(~characters[2 * bit + 1] & 1) << bit;
	return cookie;
}
