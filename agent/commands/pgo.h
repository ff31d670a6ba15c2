/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The parts of `fathom pgo`: which profiles are read, whose samples are taken from them, and the
 * merged profile, in the form that `go build -pgo` uses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/commands/upload.h"
#include "base/buffer.h"
#include "base/intern.h"

/* ---- pgo_files.c --------------------------------------------------------------------------- */
struct pgo_files {
	char **paths; /* oldest first */
	size_t count, capacity;
};

/*
 * Lists the agent's stored profiles in DIRECTORY whose window overlaps [FROM_NS, TO_NS). Files and
 * directories with other names, and what is not a regular file, are left out. Nothing is locked: a
 * file may be gone when it is read. Returns -E2BIG for more than eight million files.
 */
int pgo_files_of_store(
	const char *directory, int64_t from_ns, int64_t to_ns, struct pgo_files *ret_files);
void pgo_files_deinit(struct pgo_files *files);

/* ---- pgo_samples.c ------------------------------------------------------------------------- */
/* Whose samples; comm and program NULL: everybody's. */
struct pgo_selection {
	const char *comm; /* value of the label `comm`, or NULL */
	/* Glob on a mapped file: on its path if there is a slash in the glob, else on its name. */
	const char *program;
	bool exact; /* PROGRAM is the path itself, no glob */
	/* Since 1970; both 0 = always. A stored file of ten minutes says the minute of each sample.
	 */
	int64_t from_ns, to_ns;
};

/*
 * Reads foreign profiles sample by sample. A profile qualifies if it has samples/count,
 * cpu/nanoseconds or both, and no negative value.
 */
struct pgo_samples {
	const struct pprof_read *profile;
	const struct pgo_selection *selection;
	size_t count_type, time_type; /* indexes of values; SIZE_MAX = the profile has none */
	bool *mapped; /* by index of the mapping: its file matches selection->program */
};

/* Returns -EBADMSG if the profile does not qualify, with a constant string in *RET_WHY. */
int pgo_samples_init(struct pgo_samples *s, const struct pprof_read *profile,
	const struct pgo_selection *selection, const char **ret_why);
void pgo_samples_deinit(struct pgo_samples *s);
/* Whether sample NUMBER has CPU time, and is of the selected program. */
bool pgo_samples_wanted(const struct pgo_samples *s, size_t number);
/* Its number of samples and CPU time in ns; 0 where the profile lacks the type. */
void pgo_samples_values(
	const struct pgo_samples *s, size_t number, int64_t *ret_count, int64_t *ret_time_ns);
/* The mapping of its innermost frame of Go source; NULL if it has no such frame. */
const Perftools__Profiles__Mapping *pgo_samples_go_mapping(
	const struct pgo_samples *s, size_t number);

/* ---- pgo_programs.c ------------------------------------------------------------------------ */
/* How much of the samples each Go program had. */
struct pgo_programs {
	struct intern names; /* its file's path, and ` (build ID …)` where that is counted */
	uint64_t *weights; /* by number in `names`: CPU time, or samples if there is no time */
	size_t capacity;
	uint64_t unlisted; /* weight of those beyond the limit of names */
};

int pgo_programs_init(struct pgo_programs *p);
void pgo_programs_deinit(struct pgo_programs *p);
int pgo_programs_add(struct pgo_programs *p, const char *name, uint64_t weight);
/* Stores the numbers of the heaviest MAX programs, heaviest first; returns how many. */
size_t pgo_programs_heaviest(const struct pgo_programs *p, uint32_t *ret_numbers, size_t max);
/* Adds the wanted samples of a profile; BUILDS: each build of a program for itself. */
int pgo_programs_survey(struct pgo_programs *p, const struct pgo_samples *samples, bool builds);

/* ---- pgo_merge.c --------------------------------------------------------------------------- */
struct pgo_merge;

struct pgo_merge_facts {
	uint64_t profiles; /* that had wanted samples */
	uint64_t samples, time_ns; /* in the merge; UINT64_MAX if they are more */
	uint64_t kernel_only; /* samples left out: without a frame of a program */
	uint64_t cut; /* samples whose outermost frames were cut off */
	int64_t begin_ns, end_ns; /* since 1970: begin of the first profile, end of the last */
	bool start_lines; /* of any function: without them `go build` accepts no profile */
};

/*
 * Merges the wanted samples of many profiles. What a build needs is kept: functions by their
 * symbols' names, with file and first line, and the line of each frame. What differs between
 * processes and builds is left out: labels, and of named frames the addresses. So are
 * frames of the kernel (and of the vDSO) at the inner end of a stack: of a stack, the Go compiler
 * counts only the two innermost locations.
 */
int pgo_merge_create(struct pgo_merge **ret_merge);
void pgo_merge_destroy(struct pgo_merge *m);
/*
 * -EBADMSG, with a constant string in *RET_WHY: the profile has other types than those before, and
 * nothing of it was added. After another error (-E2BIG: the merge has reached its limit of memory,
 * -ENOMEM) the merge is incomplete and may only be destroyed.
 */
int pgo_merge_add(struct pgo_merge *m, const struct pgo_samples *samples, const char **ret_why);
struct pgo_merge_facts pgo_merge_facts(const struct pgo_merge *m);
/* One of the profile's comments, in order. */
int pgo_merge_comment(struct pgo_merge *m, const char *text);
/* Appends the profile, compressed. The same calls give the same bytes. */
int pgo_merge_encode(struct pgo_merge *m, struct buffer *out);
