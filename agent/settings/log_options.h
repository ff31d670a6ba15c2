/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* --log-level and --log-format into base/log.h. -EINVAL: said on stderr. */
#include "agent/settings/config.h"

/* What is wrong with them, and with which; NULL = nothing. */
const char *log_options_problem(const struct config *config, enum setting *ret_setting);
int log_options(const struct config *config);
