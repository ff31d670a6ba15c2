/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of `fathom record` share. */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "agent/sampler/sampler.h"
#include "agent/settings/sampling_options.h"
#include "agent/settings/config.h"
#include "base/buffer.h"

/* record_options.c: the settings as the agent takes them. */
struct record_plan {
	struct sampler_options sampler;
	uint64_t duration_ns; /* 0 = until a signal or the command's end */
	const char *output; /* path, or "-" */
	bool folded;
	bool others; /* -a, -p, -t or -G: a command that is run only says how long */
	char *cache_directory;
	struct sampling_options sampling; /* sampler.collect points into it */
};

/* -EINVAL: said on stderr. */
int record_plan(const struct config *config, struct record_plan *ret_plan);
void record_plan_deinit(struct record_plan *plan);

/* record_command.c: a command that is profiled from its first instruction to its end. */
struct record_command {
	const char *name; /* argv[0], borrowed */
	pid_t pid; /* -1 = none */
	int go_fd; /* a byte written here lets it run; -1 = it runs */
	int exec_fd; /* gives an errno when it could not be executed, else ends */
	int status; /* as waitpid() gives it, once `ended` */
	bool ended;
};

int record_command_spawn(char **argv, struct record_command *ret_command);
/* Lets it run; 0, or why it could not be executed. */
int record_command_go(struct record_command *command);
/* After SIGCHLD: true when it has ended. */
bool record_command_reap(struct record_command *command);
/* Lets go of it: one that never got the word ends, one that runs goes on. */
void record_command_deinit(struct record_command *command);

/*
 * record_targets.c: the processes of -p and threads of -t; when all of them have ended there is
 * nothing more to sample. Where the kernel cannot tell, nobody is watched.
 */
struct record_targets {
	struct loop *loop; /* borrowed; NULL = nobody is watched */
	int *fds; /* pidfds; -1 = has ended */
	size_t count, left;
	void (*ended)(void *context);
	void *context;
};

/* Calls ENDED, from the loop, when the last of them ends. */
int record_targets_watch(struct record_targets *targets, const struct collect_options *who,
	struct loop *loop, void (*ended)(void *context), void *context);
bool record_targets_ended(const struct record_targets *targets);
void record_targets_deinit(struct record_targets *targets);

/* record_output.c */
/* Fails before a long recording, not after it. */
int record_output_check(const char *path);
int record_output_write(const char *path, const struct buffer *bytes);

struct record_result {
	const struct metrics *metrics;
	struct report_summary summary;
	const struct report_hot *hot;
	size_t hot_count;
	uint64_t cpu_ns; /* our own */
	uint64_t builds_cpu_ns; /* the indexers' */
	uint64_t bpf_ns, bpf_runs; /* 0 = the kernel does not count it */
	uint64_t elapsed_ns;
	const char *output; /* NULL = nothing to open afterwards */
	bool off_cpu; /* waits were sampled, too */
	const struct record_command *command; /* that has ended; NULL = none */
	bool targets_ended; /* all that were asked for */
};
/* The end of a run, for people, on stderr. */
void record_print_result(const struct record_result *result);
