/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/perf_event.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/collect/admin.h"
#include "agent/sampler/collect/events.h"
#include "base/cleanup.h"

static int try_open(struct perf_event_attr *attr, int cpu)
{
	long fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int open_on_cpu(struct perf_event_attr *attr, int cpu)
{
	int fd = try_open(attr, cpu);

	if (fd == -EACCES && admin_take_up()) {
		fd = try_open(attr, cpu);
		admin_lay_down();
	}
	return fd;
}

/* Attributes of an event that reports mappings, with the clock of bpf_ktime_get_ns(). */
static struct perf_event_attr mappings_attr(uint64_t config, uint64_t sample_type)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = config,
		.sample_type = sample_type,
		.sample_id_all = 1,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.mmap = 1,
		.mmap2 = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
}

int perf_event_open_output(int cpu, uint32_t watermark_bytes, bool *build_ids)
{
	struct perf_event_attr attr = mappings_attr(PERF_COUNT_SW_BPF_OUTPUT, EVENTS_SAMPLE_TYPE);
	int fd;

	attr.sample_period = 1;
	attr.build_id = *build_ids;
	attr.comm = 1;
	attr.comm_exec = 1;
	attr.task = 1;
	attr.ksymbol = 1;
	attr.watermark = 1;
	attr.wakeup_watermark = watermark_bytes;
	fd = open_on_cpu(&attr, cpu);
	if (fd == -EINVAL && *build_ids) {
		attr.build_id = 0;
		fd = open_on_cpu(&attr, cpu);
		if (fd >= 0)
			*build_ids = false;
	}
	return fd;
}

int perf_event_open_files(int cpu)
{
	struct perf_event_attr attr = mappings_attr(PERF_COUNT_SW_DUMMY, EVENTS_FILE_SAMPLE_TYPE);

	return open_on_cpu(&attr, cpu);
}

int perf_event_share_ring(int fd, int output_fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, output_fd) < 0 ? -errno : 0;
}

int perf_event_open_uprobe(int pmu, const char *path, uint64_t file_off)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)pmu,
		.size = sizeof(attr),
		.uprobe_path = (uintptr_t)path,
		.probe_offset = file_off,
	};

	/* Any CPU: the kernel runs the program wherever the code is hit. */
	return open_on_cpu(&attr, MAX(sched_getcpu(), 0));
}

int perf_event_open_kprobe(int pmu, uint64_t kaddr, bool at_return)
{
	struct perf_event_attr attr = {
		.type = (uint32_t)pmu,
		.size = sizeof(attr),
		.config = at_return, /* bit 0 (/sys/bus/event_source/devices/kprobe/format) */
		.kprobe_addr = kaddr,
	};

	return open_on_cpu(&attr, MAX(sched_getcpu(), 0));
}

int perf_event_open_sampling(int cpu, const struct collect_options *options)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED,
		.disabled = 1,
		.exclude_idle = 1,
	};
	int fd;

	if (options->event == COLLECT_CYCLES) {
		attr.type = PERF_TYPE_HARDWARE;
		attr.config = PERF_COUNT_HW_CPU_CYCLES;
		attr.exclude_idle = 0; /* few PMUs support it; the program skips pid 0 */
	}
	if (options->frequency_hz) {
		attr.freq = 1;
		attr.sample_freq = options->frequency_hz;
	} else {
		attr.sample_period = options->period;
	}
	fd = open_on_cpu(&attr, cpu);
	/* The errors for an event that no PMU provides, or that cannot interrupt. */
	if (options->event == COLLECT_CYCLES && (fd == -ENODEV || fd == -EOPNOTSUPP))
		return -ENOENT;
	return fd;
}

int perf_event_set_program(int fd, int program_fd)
{
	return ioctl(fd, PERF_EVENT_IOC_SET_BPF, program_fd) < 0 ? -errno : 0;
}

int perf_event_enable(int fd, bool on)
{
	return ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

int perf_event_set_frequency(int fd, enum collect_event event, uint64_t hz)
{
	uint64_t value = event == COLLECT_CPU_CLOCK ? UINT64_C(1000000000) / hz : hz;

	return ioctl(fd, PERF_EVENT_IOC_PERIOD, &value) < 0 ? -errno : 0;
}

int perf_event_enabled_ns(int fd, uint64_t *ret_ns)
{
	uint64_t values[2]; /* count, time enabled */

	if (read(fd, values, sizeof(values)) != sizeof(values))
		return -ENOENT;
	*ret_ns = values[1];
	return 0;
}
