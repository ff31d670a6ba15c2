/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Finds the debug files of a stripped file: by build ID (DIR/.build-id/xx/yyy.debug) and by the
 * names in .gnu_debuglink and .gnu_debugaltlink, first below the root directory of the process that
 * maps it, then below our own. Only searches and opens: the names come from the sandbox, which read
 * them from the file, or from the index, and contents are read in the sandbox.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/module_id.h"
#include "symbolizer/index/debug_names.h"
#include "symbolizer/sandbox/debug_files.h"

/* The default of gdb and elfutils. */
#define DEBUG_SEARCH_DIRECTORIES "/usr/lib/debug"

struct debug_search {
	const char *directories; /* comma-separated, absolute */
	int root_fd; /* root directory of the mapping process; -1 = ours */
	const char *path; /* of the file below that root; "" = unknown */
	/*
	 * A debug file also has this path below each directory; a static string, NULL: none. It is
	 * taken only if its build ID is the file's.
	 */
	const char *also;
	/* Of the file, for the queue of builds: its control group; 0 = not known. */
	uint64_t owner;
	/* Set, by each function below, if a file system did not answer; NULL: nobody asks. */
	bool *late;
};

/*
 * Opens the files that may belong to the module ELF_FD, whose sections name NAMES, most trusted
 * first; the caller closes RET_DEBUG_FILES. Finding nothing is not an error; failing to search for
 * lack of descriptors or memory is, and leaves no debug files.
 */
int debug_search_find(const struct debug_search *search, int elf_fd,
	const struct debug_names *names, struct debug_files *ret_debug_files);
/*
 * Like debug_search_find(), for the alternate file into which dwz moved what DEBUG, a debug file of
 * the module, shares with others. DEBUG's sections name NAMES.
 */
int debug_search_find_alternate(const struct debug_search *search, const struct debug_file *debug,
	const struct debug_names *names, struct debug_files *ret_debug_files);
/*
 * Opens the debug file with build ID ID below our own root only. *RET_BYTES is its size. Returns
 * -ENOENT if there is none.
 */
int debug_search_open_by_id(
	const char *directories, const struct build_id *id, uint64_t *ret_bytes, int *ret_fd);
/* Returns true if ROOT_FD, as in struct debug_search, is our own root directory. */
bool debug_search_is_our_root(int root_fd);
/*
 * Opens the .dwo files that INDEX was built without and adds them to DEBUG_FILES; looks at the
 * paths that the compiler wrote, then next to the module by file name. Returns their number.
 */
struct index;
size_t debug_search_add_split(const struct debug_search *search, const struct index *index,
	struct debug_files *debug_files);
/*
 * Returns true if files can be found now that the module ELF_FD's INDEX was built without: its
 * debug file, the dwz file of that, or .dwo files. Each kind counts only if none was offered to the
 * build.
 */
bool debug_search_would_help(
	const struct debug_search *search, int elf_fd, const struct index *index);
/*
 * Returns the path of the debug file with build ID ID below our own root, without opening it; the
 * caller frees it. -ENOENT if there is none.
 */
int debug_search_by_id(const char *directories, const struct build_id *id, char **ret_path);
