/* SPDX-License-Identifier: Apache-2.0 */
/* Limits by the size of the files, for both sides of the sandbox. */
#include "base/cleanup.h"
#include "symbolizer/sandbox/sandbox.h"

enum {
	MEMORY_PER_BYTE = 16, /* big programs take 4, compressed debug information 12 */
	CPU_BASE_SECONDS = 10, /* for slow machines: a small file takes a tenth of a second */
	BYTES_PER_CPU_SECOND = 1 << 20, /* at least; usual machines read 30 MB */
};
static const uint64_t MEMORY_BASE_BYTES = UINT64_C(256) << 20;

struct sandbox_limits sandbox_limits_for(const struct sandbox_limits *limits, uint64_t file_bytes)
{
	struct sandbox_limits result = *limits;
	uint64_t bytes = MIN(file_bytes, UINT64_MAX / MEMORY_PER_BYTE);

	result.memory_bytes = MIN(limits->memory_bytes,
		(unsigned long)MAX(MEMORY_BASE_BYTES, bytes * MEMORY_PER_BYTE));
	result.cpu_seconds = (unsigned int)MIN(
		(uint64_t)limits->cpu_seconds, CPU_BASE_SECONDS + bytes / BYTES_PER_CPU_SECOND);
	return result;
}
