/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Which package of this machine's distribution has the debug symbols of a file. */
#include <stddef.h>

#define DEBUG_PACKAGE_LISTS "/var/lib/dpkg/info"

/*
 * Writes the name of the package with the debug symbols of PATH, by dpkg's file lists in the
 * directory LISTS. Returns -ENOENT if no package has PATH, or there are no such lists. Reads some
 * megabytes.
 */
int debug_package_find(const char *lists, const char *path, char *name, size_t size);
