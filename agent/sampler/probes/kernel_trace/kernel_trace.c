/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_trace/kernel_trace.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "agent/sampler/collect/collect.h"

int kernel_trace_begin(
	const struct collect *collect, const uint64_t trampolines[ABI_TRACE_TRAMPOLINES])
{
	struct bpf_object *object = collect_probe_object(collect, kernel_trace_probe_name());
	const struct bpf_map *data =
		object ? bpf_object__find_map_by_name(object, ".data.kernel_trace") : NULL;
	struct abi_kernel_trace value = { .on = 1 };
	uint32_t zero = 0;

	if (!data || bpf_map__value_size(data) != sizeof(value))
		return -EBADMSG;
	memcpy(value.trampolines, trampolines, sizeof(value.trampolines));
	return bpf_map_update_elem(bpf_map__fd(data), &zero, &value, BPF_ANY) ? -errno : 0;
}
