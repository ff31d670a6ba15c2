/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by the source files of `fathom record`. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/report/report.h"
#include "agent/sampler/sampler.h"
#include "agent/settings/sampling_options.h"
#include "agent/settings/config.h"
#include "base/buffer.h"

/* record_options.c: the command-line settings, resolved into sampler options. */
struct record_plan {
	struct sampler_options sampler;
	uint64_t duration_ns; /* 0 = until a signal or the end of the command */
	const char *output; /* path, or "-" */
	bool folded;
	bool others; /* -a, -p, -t or -G: CMD only sets the duration */
	char *cache_directory;
	struct sampling_options sampling; /* sampler.collect points into it */
};

/* Returns -EINVAL after printing the reason to stderr. */
int record_plan(const struct config *config, struct record_plan *ret_plan);
void record_plan_deinit(struct record_plan *plan);

/* record_command.c: the command to profile, held back until sampling has started. */
struct record_command {
	const char *name; /* argv[0], borrowed */
	pid_t pid; /* -1 = none */
	int go_fd; /* one byte written here starts it; -1 = started */
	int exec_fd; /* yields an errno if exec fails, otherwise EOF */
	int status; /* from waitpid(), valid once `ended` is set */
	bool ended;
};

int record_command_spawn(char **argv, struct record_command *ret_command);
/* Starts the command. Returns 0, or a negative errno if it cannot be executed. */
int record_command_go(struct record_command *command);
/* Call after SIGCHLD. Returns true if the command has ended. */
bool record_command_reap(struct record_command *command);
/* Releases COMMAND: if it was never started its process exits, otherwise it keeps running. */
void record_command_deinit(struct record_command *command);

/*
 * record_targets.c: watches the processes of -p and the threads of -t, to stop once all of them
 * have ended. Watches nothing where the kernel has no support for it.
 */
struct record_targets {
	struct loop *loop; /* borrowed; NULL = nothing is watched */
	int *fds; /* pidfds; -1 = ended */
	size_t count, left;
	void (*ended)(void *context);
	void *context;
};

/*
 * Calls ENDED from the loop when the last target ends. Returns -ENOMEM; 0 as well if nothing can be
 * watched.
 */
int record_targets_watch(struct record_targets *targets, const struct collect_options *who,
	struct loop *loop, void (*ended)(void *context), void *context);
bool record_targets_ended(const struct record_targets *targets);
void record_targets_deinit(struct record_targets *targets);

/* record_output.c */
/* Checks that PATH can be written, so that a long recording does not fail at its end. */
int record_output_check(const char *path);
int record_output_write(const char *path, const struct buffer *bytes);

struct record_result {
	const struct metrics *metrics;
	struct report_summary summary;
	const struct report_hot *hot;
	size_t hot_count;
	uint64_t cpu_ns; /* of fathom itself */
	uint64_t builds_cpu_ns; /* of the index builders */
	uint64_t bpf_ns, bpf_runs; /* 0 = not counted by the kernel */
	uint64_t elapsed_ns;
	const char *output; /* NULL = no file to suggest opening */
	bool off_cpu; /* waits were sampled as well */
	const struct record_command *command; /* the command, if it has ended; NULL = none */
	bool targets_ended; /* all targets have ended */
};
/* Prints the summary of a run to stderr. */
void record_print_result(const struct record_result *result);
