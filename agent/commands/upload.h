/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The parts of `fathom upload`: splitting foreign pprof files into payloads. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/server/export/payload.h"
#include "pprof/pprof_read.h"

/* ---- upload_payloads.c --------------------------------------------------------------------- */
struct upload_series {
	const struct labels *external;
	const char *service; /* used if neither labels nor samples name one */
	int64_t time_ns; /* used if the profile has none */
	bool sample_labels; /* keep sample labels: Pyroscope would make series of them */
};

/* A negative return value stops the iteration and is returned. */
typedef int upload_payload_fn(void *context, const struct payload *payload);

/*
 * Passes PROFILE to EACH as payloads for agent/server/export: one series for each value of the
 * string label `comm` (if the external labels have no service_name), split into pieces that servers
 * accept in one request.
 */
int upload_payloads(const struct pprof_read *profile, const struct upload_series *series,
	upload_payload_fn *each, void *context);
