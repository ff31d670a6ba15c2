/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/probes/kernel_latency/kernel_links.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/sampler/collect/kprobe_multi.h"
#include "agent/sampler/collect/perf_event.h"
#include "agent/sampler/probes/kernel_latency/kernel_copy.h"
#include "agent/sampler/probes/latency/closer.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/interrupted.h"
#include "bpf/abi/latency.h"

enum { MAX_LINKS = 1 << 20 };

static void kernel_links_free_btf(struct btf **btf)
{
	btf__free(*btf);
}

/* ---- what is held --------------------------------------------------------------------------- */

int kernel_links_add(struct kernel_links *l, int link)
{
	int err = array_reserve(l->links, l->capacity, l->count + 1, MAX_LINKS);

	if (err)
		close(link);
	else
		l->links[l->count++] = link;
	return err;
}

int kernel_links_add_entry(struct kernel_links *l, int program)
{
	int err = array_reserve(l->entries, l->entry_capacity, l->entry_count + 1, MAX_LINKS);

	if (err)
		close(program);
	else
		l->entries[l->entry_count++] = program;
	return err;
}

int kernel_links_refuse(struct kernel_links *l, size_t number, int err)
{
	int error = array_reserve(l->refused, l->refused_capacity, l->refused_count + 1, MAX_LINKS);

	if (!error)
		l->refused[l->refused_count++] =
			(struct kernel_refused){ .number = number, .err = err };
	return error;
}

static void kernel_links_deinit(struct kernel_links *l)
{
	for (size_t i = 0; i < l->entry_count; i++)
		close(l->entries[i]);
	free(l->links);
	free(l->entries);
	free(l->refused);
	*l = (struct kernel_links){ 0 };
}

void kernel_links_close(struct kernel_links *l)
{
	closer_close(l->links, l->count);
	kernel_links_deinit(l);
}

pid_t kernel_links_close_begin(struct kernel_links *l)
{
	pid_t closer = closer_begin(l->links, l->count);

	kernel_links_deinit(l);
	return closer;
}

/* Whether the kernel would answer the same for other functions. */
static bool kernel_links_is_of_all(int err)
{
	return err == -EPERM || err == -EACCES || err == -ENOMEM || err == -EMFILE ||
	       err == -ENFILE || err == -EINTR;
}

/* ---- trampolines ---------------------------------------------------------------------------- */

/* The link of a copy of PROGRAM; *RET_PROGRAM is the copy. */
static int kernel_links_trampoline(
	const struct bpf_program *program, const struct kernel_copy *copy, int *ret_program)
{
	int fd = kernel_copy_load(program, copy), link;

	if (fd < 0)
		return fd;
	link = bpf_raw_tracepoint_open(NULL, fd);
	if (link < 0) {
		link = -errno;
		close(fd);
		return link;
	}
	*ret_program = fd;
	return link;
}

/* The return before the entry, so that a call that is seen to begin is also seen to end. */
static int kernel_links_trampolines_of(struct kernel_links *l,
	const struct kernel_programs *programs, const struct kernel_target *target, uint32_t id)
{
	struct kernel_copy copy = { .cookie = target->function | ABI_LATENCY_RETURN,
		.function = id };
	int program = -1, link = kernel_links_trampoline(programs->returned, &copy, &program);
	int err;

	if (link < 0)
		return link;
	close(program);
	err = kernel_links_add(l, link);
	if (err)
		return err;
	copy.cookie = target->function;
	link = kernel_links_trampoline(programs->entered, &copy, &program);
	if (link < 0) {
		close(l->links[--l->count]);
		return link;
	}
	err = kernel_links_add(l, link);
	return err ? err : kernel_links_add_entry(l, program);
}

/* Types have one function of each name, whichever it is. Those of modules are not read. */
static int kernel_links_find_type(const struct btf *btf, const struct kernel_target *target)
{
	if (target->in_module || target->address_count != 1)
		return -ENOENT;
	return btf__find_by_name_kind(btf, target->name, BTF_KIND_FUNC);
}

int kernel_links_trampolines(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count)
{
	autocall(kernel_links_free_btf) struct btf *btf = btf__load_vmlinux_btf();
	int err = 0;

	if (!btf)
		return -ENOENT;
	for (size_t i = 0; i < count && !err; i++) {
		int id = interrupted_to_end() ? -EINTR : kernel_links_find_type(btf, &targets[i]);

		err = id < 0 ? id
			     : kernel_links_trampolines_of(l, programs, &targets[i], (uint32_t)id);
		if (err && !kernel_links_is_of_all(err))
			err = kernel_links_refuse(l, i, err);
	}
	return err;
}

/* ---- kprobe.multi --------------------------------------------------------------------------- */

/* Addresses of all targets, ascending by target. */
struct kernel_places {
	uint64_t *addresses, *cookies;
	size_t *numbers;
	size_t count;
};

static void kernel_places_deinit(struct kernel_places *p)
{
	free(p->addresses);
	free(p->cookies);
	free(p->numbers);
}

static int kernel_places_init(
	struct kernel_places *p, const struct kernel_target *targets, size_t count)
{
	size_t all = 0;

	for (size_t i = 0; i < count; i++)
		all += targets[i].address_count;
	p->addresses = calloc(all + 1, sizeof(*p->addresses));
	p->cookies = calloc(all + 1, sizeof(*p->cookies));
	p->numbers = calloc(all + 1, sizeof(*p->numbers));
	if (!p->addresses || !p->cookies || !p->numbers)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		for (size_t n = 0; n < targets[i].address_count; n++) {
			p->addresses[p->count] = targets[i].addresses[n];
			p->cookies[p->count] = targets[i].function;
			p->numbers[p->count++] = i;
		}
	}
	return 0;
}

static int kernel_links_multi_link(
	struct kernel_links *l, const struct bpf_program *program, struct kprobe_multi *kprobes)
{
	int link = kprobe_multi_attach(bpf_program__fd(program), kprobes);

	return link < 0 ? link : kernel_links_add(l, link);
}

/* The returns first, as above. Their cookies have one more bit. */
static int kernel_links_multi_pair(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_places *places, size_t first, size_t count)
{
	autofree uint64_t *cookies = calloc(count, sizeof(*cookies));
	struct kprobe_multi kprobes = {
		.addresses = places->addresses + first,
		.cookies = cookies,
		.count = count,
		.at_return = true,
	};
	int err;

	if (!cookies)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		cookies[i] = places->cookies[first + i] | ABI_LATENCY_RETURN;
	err = kernel_links_multi_link(l, programs->returns, &kprobes);
	if (err)
		return err;
	kprobes.cookies = places->cookies + first;
	kprobes.at_return = false;
	err = kernel_links_multi_link(l, programs->entries, &kprobes);
	if (err)
		close(l->links[--l->count]);
	return err;
}

static int kernel_links_multi_range(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_places *places, size_t first, size_t count)
{
	struct kprobe_multi kprobes = {
		.addresses = places->addresses + first,
		.cookies = places->cookies + first,
		.count = count,
		.session = true,
	};

	return programs->session ? kernel_links_multi_link(l, programs->session, &kprobes)
				 : kernel_links_multi_pair(l, programs, places, first, count);
}

/* The kernel refuses all if it refuses one: halves find that one. Depth: log2 of COUNT. */
static int kernel_links_multi_halves(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_places *places, size_t first, size_t count)
{
	int err = interrupted_to_end()
			  ? -EINTR
			  : kernel_links_multi_range(l, programs, places, first, count);

	if (!err || kernel_links_is_of_all(err))
		return err;
	if (count == 1)
		return kernel_links_refuse(l, places->numbers[first], err);
	err = kernel_links_multi_halves(l, programs, places, first, count / 2);
	return err ? err
		   : kernel_links_multi_halves(
			     l, programs, places, first + count / 2, count - count / 2);
}

int kernel_links_multi(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count)
{
	autocall(kernel_places_deinit) struct kernel_places places = { 0 };
	int err = kernel_places_init(&places, targets, count);

	return err || !places.count
		       ? err
		       : kernel_links_multi_halves(l, programs, &places, 0, places.count);
}

/* ---- events --------------------------------------------------------------------------------- */

/* An event that runs a copy of PROGRAM with COOKIE; *RET_PROGRAM is the copy. */
static int kernel_links_event(const struct bpf_program *program, int type, uint64_t kaddr,
	uint64_t cookie, int *ret_program)
{
	autoclose int event =
		perf_event_open_kprobe(type, kaddr, (cookie & ABI_LATENCY_RETURN) != 0);
	autoclose int fd = -1;
	int err;

	if (event < 0)
		return event;
	fd = kernel_copy_load(program, &(struct kernel_copy){ .cookie = cookie });
	err = fd < 0 ? fd : perf_event_set_program(event, fd);
	if (err)
		return err;
	*ret_program = take_fd(&fd);
	return take_fd(&event);
}

/* The return first, as above. */
static int kernel_links_events_at(struct kernel_links *l, const struct bpf_program *program,
	int type, uint64_t kaddr, uint64_t function)
{
	int copy = -1,
	    event = kernel_links_event(program, type, kaddr, function | ABI_LATENCY_RETURN, &copy);
	int err;

	if (event < 0)
		return event;
	close(copy);
	err = kernel_links_add(l, event);
	if (err)
		return err;
	event = kernel_links_event(program, type, kaddr, function, &copy);
	if (event < 0) {
		close(l->links[--l->count]);
		return event;
	}
	err = kernel_links_add_entry(l, copy);
	if (err)
		close(event);
	return err ? err : kernel_links_add(l, event);
}

static int kernel_links_events_of(struct kernel_links *l, const struct bpf_program *program,
	int type, const struct kernel_target *target)
{
	int err = 0;

	for (size_t i = 0; i < target->address_count && !err; i++)
		err = interrupted_to_end() ? -EINTR
					   : kernel_links_events_at(l, program, type,
						     target->addresses[i], target->function);
	return err;
}

int kernel_links_events(struct kernel_links *l, const struct kernel_programs *programs,
	const struct kernel_target *targets, size_t count)
{
	int type = kernel_way_event_type(), err = type < 0 ? type : 0;

	for (size_t i = 0; i < count && !err; i++) {
		err = kernel_links_events_of(l, programs->event, type, &targets[i]);
		if (err && !kernel_links_is_of_all(err))
			err = kernel_links_refuse(l, i, err);
	}
	return err;
}
