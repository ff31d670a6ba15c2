/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Shared by config.c and config_options.c. */
#include "agent/settings/config.h"

/*
 * Sets ID to TEXT, unless a stronger source has set it. Returns -EINVAL if TEXT is no such value,
 * or -ENOMEM.
 */
int config_set(struct config *config, enum setting id, const char *text, enum config_source source);
/* TEXT for a message; "" for an overlong value, which may be anything, even a secret. */
const char *config_shown(const char *text);
/* Reads ARGV's options, and sets `rest`. As config_parse(). */
int config_options_read(struct config *config, int argc, char **argv);
