/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Removes what a test has written. */
#include <ftw.h>
#include <stdio.h>

static inline int remove_tree_entry(
	const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* Removes DIRECTORY with all that is in it. */
static inline void remove_tree(const char *directory)
{
	nftw(directory, remove_tree_entry, 16, FTW_DEPTH | FTW_PHYS);
}
