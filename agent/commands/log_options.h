/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* --log-level and --log-format into base/log.h. -EINVAL: said on stderr. */
#include "agent/config.h"

int log_options(const struct config *config);
