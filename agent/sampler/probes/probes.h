/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The table of all probes. A new one is a folder and a row here. */
#include "agent/sampler/collect/probe.h"

/* Ends with NULL. Only the first one attached to sampling events is used. */
extern const struct probe *const probes_all[];

extern const struct probe probe_cpu; /* probes/cpu */
extern const struct probe probe_off_cpu; /* probes/off_cpu */
