/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options of the sampling commands for the sampler: frequency, processes, stacks. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/settings/config.h"
#include "bpf/abi/sampler.h"

enum { SAMPLER_MAX_HZ = 10000 };

struct sampling_options {
	struct collect_options collect; /* cpu-clock; points to the fields below */
	bool targeted; /* specific processes were named: wait longer for what they need */
	uint32_t *tgids, *tids, *cpu_numbers;
	int *cpus;
};

/*
 * Reads -F -p -t -G --comm --goid -C -U -K of COMMAND (e.g. "record"). Returns -EINVAL or -ESRCH
 * with a message on stderr.
 */
int sampling_options(
	const struct config *config, const char *command, struct sampling_options *ret_options);
/* The same for a command that samples no CPU: only -p. */
int sampling_options_processes(
	const struct config *config, const char *command, struct sampling_options *ret_options);
/* What is wrong with --test-without or --memory-limit, for a message; NULL if nothing. */
const char *sampling_options_problem(const struct config *config, enum setting *ret_setting);
/* --test-without, already checked, as enum mechanism values. */
uint32_t sampling_options_without(const struct config *config);
void sampling_options_deinit(struct sampling_options *options);

/* Sets what every sampler needs: our own pid and pid namespace, and goroutine ids. */
void sampling_options_common(struct abi_sampler_config *filter);
