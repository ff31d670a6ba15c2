/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/mapping_probe.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "bpf/abi/sample.h"
#include "bpf/abi/sampler.h"
#include "bpf/unwind/mapping_probe.skel.h"

/* Below the lowest address that a process may map. */
static const uint64_t NOTHING_MAPPED = 0x10;

uint32_t mapping_probe_page_shift(void)
{
	return (uint32_t)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
}

bool mapping_probe_own(uint64_t address, struct abi_mapping *ret_mapping)
{
	autofclose FILE *maps = fopen("/proc/self/maps", "re");
	autofree char *line = NULL;
	unsigned long start, end, file_off;
	size_t room = 0;
	char access[5];

	while (maps && getline(&line, &room, maps) > 0) {
		if (sscanf(line, "%lx-%lx %4s %lx", &start, &end, access, &file_off) != 4 ||
			address < start || address >= end)
			continue;
		*ret_mapping = (struct abi_mapping){
			.start = start,
			.end = end,
			.file_off = file_off,
			.executable = access[2] == 'x',
		};
		return true;
	}
	return false;
}

static bool mapping_probe_is_same(
	const struct abi_mapping *reported, const struct abi_mapping *own, bool vdso)
{
	bool file = reported->file.inode != ABI_FILE_NONE && reported->file.inode != ABI_FILE_VDSO;

	return reported->start == own->start && reported->end == own->end &&
	       reported->executable == own->executable &&
	       (vdso ? reported->file.inode == ABI_FILE_VDSO
		     : file && reported->file_off == own->file_off);
}

static int ask(struct mapping_probe_bpf *skeleton, uint64_t address)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	skeleton->bss->probe.address = address;
	if (bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.probe_mapping), &options))
		return -errno;
	return 0;
}

/* Whether the VMA lookup of our own code at ADDRESS agrees with /proc. */
static bool tells(struct mapping_probe_bpf *skeleton, uint64_t address, bool vdso)
{
	const struct abi_mapping_probe *probe = &skeleton->bss->probe;
	struct abi_mapping own;

	return mapping_probe_own(address, &own) && !ask(skeleton, address) &&
	       probe->found == ABI_PROBE_MAPPING &&
	       mapping_probe_is_same(&probe->mapping, &own, vdso);
}

static bool tells_all(struct mapping_probe_bpf *skeleton)
{
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);

	return tells(skeleton, (uintptr_t)mapping_probe, false) &&
	       tells(skeleton, (uintptr_t)bpf_prog_test_run_opts, false) &&
	       (!vdso || tells(skeleton, vdso, true)) && !ask(skeleton, NOTHING_MAPPED) &&
	       skeleton->bss->probe.found == ABI_PROBE_NOTHING;
}

int mapping_probe(struct kernel_types *types)
{
	LIBBPF_OPTS(bpf_object_open_opts, options, .btf_custom_path = kernel_types_path(types));
	struct mapping_probe_bpf *skeleton = mapping_probe_bpf__open_opts(&options);
	bool works;
	int err;

	if (!skeleton)
		return -ENOMEM;
	err = kernel_types_reduce(types, bpf_object__btf(skeleton->obj));
	if (err) {
		mapping_probe_bpf__destroy(skeleton);
		return err;
	}
	skeleton->rodata_config->config.page_shift = mapping_probe_page_shift();
	works = !mapping_probe_bpf__load(skeleton) && tells_all(skeleton);
	mapping_probe_bpf__destroy(skeleton);
	return works ? 0 : -EOPNOTSUPP;
}
