/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Applies --log-level and --log-format to base/log.h. Returns -EINVAL with a message on stderr. */
#include "agent/settings/config.h"

/* What is wrong, and with which setting; NULL if nothing. */
const char *log_options_problem(const struct config *config, enum setting *ret_setting);
int log_options(const struct config *config);
