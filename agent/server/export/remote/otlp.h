/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A payload as OTLP profiles (v1development; proto/otlp_profiles.proto). Labels of the series
 * become attributes of the resource by the names of OpenTelemetry's semantic conventions; those
 * that tell threads apart, and the labels of samples, become attributes of samples.
 */
#include "agent/server/export/payload.h"

/*
 * Appends an ExportProfilesServiceRequest, not compressed. One Profile for each sample type, that
 * of default_sample_type first. The same payload gives the same bytes, profile_id included.
 *
 * -EBADMSG: the pprof is none, or not as payload.h says; -E2BIG; -ENOMEM.
 */
int otlp_encode(const struct payload *payload, struct buffer *out);
