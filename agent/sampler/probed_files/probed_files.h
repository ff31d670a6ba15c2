/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The files whose functions are probed. A file that a selected process maps and a pattern names is
 * opened, and its index with functions is requested. Once that is there, functions are chosen and
 * their sites attached. They stay attached for processes that map the file later, so that these are
 * measured from their first call on. A file that was written to is detached, since its sites may
 * now be in the middle of other instructions.
 *
 * Who opens files and requests indexes is up to the owner, and so is which processes are measured.
 * One thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/sampler/functions/choose.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/process/processes.h"
#include "bpf/abi/sampler.h"
#include "symbolizer/index/index.h"

struct probed_files;

enum { PROBED_FILES_MAX = 256 };

struct probed_function;

/* A file whose functions were chosen; valid during the call. */
struct probed_chosen {
	const char *path; /* below the root of `pid` */
	int fd;
	const struct module_id *id;
	uint32_t pid; /* a process that maps it; 0 = not known */
	int root_fd; /* its root directory, which the sampler opens; -1 = ours */
};

struct probed_files_options {
	/* Borrowed. */
	const struct function_patterns *wanted, *unwanted;
	/* Of the functions that `wanted` names; NULL = none. They have ABI_LATENCY_ROOT. */
	const struct function_patterns *roots;
	bool exclude_vendor;
	bool dry_run; /* chooses, attaches nothing, and also finds what exists only inlined */
	/*
	 * Processes of their own attach and detach: call probed_files_tend() often while
	 * probed_files_is_busy().
	 */
	bool in_background;
	enum abi_latency_by by; /* of the functions */
	uint32_t set; /* of processes, likewise (latency_set_process()) */
	size_t max_functions; /* in all files */
	struct latency *latency; /* borrowed; NULL only in a dry run */
	/* Whether patterns apply to what P maps. */
	bool (*selects)(void *context, const struct process *p);
	/* Opens the file that P maps in MAPPING; returns a negative errno. */
	int (*open)(
		void *context, const struct process *p, const struct mapping *mapping, int *ret_fd);
	/*
	 * Requests the index with functions. The answer goes to probed_files_index(), perhaps from
	 * within the call.
	 */
	int (*want)(void *context, const struct process *p, const struct mapping *mapping);
	/*
	 * Returns 0 if FD is still as MODULE was when it was mapped, -ESTALE if not, and a
	 * transient failure (failure_is_transient()) if that cannot be said now.
	 */
	int (*check_file)(void *context, const struct module *module, int fd);
	/*
	 * FUNCTIONS of FILE are about to be attached; those that are MEASURED have their numbers.
	 * NULL = nobody wants to know.
	 */
	void (*chosen)(void *context, const struct probed_chosen *file,
		const struct probed_function *functions, size_t count);
	/* How to find the fiber that a thread of INDEX's program runs. False: not known. */
	bool (*fibers)(
		void *context, const struct index *index, struct abi_runtime_process *ret_how);
	/*
	 * Whether the function is called on a fiber's stack when that has ended: it is probed, too,
	 * with ABI_LATENCY_FIBER_END, and not listed. NULL = none is.
	 */
	bool (*ends_fiber)(const char *linkage);
	void *context;
};

int probed_files_create(
	const struct probed_files_options *options, struct probed_files **ret_files);
/*
 * Detaches everything. In the background also forgets what was measured: unless the owner is about
 * to end, the files must have been ended and detached (probed_files_is_busy()).
 */
void probed_files_destroy(struct probed_files *files);

/* P maps MAPPING. */
void probed_files_mapped(
	struct probed_files *files, const struct process *p, const struct mapping *mapping);
/*
 * A file that nobody needs to map: its index was requested, or is about to be. FD: an open
 * descriptor of it, which is taken. PROGRAM: patterns without BIN apply to it. Returns -E2BIG if
 * there are too many files, or -ENOMEM.
 */
int probed_files_add(struct probed_files *files, struct module *module, int fd, bool program);
/* An index of MODULE arrived; NULL: none is available. One without functions changes nothing. */
void probed_files_index(
	struct probed_files *files, const struct module *module, const struct index *index);
/* Detaches the files that were written to. Call it about once a second. */
void probed_files_check(struct probed_files *files);
/* Sets `used_ns` of the modules that are needed, so that they are not swept. */
void probed_files_keep(const struct probed_files *files, uint64_t now_ns);
/* MODULE is about to be freed, as memory is short: its functions are not measured any more. */
void probed_files_forget(struct probed_files *files, const struct module *module);
/* Ends all measuring; what is known of files and functions stays. */
void probed_files_detach(struct probed_files *files);

/* ---- in the background ----------------------------------------------------------------------- */

/* Goes on with what was begun. Waits for nothing. */
void probed_files_tend(struct probed_files *files);
/* Whether something is being attached or detached, or waits for that. */
bool probed_files_is_busy(const struct probed_files *files);
/* Ends all measuring at once, and begins to detach. What was measured can be read until destroyed.
 */
void probed_files_end(struct probed_files *files);

/* ---- what became of them -------------------------------------------------------------------- */

enum probed_file_state {
	PROBED_FILE_WAITING, /* for its index */
	PROBED_FILE_ATTACHING, /* in the background */
	PROBED_FILE_READY, /* functions were chosen, and attached unless this is a dry run */
	PROBED_FILE_NOT_OPENED,
	PROBED_FILE_NO_INDEX,
	PROBED_FILE_NOT_ATTACHED,
	PROBED_FILE_CHANGED, /* was written to, and so detached */
	PROBED_FILE_ENDED, /* before it was attached */
};

struct probed_file {
	const char *path;
	struct build_id build_id;
	bool program; /* patterns without BIN apply */
	enum probed_file_state state;
	int err; /* NOT_OPENED, NOT_ATTACHED */
	const char *step; /* NOT_ATTACHED: the one that failed; a static text */
	size_t probeable; /* functions that are named and can be probed, over the limit, too */
	size_t excluded, vendored; /* functions that are named and were left out */
	size_t sites; /* attached */
};
size_t probed_files_count(const struct probed_files *files);
struct probed_file probed_files_at(const struct probed_files *files, size_t number);
/* Files that wait for an index. */
size_t probed_files_waiting(const struct probed_files *files);
/* How many names in all files wanted pattern NUMBER has matched. */
size_t probed_files_matches(const struct probed_files *files, size_t pattern);

enum probed_function_state {
	PROBED_FUNCTION_MEASURED, /* or about to be: the file is being attached */
	PROBED_FUNCTION_REFUSED, /* `refusal` says why */
	PROBED_FUNCTION_UNKNOWN_FIBERS, /* it runs on fibers of a runtime version that is not known
					 */
	PROBED_FUNCTION_NOT_PROBEABLE, /* the kernel does not probe one of its instructions */
};

struct probed_function {
	size_t file; /* probed_files_at() */
	char *name; /* demangled */
	char *linkage;
	uint64_t address; /* ELF address of the entry */
	enum probed_function_state state;
	uint32_t probe; /* MEASURED, no dry run: its number in struct latency_cell */
	bool numbered; /* `probe` is its number, also if its sites could not be attached */
	uint32_t return_count;
	bool restarts; /* Go: where its prologue has called morestack is probed, too */
	uint32_t aliases; /* further names of its address that patterns name as well */
	bool jumps_out; /* struct chosen_function */
	enum function_refusal refusal; /* REFUSED */
	/* REFUSED as FUNCTION_INLINED: how often it was, and where first; else 0 and NULL. */
	uint32_t inlined_calls;
	char *inlined_into, *inlined_file;
	uint32_t inlined_line;
};
size_t probed_functions_count(const struct probed_files *files);
const struct probed_function *probed_functions_at(const struct probed_files *files, size_t number);
/* The function of a latency_cell; NULL = none. */
const struct probed_function *probed_functions_of_probe(
	const struct probed_files *files, uint32_t probe);
