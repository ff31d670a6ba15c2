/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Encodes a payload as OTLP profiles (v1development; proto/otlp_profiles.proto). Labels of the
 * series become resource attributes, named by OpenTelemetry's semantic conventions; labels that
 * distinguish threads, and the labels of samples, become attributes of samples.
 */
#include "agent/server/export/payload.h"

/*
 * Appends an ExportProfilesServiceRequest, not compressed. One Profile for each sample type, that
 * of default_sample_type first. Deterministic, profile_id included.
 *
 * -EBADMSG: not a pprof, or not as payload.h demands; -E2BIG; -ENOMEM.
 */
int otlp_encode(const struct payload *payload, struct buffer *out);
