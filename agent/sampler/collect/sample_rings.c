/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/sample_rings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "bpf/abi/sample_ring.h"

_Static_assert(offsetof(struct perf_event_mmap_page, data_head) == ABI_RING_HEAD &&
		       offsetof(struct perf_event_mmap_page, data_tail) == ABI_RING_TAIL &&
		       sizeof(struct perf_event_mmap_page) <= ABI_RING_DATA &&
		       (int)PERF_RECORD_SAMPLE == (int)ABI_RING_RECORD,
	"as perf has it");

int sample_rings_init(struct sample_rings *s, int fd, uint64_t bytes, size_t count)
{
	struct ring *rings = calloc(count, sizeof(*rings));

	if (!rings)
		return -ENOMEM;
	*s = (struct sample_rings){ .fd = fd, .bytes = bytes, .rings = rings, .count = count };
	return 0;
}

void sample_rings_deinit(struct sample_rings *s)
{
	for (size_t i = 0; i < s->count; i++)
		ring_unmap(&s->rings[i]);
	free(s->rings);
	*s = (struct sample_rings){ 0 };
}

int sample_rings_open(struct sample_rings *s, int cpu)
{
	uint64_t element = ABI_RING_DATA + s->bytes + ABI_RING_BEHIND_BYTES;
	uint8_t *memory;

	if (cpu < 0 || (size_t)cpu >= s->count || s->rings[cpu].control)
		return 0;
	memory = mmap(NULL, element, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd,
		(off_t)(element * (uint64_t)cpu));
	if (memory == MAP_FAILED)
		return -errno;
	ring_over(&s->rings[cpu], (struct perf_event_mmap_page *)memory, memory + ABI_RING_DATA,
		s->bytes);
	s->rings[cpu].behind_bytes = ABI_RING_BEHIND_BYTES;
	return 0;
}

size_t sample_rings_list(struct sample_rings *s, struct ring **to)
{
	size_t listed = 0;

	for (size_t i = 0; i < s->count; i++)
		if (s->rings[i].control)
			to[listed++] = &s->rings[i];
	return listed;
}
