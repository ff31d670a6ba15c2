/* SPDX-License-Identifier: Apache-2.0 */
/* Probes share the maps of bpf/shared.bpf.h, each once in the kernel; other maps are their own. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/collect/probe_set.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"

static struct probe_set *load(double off_cpu_share)
{
	const struct collect_options options = {
		.probes = probes_all,
		.frequency_hz = 99,
		.user = true,
		.kernel = true,
		.off_cpu_share = off_cpu_share,
		.filter.read_fibers = 1,
	};
	const struct ring_sizes sizes =
		ring_sizes_for(&options, (int)sysconf(_SC_NPROCESSORS_CONF) - 1);
	struct probe_set *set = NULL;
	const char *step = "";

	if (probe_set_load(&options, &sizes, &set, &step))
		fail_msg("cannot %s", step);
	return set;
}

/* The kernel's id of the map; 0 = OBJECT has no map of this name. */
static uint32_t id_of(const struct bpf_object *object, const char *name)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	struct bpf_map_info info = { 0 };
	uint32_t size = sizeof(info);

	if (!map || bpf_map__fd(map) < 0)
		return 0;
	assert_int_equal(bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &size), 0);
	return info.id;
}

static void probes_share_what_is_common(void **state)
{
	static const char *const shared[] = { ".data.shared", "tgids", "tids", "runtime_processes",
		"output", "seen", "unwind_pool", "unwind_slots", "unwind_ranges" };
	struct probe_set *set = load(1);
	struct bpf_object *cpu = probe_set_object(set, "cpu");
	struct bpf_object *off_cpu = probe_set_object(set, "off_cpu");

	(void)state;
	assert_non_null(cpu);
	assert_non_null(off_cpu);
	if (!shared_maps_tables(probe_set_maps(set)))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(shared); i++) {
		assert_true(shared_maps_has(probe_set_maps(set), shared[i]));
		assert_int_not_equal(id_of(cpu, shared[i]), 0);
		assert_int_equal(id_of(cpu, shared[i]), id_of(off_cpu, shared[i]));
	}
	probe_set_unload(set);
}

/* A sampling event may interrupt the program of a context switch. */
static void each_probe_has_scratch_memory_of_its_own(void **state)
{
	static const char *const own[] = { "scratches", "cpu_counters", "unwind_cache_processes",
		"unwind_cache_rules", "unfinished_records", ".rodata.config" };
	struct probe_set *set = load(1);
	struct bpf_object *cpu = probe_set_object(set, "cpu");
	struct bpf_object *off_cpu = probe_set_object(set, "off_cpu");

	(void)state;
	if (!shared_maps_tables(probe_set_maps(set)))
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		assert_false(shared_maps_has(probe_set_maps(set), own[i]));
		assert_int_not_equal(id_of(cpu, own[i]), 0);
		assert_int_not_equal(id_of(off_cpu, own[i]), 0);
		assert_int_not_equal(id_of(cpu, own[i]), id_of(off_cpu, own[i]));
	}
	probe_set_unload(set);
}

static void a_probe_that_is_not_wanted_is_not_loaded(void **state)
{
	struct probe_set *set = load(0);

	(void)state;
	assert_non_null(probe_set_object(set, "cpu"));
	assert_null(probe_set_object(set, "off_cpu"));
	assert_true(probe_set_event_program(set) >= 0);
	probe_set_unload(set);
}

/* Memory of all maps that this process holds, each counted once; the set is not asked. */
static uint64_t memory_held(void)
{
	uint64_t seen[256], bytes = 0;
	size_t count = 0;

	for (int fd = 0; fd < 1024; fd++) {
		char path[64], line[128];
		unsigned long long id = 0, memory = 0;
		autofclose FILE *info = NULL;
		size_t i = 0;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		info = fopen(path, "re");
		while (info && fgets(line, sizeof(line), info)) {
			sscanf(line, "map_id: %llu", &id);
			sscanf(line, "memlock: %llu", &memory);
		}
		while (i < count && seen[i] != id)
			i++;
		if (!id || i < count)
			continue;
		assert_true(count < ARRAY_SIZE(seen));
		seen[count++] = id;
		bytes += memory;
	}
	return bytes;
}

/* A second pool would add 4 MiB. */
static void a_second_probe_takes_little_memory(void **state)
{
	uint64_t memory[2];

	(void)state;
	for (int both = 0; both <= 1; both++) {
		struct probe_set *set = load(both);

		memory[both] = memory_held();
		assert_int_equal(memory[both], probe_set_memory(set));
		probe_set_unload(set);
	}
	print_message("%llu KiB of maps, %llu with both probes\n",
		(unsigned long long)memory[0] / 1024, (unsigned long long)memory[1] / 1024);
	assert_true(memory[1] > memory[0]);
	assert_true(memory[1] - memory[0] < memory[0] / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_share_what_is_common),
		cmocka_unit_test(each_probe_has_scratch_memory_of_its_own),
		cmocka_unit_test(a_probe_that_is_not_wanted_is_not_loaded),
		cmocka_unit_test(a_second_probe_takes_little_memory),
	};

	if (geteuid() != 0) {
		puts("needs root: loading BPF programs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
