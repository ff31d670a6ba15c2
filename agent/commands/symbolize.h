/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of `fathom symbolize`: address sources (a file, a process, the kernel, a profile),
 * index lookup, output.
 */
#include <stdbool.h>
#include <stdio.h>

#include "agent/settings/config.h"
#include "base/module_id.h"
#include "symbolizer/index/index.h"
#include "symbolizer/sandbox/job.h"

/* The answer for one address. Strings are valid until the next lookup. */
struct symbolize_answer {
	const char *module; /* a path, or [kernel.kallsyms], [ext4], [jit], …; "" = none */
	bool name_module; /* print it with the name: kernel modules may share function names */
	size_t count; /* frames, innermost first; 0 = unknown */
	struct index_frame frames[INDEX_MAX_FRAMES];
};

/* ---- symbolize_print.c --------------------------------------------------------------------- */
struct symbolize_style {
	bool json;
	bool linkage_names; /* print mangled names */
	bool no_inlines;
};
/* Prints the answer for ADDRESS in llvm-symbolizer's format. */
void symbolize_print(FILE *out, const struct symbolize_style *style, uint64_t address,
	const struct symbolize_answer *answer);
/* Prints the answer for a LINE that is not an address; MODULE as in an answer. */
void symbolize_print_error(
	FILE *out, const struct symbolize_style *style, const char *module, const char *line);

/* ---- symbolize_index.c --------------------------------------------------------------------- */
struct symbolize_indexes {
	struct cache *cache; /* NULL = nothing is cached */
	const char *debug_directories; /* comma-separated; borrowed from the settings */
	struct debuginfod *debuginfod; /* NULL = no server is queried */
	bool wants_functions; /* indexes are to have functions */
	bool kernel_debuginfo; /* the kernel is to have lines */
};
/* A file to be indexed. */
struct symbolize_file {
	const char *path; /* for messages, and for lookups below root_fd */
	const char *also; /* as in struct debug_search */
	int elf_fd; /* open */
	int root_fd; /* root directory of the process that maps it; -1 = ours */
	/* As in struct sandbox_files. An index that says that it has no others is not cached. */
	const uint64_t *addresses;
	size_t address_count;
};
/* Without a usable cache directory, indexes are built in memory and not kept. */
void symbolize_indexes_init(struct symbolize_indexes *indexes, const struct config *config);
void symbolize_indexes_deinit(struct symbolize_indexes *indexes);
/*
 * Returns the index of FILE: cached under ID, otherwise built in the sandbox from the file and its
 * debug files. Prints errors to stderr.
 */
int symbolize_index(struct symbolize_indexes *indexes, const struct module_id *id,
	const struct symbolize_file *file, struct index **ret_index);
/*
 * Builds an index for a module of which only the build ID is known, from the debug file that a
 * debuginfod server has. Its segments have no file offsets. Returns -ENOENT if no server has a
 * usable file.
 */
int symbolize_index_of_id(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct index **ret_index);
/*
 * Opens the file at PATH, which it identifies by device, inode, mtime and size: a stripped file and
 * its unstripped twin share their build ID. Prints errors to stderr.
 */
int symbolize_open(const char *path, int *ret_fd, struct module_id *ret_id);

/* ---- symbolize_file.c ---------------------------------------------------------------------- */
/* Addresses, ascending. */
struct symbolize_addresses {
	uint64_t items[SANDBOX_ADDRESSES_MAX];
	size_t count;
};
struct symbolize_named_file {
	struct symbolize_indexes *indexes; /* borrowed */
	const char *path; /* as the user wrote it; borrowed */
	char *whole_path; /* NULL: unknown */
	int fd;
	struct module_id id;
	struct index *index; /* NULL before symbolize_file_index() */
	bool may_be_big; /* a part of its index may be worth having */
	bool has_failed; /* the whole index cannot be made */
	struct symbolize_addresses known; /* of the input: the index has them */
};
int symbolize_file_open(
	struct symbolize_indexes *indexes, const char *path, struct symbolize_named_file *ret_file);
void symbolize_file_close(struct symbolize_named_file *file);
/* To be called when addresses were appended to the known ones. */
void symbolize_file_sort(struct symbolize_named_file *file);
/*
 * Gets the index: of a big file that has none yet only the known addresses, if there are any.
 * Prints errors to stderr.
 */
int symbolize_file_index(struct symbolize_named_file *file);
/*
 * As index_lookup(). Builds the whole index first if the code is not among the known addresses, or
 * has no name without it.
 */
size_t symbolize_file_lookup(
	struct symbolize_named_file *file, uint64_t address, struct index_frame *frames);
/* Gets the whole index of the file at PATH. */
int symbolize_index_of_file(
	struct symbolize_indexes *indexes, const char *path, struct index **ret_index);

/* ---- symbolize_functions.c ----------------------------------------------------------------- */
/*
 * For tests: prints INDEX's functions, a line each: address, flags and stack check in hexadecimal,
 * addresses of the returns with commas between them or `-`, linkage name, a tab, readable name.
 */
void symbolize_print_functions(FILE *out, const struct index *index);

/* ---- symbolize_debuginfod.c ---------------------------------------------------------------- */
struct debug_files;
/*
 * Fetches the debug file with build ID ID, blocking, and adds it to DEBUG_FILES. Returns false if
 * no server has it or on failure, which it prints to stderr. NAME is for messages.
 */
bool symbolize_fetch(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct debug_files *debug_files);
/*
 * Adds the dwz supplementary file with build ID ID: from our debug directories, otherwise from the
 * servers.
 */
void symbolize_fetch_alternate(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct debug_files *debug_files);

/* ---- symbolize_kernel.c -------------------------------------------------------------------- */
struct kallsyms;
struct symbolize_kernel {
	struct kallsyms *kallsyms;
	struct index *index; /* of its debug file; NULL: no lines */
	bool raw; /* addresses without an image are those of the running kernel */
	bool ambiguity_said; /* that an address may be meant either way, once */
	char module[80]; /* storage for the module name in the answer */
};
/* Opens the kernel's symbols; on failure prints the reason to stderr. */
int symbolize_kernel_open(bool raw, struct symbolize_kernel *ret_kernel);
/* Adds lines, if INDEXES asks for them and there is a debug file; says if there is none. */
void symbolize_kernel_add_lines(struct symbolize_kernel *kernel, struct symbolize_indexes *indexes);
void symbolize_kernel_close(struct symbolize_kernel *kernel);
/* True for an address in the kernel's half of the address space. */
bool symbolize_is_kernel(uint64_t address);
/*
 * Looks up ADDRESS. IMAGE is the mapping it has in a profile, without the brackets: it is a link
 * address then (symbolizer/kallsyms/link_address.h). With NULL it is one if it is in the kernel's
 * text as linked, unless KERNEL is raw, and otherwise an address of the running kernel.
 */
void symbolize_kernel(struct symbolize_kernel *kernel, uint64_t address, const char *image,
	struct symbolize_answer *ret_answer);

/* ---- symbolize_process.c ------------------------------------------------------------------- */
struct symbolize_process;
struct symbolize_process_options {
	struct symbolize_indexes *indexes; /* borrowed */
	/*
	 * The user reads each answer before sending the next address, so an address outside all
	 * known mappings re-reads them every time.
	 */
	bool awaited;
	bool raw; /* as in struct symbolize_kernel */
};
/* Opens process PID. Prints errors to stderr. */
int symbolize_process_create(uint32_t pid, const struct symbolize_process_options *options,
	struct symbolize_process **ret_process);
void symbolize_process_destroy(struct symbolize_process *p);
/* IMAGE as for symbolize_kernel(); NULL for an address of the process. */
void symbolize_process_address(struct symbolize_process *p, uint64_t pc, const char *image,
	struct symbolize_answer *ret_answer);

/* ---- symbolize_profile.c ------------------------------------------------------------------- */
/*
 * Adds the missing names to pprof file INPUT and writes the result to OUTPUT. Returns the exit
 * status.
 */
int symbolize_profile(struct symbolize_indexes *indexes, const struct symbolize_style *style,
	const char *input, const char *output);
