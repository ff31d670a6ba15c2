/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the commands that sample tell the sampler: how often, whom, which stacks. */
#include <stdbool.h>
#include <stdint.h>

#include "agent/sampler/collect/collect.h"
#include "agent/settings/config.h"
#include "bpf/abi/sampler.h"

enum { SAMPLER_MAX_HZ = 10000 };

struct sampling_options {
	struct collect_options collect; /* cpu-clock; points to what follows */
	bool targeted; /* some processes were named: wait longer for what they need */
	uint32_t *tgids, *tids, *cpu_numbers;
	int *cpus;
};

/*
 * From -F -p -t -G --comm --goid -C -U -K of COMMAND ("record"). -EINVAL and -ESRCH are said on
 * stderr.
 */
int sampling_options(
	const struct config *config, const char *command, struct sampling_options *ret_options);
/* What is wrong with --test-without or --memory-limit, for a message; NULL = nothing. */
const char *sampling_options_problem(const struct config *config, enum setting *ret_setting);
/* --test-without, with which nothing is wrong: enum mechanism values. */
uint32_t sampling_options_without(const struct config *config);
void sampling_options_deinit(struct sampling_options *options);

/* For every sampler: our own pid and pid namespace, and that goroutine ids are wanted. */
void sampling_options_common(struct abi_sampler_config *filter);
