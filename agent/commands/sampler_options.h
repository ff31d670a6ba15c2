/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What every command that samples tells the sampler. */
#include "bpf/abi/sampler.h"

/* Our own pid and pid namespace, and that goroutine ids are wanted. */
void sampler_options_common(struct abi_sampler_config *filter);
