/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What failed at the start of sampling, and what to do about it, on stderr. */
#include "agent/sampler/sampler.h"

void explain_failure(const struct sampler_failure *failure, int error);
