/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Explains on stderr why sampling could not start, and what to do about it. */
#include "agent/sampler/sampler.h"

void explain_failure(const struct sampler_failure *failure, int error);
