/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of `fathom symbolize`: whose addresses they are (a file's, a process's, the kernel's, a
 * profile's), getting indexes, printing answers.
 */
#include <stdbool.h>
#include <stdio.h>

#include "agent/settings/config.h"
#include "base/module_id.h"
#include "symbolizer/index/index.h"

/* What is known of one address. Texts live until the next question. */
struct symbolize_answer {
	const char *module; /* a path, or [kernel.kallsyms], [ext4], [jit], …; "" = in none */
	bool name_module; /* part of the name: two kernel modules may have functions of one name */
	size_t count; /* of frames, innermost first; 0 = not known */
	struct index_frame frames[INDEX_MAX_FRAMES];
};

/* ---- symbolize_print.c --------------------------------------------------------------------- */
struct symbolize_style {
	bool json;
	bool linkage_names; /* as in the file, not made readable */
	bool no_inlines;
};
/* The answer for one address, as llvm-symbolizer prints it. */
void symbolize_print(FILE *out, const struct symbolize_style *style, uint64_t address,
	const struct symbolize_answer *answer);
/* A line that is no address; MODULE as in an answer. */
void symbolize_print_error(
	FILE *out, const struct symbolize_style *style, const char *module, const char *line);

/* ---- symbolize_index.c --------------------------------------------------------------------- */
struct symbolize_indexes {
	struct cache *cache; /* NULL: nothing is kept */
	const char *debug_directories; /* comma-separated; of the settings */
	struct debuginfod *debuginfod; /* NULL: no server is asked */
};
/* A file to be indexed. */
struct symbolize_file {
	const char *path; /* for people, and below the root */
	int elf_fd; /* open */
	int root_fd; /* root directory of who maps it; -1 = ours */
};
/* Without a cache directory that may be used, indexes live as long as their users. */
void symbolize_indexes_init(struct symbolize_indexes *indexes, const struct config *config);
void symbolize_indexes_deinit(struct symbolize_indexes *indexes);
/*
 * The index of a file: from the cache under ID, else built in the sandbox, of what its debug files
 * have too. Says on stderr what is wrong.
 */
int symbolize_index(struct symbolize_indexes *indexes, const struct module_id *id,
	const struct symbolize_file *file, struct index **ret_index);
/*
 * Of a module of which there is only the build ID: of its debug file, which servers may have. Its
 * segments have no place in a file.
 */
int symbolize_index_of_id(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct index **ret_index);
/* The same of a file by its path, which is then its identity too: see there. */
int symbolize_index_of_file(
	struct symbolize_indexes *indexes, const char *path, struct index **ret_index);

/* ---- symbolize_debuginfod.c ---------------------------------------------------------------- */
struct companions;
/*
 * Asks the servers for the debug file of build ID ID and waits; adds it to COMPANIONS. False: they
 * do not have it, or do not answer, which is said on stderr. NAME is for people.
 */
bool symbolize_fetch(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct companions *companions);
/* The same of what dwz moved out of that file, if our debug directories do not have it. */
void symbolize_fetch_alternate(const struct symbolize_indexes *indexes, const struct build_id *id,
	const char *name, struct companions *companions);

/* ---- symbolize_kernel.c -------------------------------------------------------------------- */
struct kallsyms;
/* Says on stderr why there are no kernel symbols. */
int symbolize_kernel_open(struct kallsyms **ret_kallsyms);
/* Whether ADDRESS is one of the kernel's half. */
bool symbolize_is_kernel(uint64_t address);
struct symbolize_kernel_text {
	char module[80];
};
/* TEXT holds the module's name for the answer. */
void symbolize_kernel(const struct kallsyms *kallsyms, uint64_t kaddr,
	struct symbolize_kernel_text *text, struct symbolize_answer *ret_answer);

/* ---- symbolize_process.c ------------------------------------------------------------------- */
struct symbolize_process;
/*
 * The process PID as it is now; INDEXES is borrowed. AWAITED: who asks sees each answer before the
 * next question, so an address in nothing that is known is looked for anew each time. Says on
 * stderr what is wrong.
 */
int symbolize_process_create(uint32_t pid, bool awaited, struct symbolize_indexes *indexes,
	struct symbolize_process **ret_process);
void symbolize_process_destroy(struct symbolize_process *p);
void symbolize_process_address(
	struct symbolize_process *p, uint64_t pc, struct symbolize_answer *ret_answer);

/* ---- symbolize_profile.c ------------------------------------------------------------------- */
/* Names for what has none in pprof file INPUT, written to OUTPUT. Returns the exit status. */
int symbolize_profile(struct symbolize_indexes *indexes, const struct symbolize_style *style,
	const char *input, const char *output);
