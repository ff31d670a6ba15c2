/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the debug information of a stripped file lies: by build ID (DIR/.build-id/xx/yyy.debug) and
 * by the names in its sections .gnu_debuglink and .gnu_debugaltlink, first below the root directory
 * of the process that maps it, then below our own. Only looks and opens: the names come from the
 * sandbox, which read them from the file, or from the index; what is in the files is read there.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/sandbox/companions.h"

/* The debug directories where nothing else is said, as gdb and elfutils have it. */
#define DEBUG_FILES_DIRECTORIES "/usr/lib/debug"

struct debug_search {
	const char *directories; /* comma-separated, absolute */
	int root_fd; /* root directory of who maps the file; -1 = ours */
	const char *path; /* of the file below that root; "" = not known */
};

/*
 * Opens what may belong to the module ELF_FD, which says NAMES of itself, in the order of trust;
 * RET_COMPANIONS is the caller's to close. Finding nothing is no error; not being able to look, for
 * want of descriptors or memory, is: then there are no companions.
 */
int debug_files_find(const struct debug_search *search, int elf_fd, const struct debug_names *names,
	struct companions *ret_companions);
/*
 * The same of what dwz moved out of DEBUG, a debug file of that module, into one that several
 * share: DEBUG says NAMES of itself.
 */
int debug_files_find_alternate(const struct debug_search *search, const struct companion *debug,
	const struct debug_names *names, struct companions *ret_companions);
/* The same of a debug file that came from elsewhere: by build ID ID, below our own root only. */
int debug_files_open_by_id(const char *directories, const struct build_id *id, int *ret_fd);
/* Whether ROOT_FD, as in a search, is the root directory that we have. */
bool debug_files_is_our_root(int root_fd);
/*
 * Opens the .dwo files that INDEX, built without them, wants, and adds them to COMPANIONS: where
 * the compiler wrote them, or by their name beside the module. Returns how many there were.
 */
struct index;
size_t debug_files_add_split(const struct debug_search *search, const struct index *index,
	struct companions *companions);
/*
 * Whether there are files by now that the module ELF_FD's INDEX was built without: its debug file,
 * what dwz moved out of that, or .dwo files. Each is asked for until one was there to be looked at.
 */
bool debug_files_would_help(
	const struct debug_search *search, int elf_fd, const struct index *index);
/*
 * Path of the debug file with build ID ID below our own root, not opened: the caller's to free.
 * -ENOENT: none is there.
 */
int debug_files_by_id(const char *directories, const struct build_id *id, char **ret_path);
