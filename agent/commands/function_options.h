/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Options that name functions: -u, -k and --exclude of the commands that probe them. */
#include "agent/sampler/functions/patterns.h"
#include "agent/settings/config.h"

/*
 * Adds the values of setting ID to PATTERNS; COMMAND and OPTION are for messages on stderr. Returns
 * -EINVAL after one, or -ENOMEM.
 */
int function_options_patterns(const struct config *config, enum setting id, const char *command,
	const char *option, struct function_patterns *patterns);
/* As above, those of -k, which name functions of the kernel. */
int function_options_kernel(
	const struct config *config, const char *command, struct function_patterns *patterns);
/* Adds TEXT likewise. */
int function_options_add(const char *command, const char *option, const char *text,
	struct function_patterns *patterns);
/* Says what is wrong with PATTERN, and returns -EINVAL. */
int function_options_refuse(
	const char *command, const char *option, const char *pattern, const char *problem);
