/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the debug information of a stripped file lies: by build ID (DIR/.build-id/xx/yyy.debug) and
 * by the names in its sections .gnu_debuglink and .gnu_debugaltlink, first below the root directory
 * of the process that maps it, then below our own. Only looks and opens; what is in the files is
 * read in the sandbox. Of the module itself the section headers, the build ID and those two
 * sections are read, with bounded reads.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/sandbox/companions.h"

/* The debug directories where nothing else is said, as gdb and elfutils have it. */
#define DEBUG_FILES_DIRECTORIES "/usr/lib/debug"

enum { DEBUG_FILES_NAME_BYTES = 4096 };

struct debug_search {
	const char *directories; /* comma-separated, absolute */
	int root_fd; /* root directory of who maps the file; -1 = ours */
	const char *path; /* of the file below that root; "" = not known */
};

/* What an ELF file says of its debug information. */
struct debug_names {
	struct build_id build_id;
	bool has_dwarf; /* sections .debug_info or .zdebug_info of its own */
	char link[DEBUG_FILES_NAME_BYTES]; /* of .gnu_debuglink; "" = none */
	uint32_t link_crc;
	char alternate[DEBUG_FILES_NAME_BYTES]; /* of .gnu_debugaltlink or .debug_sup; "" = none */
	struct build_id alternate_id;
};

/* -EBADMSG: no 64-bit little-endian ELF file with section headers that can be read. */
int debug_names_read(int elf_fd, struct debug_names *ret_names);

/*
 * Opens what may belong to the module ELF_FD, in the order of trust; RET_COMPANIONS is the caller's
 * to close. Finding nothing is no error; not being able to look, for want of descriptors or memory,
 * is: then there are no companions.
 */
int debug_files_find(
	const struct debug_search *search, int elf_fd, struct companions *ret_companions);
/*
 * What dwz moved out of the debug file DEBUG_FD into one that several share: false where it names
 * none. *RET_FD: that, opened below our own root; -1 = it is not there.
 */
bool debug_files_alternate(
	const char *directories, int debug_fd, struct build_id *ret_id, int *ret_fd);
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
