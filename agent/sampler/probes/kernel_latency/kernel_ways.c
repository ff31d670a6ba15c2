/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/kernel_ways.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/collect/admin.h"
#include "agent/sampler/collect/attach_probe.h"
#include "agent/sampler/collect/mechanisms.h"
#include "base/cleanup.h"
#include "base/io.h"

static const char EVENT_TYPE[] = "/sys/bus/event_source/devices/kprobe/type";

const char *kernel_way_name(enum kernel_way way)
{
	static const char *const names[KERNEL_WAYS] = {
		[KERNEL_WAY_TRAMPOLINES] = "fentry/fexit",
		[KERNEL_WAY_SESSION] = "kprobe.multi session",
		[KERNEL_WAY_MULTI] = "kprobe.multi",
		[KERNEL_WAY_EVENTS] = "kprobes",
	};

	return way < KERNEL_WAYS ? names[way] : "";
}

static void kernel_ways_free_btf(struct btf **btf)
{
	btf__free(*btf);
}

/*
 * Whether the kernel keeps programs at fentry from being entered again by what they call (struct
 * bpf_prog.active, Linux 5.12). Without that, one at a function of the BPF helpers would call
 * itself until the stack is used up.
 */
static int kernel_way_find_guard(void)
{
	autocall(kernel_ways_free_btf) struct btf *btf = btf__load_vmlinux_btf();
	int id = btf ? btf__find_by_name_kind(btf, "bpf_prog", BTF_KIND_STRUCT) : -ENOENT;
	const struct btf_type *type = id < 0 ? NULL : btf__type_by_id(btf, (uint32_t)id);

	for (uint32_t i = 0; type && i < btf_vlen(type); i++)
		if (!strcmp(btf__name_by_offset(btf, btf_members(type)[i].name_off), "active"))
			return 0;
	return -EOPNOTSUPP;
}

int kernel_way_event_type(void)
{
	char line[32], *end;
	long type;

	if (io_read_line(AT_FDCWD, EVENT_TYPE, line, sizeof(line)) < 0)
		return -EOPNOTSUPP;
	type = strtol(line, &end, 10);
	return end == line ? -EOPNOTSUPP : (int)type;
}

static int kernel_way_try_trampolines(void)
{
	int err = attach_probe_fentry();

	return err ? err : kernel_way_find_guard();
}

/* An attach type that the kernel does not know is -EINVAL. */
static int kernel_way_try_multi(bool session)
{
	int err = attach_probe_kprobe_multi(session);

	return err == -EINVAL ? -EOPNOTSUPP : err;
}

int kernel_way_try(enum kernel_way way, uint32_t without)
{
	static const uint32_t switches[KERNEL_WAYS] = {
		[KERNEL_WAY_TRAMPOLINES] = MECHANISM_FENTRY,
		[KERNEL_WAY_SESSION] = MECHANISM_KPROBE_SESSION,
		[KERNEL_WAY_MULTI] = MECHANISM_KPROBE_MULTI,
	};
	int type;

	if (switches[way] & without)
		return -EOPNOTSUPP;
	switch (way) {
	case KERNEL_WAY_TRAMPOLINES:
		return kernel_way_try_trampolines();
	case KERNEL_WAY_SESSION:
		return kernel_way_try_multi(true);
	case KERNEL_WAY_MULTI:
		return kernel_way_try_multi(false);
	default:
		type = kernel_way_event_type();
		return type < 0 ? type : 0;
	}
}

/* `none [integrity] confidentiality`, from where securityfs is mounted, or else from our own. */
static ssize_t kernel_ways_read_lockdown(char *line, size_t size)
{
	ssize_t length = io_read_line(AT_FDCWD, "/sys/kernel/security/lockdown", line, size);
	autoclose int fd = -1;

	if (length > 0)
		return length;
	fd = admin_mount_open("securityfs", "lockdown");
	length = fd < 0 ? fd : io_read_at(fd, 0, line, size - 1);
	if (length >= 0)
		line[length] = 0;
	return length;
}

bool kernel_ways_lockdown(char *mode, size_t size)
{
	char line[128], *begin, *end;

	if (kernel_ways_read_lockdown(line, sizeof(line)) <= 0)
		return false;
	begin = strchr(line, '[');
	end = begin ? strchr(begin, ']') : NULL;
	if (!end || !strncmp(begin, "[none]", 6))
		return false;
	snprintf(mode, size, "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

static const char *kernel_way_problem(enum kernel_way way, int err)
{
	static const char *const missing[KERNEL_WAYS] = {
		[KERNEL_WAY_TRAMPOLINES] = "not in this kernel (CONFIG_DEBUG_INFO_BTF and "
					   "CONFIG_FUNCTION_TRACER, Linux 5.12; arm64: 6.4)",
		[KERNEL_WAY_SESSION] = "not in this kernel (CONFIG_FPROBE, Linux 6.10)",
		[KERNEL_WAY_MULTI] = "not in this kernel (CONFIG_FPROBE, Linux 5.18)",
		[KERNEL_WAY_EVENTS] = "not in this kernel (CONFIG_KPROBE_EVENTS)",
	};

	if (!err)
		return "works";
	if (err == -EPERM || err == -EACCES)
		return "not permitted (by lockdown, or CAP_BPF and CAP_PERFMON are missing)";
	return err == -EOPNOTSUPP ? missing[way] : strerror(-err);
}

void kernel_ways_explain(uint32_t without, char text[KERNEL_WAYS_TEXT_BYTES])
{
	char mode[32];
	size_t used = 0;

	text[0] = 0;
	if (kernel_ways_lockdown(mode, sizeof(mode)))
		used += (size_t)snprintf(
			text, KERNEL_WAYS_TEXT_BYTES, "the kernel is locked down (%s); ", mode);
	for (enum kernel_way way = 0; way < KERNEL_WAYS && used < KERNEL_WAYS_TEXT_BYTES; way++)
		used += (size_t)snprintf(text + used, KERNEL_WAYS_TEXT_BYTES - used, "%s%s: %s",
			way ? "; " : "", kernel_way_name(way),
			kernel_way_problem(way, kernel_way_try(way, without)));
}
