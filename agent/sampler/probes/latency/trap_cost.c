/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/latency/trap_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/sampler/collect/mapping_probe.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "bpf/abi/sample.h"

enum {
	BATCHES = 20, /* the fastest one counts: the others were interrupted */
	BATCH_CALLS = 25,
};

/* Its first instruction is an ordinary one, which the kernel steps over as it does over a RET. */
__attribute__((noinline)) static void trap_cost_target(volatile uint64_t *calls)
{
	*calls += 1;
}

static uint64_t trap_cost_batch(void)
{
	uint64_t calls = 0, began_ns = clock_monotonic_ns();

	while (calls < BATCH_CALLS)
		trap_cost_target(&calls);
	return clock_monotonic_ns() - began_ns;
}

static uint64_t trap_cost_fastest(void)
{
	uint64_t fastest_ns = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++)
		fastest_ns = MIN(fastest_ns, trap_cost_batch());
	return fastest_ns;
}

/* Closes all descriptors but two: what others wait for must not stay open here. */
static void trap_cost_keep(int a, int b)
{
	unsigned int low = (unsigned int)MIN(a, b), high = (unsigned int)MAX(a, b);

	if (low)
		close_range(0, low - 1, 0);
	if (high - low > 1)
		close_range(low + 1, high - 1, 0);
	close_range(high + 1, UINT_MAX, 0);
}

/* Only functions that are safe after fork() in a program with threads. The probe ends with it. */
_Noreturn static void trap_cost_run(
	const struct sites_program *program, const struct sites_place *place, int answer)
{
	uint64_t plain_ns, probed_ns = 0;

	prctl(PR_SET_NAME, "fathom-trap");
	trap_cost_keep(program->fd, answer);
	plain_ns = trap_cost_fastest();
	if (sites_attach_own(program, place) >= 0)
		probed_ns = trap_cost_fastest();
	if (probed_ns > plain_ns) {
		uint64_t ns = (probed_ns - plain_ns) / BATCH_CALLS;

		if (write(answer, &ns, sizeof(ns)) < 0)
			_exit(1);
	}
	_exit(0);
}

/* Forks twice, so that init reaps the process. */
static void trap_cost_start(
	const struct sites_program *program, const struct sites_place *place, int answer)
{
	pid_t child = fork();

	if (!child) {
		setsid();
		if (!fork())
			trap_cost_run(program, place, answer);
		_exit(0);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

void trap_cost_begin(struct trap_cost *c, const struct sites_program *program, uint64_t cookie)
{
	uint64_t address = (uintptr_t)trap_cost_target;
	struct sites_place place = { .cookie = cookie };
	struct abi_mapping own;
	int ends[2];

	*c = (struct trap_cost){ .answer = -1 };
	if (!mapping_probe_own(address, &own) || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return;
	place.file_off = address - own.start + own.file_off;
	trap_cost_start(program, &place, ends[1]);
	close(ends[1]);
	c->answer = ends[0];
}

void trap_cost_deinit(struct trap_cost *c)
{
	if (c->answer >= 0)
		close(take_fd(&c->answer));
}

uint64_t trap_cost_ns(struct trap_cost *c)
{
	uint64_t ns = 0;
	ssize_t size;

	if (c->answer < 0)
		return c->ns;
	size = read(c->answer, &ns, sizeof(ns));
	if (size == sizeof(ns))
		c->ns = ns;
	if (size >= 0)
		trap_cost_deinit(c);
	return c->ns;
}
