/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/fiber_labels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/sampler/seam/runtime_fibers.h"
#include "agent/sampler/seam/runtime_functions.h"
#include "base/array.h"
#include "base/cleanup.h"

enum {
	MAX_ORIGINS = 1 << 20,
	MAX_BYTES = 64 << 20,
	PLACE_BYTES = 4096 + 16, /* a path and a line */
};

DEFINE_AUTO(fiber_labels);

/* Where a fiber was created, by number in `texts`; 0 = not known. */
struct fiber_origin {
	uint32_t function;
	uint32_t place; /* file:line */
	bool collects; /* it is the garbage collector's */
	bool known; /* the others are */
};

struct origin_key {
	uint32_t origin; /* as in struct profile_sample */
	uint32_t process;
};

int fiber_labels_create(const struct report_sources *sources, struct fiber_labels **ret_labels)
{
	autocall(auto_fiber_labels_destroy) struct fiber_labels *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->sources = sources;
	err = intern_init(&f->texts, MAX_ORIGINS, MAX_BYTES);
	if (!err)
		err = intern_init(&f->keys, MAX_ORIGINS, MAX_BYTES);
	if (err)
		return err;
	*ret_labels = take(f);
	return 0;
}

void fiber_labels_destroy(struct fiber_labels *f)
{
	if (!f)
		return;
	intern_deinit(&f->texts);
	intern_deinit(&f->keys);
	free(f->origins);
	free(f);
}

/* The line of the call, innermost if it is an inlined one, as the runtime's tracebacks have it. */
static int fiber_labels_learn_call(
	struct fiber_labels *f, const struct index_frame *line, struct fiber_origin *origin)
{
	char place[PLACE_BYTES];
	int size, err = intern_string(&f->texts, line->name, &origin->function);

	if (err || !line->file || !*line->file || !line->line)
		return err;
	size = snprintf(place, sizeof(place), "%s:%u", line->file, (unsigned int)line->line);
	return size < (int)sizeof(place) ? intern_string(&f->texts, place, &origin->place) : 0;
}

static int fiber_labels_learn(
	struct fiber_labels *f, const struct origin_key *key, struct fiber_origin *ret_origin)
{
	const struct profile_stack stack = profile_stack_at(f->sources->profile, key->origin - 1);
	struct fiber_origin origin = { .known = true };
	struct symbolized *frame = &f->scratch;
	int err;

	for (uint32_t i = 0; i < stack.frame_count; i++) {
		err = symbolize_frame(f->sources->symbolize, key->process, &stack.frames[i], frame);
		if (!err && frame->outcome != SYMBOLIZE_NAMED)
			continue;
		if (!err && i == 0)
			err = fiber_labels_learn_call(f, &frame->lines[0], &origin);
		if (err)
			return err;
		origin.collects |= runtime_function_collects(frame->lines[0].linkage);
	}
	*ret_origin = origin;
	return 0;
}

/* *RET_ORIGIN is valid until the next call. */
static int fiber_labels_origin(struct fiber_labels *f, const struct profile_sample *sample,
	const struct fiber_origin **ret_origin)
{
	static const struct fiber_origin none;
	const struct origin_key key = { sample->origin, sample->process };
	size_t known = f->keys.count;
	uint32_t number;
	int err;

	*ret_origin = &none;
	if (!sample->origin)
		return 0;
	err = array_reserve(f->origins, f->origin_capacity, known + 1, MAX_ORIGINS);
	if (!err)
		err = intern_bytes(&f->keys, &key, sizeof(key), &number);
	if (err)
		return err;
	if (number == known)
		f->origins[number] = none;
	if (!f->origins[number].known)
		err = fiber_labels_learn(f, &key, &f->origins[number]);
	*ret_origin = &f->origins[number];
	return err;
}

static const char *fiber_labels_state(const struct profile_fiber *fiber,
	const struct fiber_origin *origin, const struct stack_facts *facts)
{
	const struct runtime_fibers *words = runtime_fibers();

	if (fiber->state == ABI_FIBER_NONE && facts->idle)
		return words->idle;
	if (fiber->state && fiber->state != ABI_FIBER_ON_SIGNAL_STACK && origin->collects)
		return words->collects;
	return words->states[fiber->state];
}

static const char *fiber_labels_wait(const struct profile_fiber *fiber)
{
	const struct runtime_fibers *words = runtime_fibers();

	return fiber->wait && words->wait ? words->wait(fiber->wait) : NULL;
}

static void fiber_labels_put(
	struct pprof_label *to, size_t *count, const char *key, const char *text)
{
	if (text && *text)
		to[(*count)++] = (struct pprof_label){ .key = key, .text = text };
}

int fiber_labels_add(struct fiber_labels *f, const struct profile_sample *sample,
	const struct stack_facts *facts, struct pprof_label *to, size_t *count)
{
	const struct profile_fiber fiber = profile_fiber_at(f->sources->profile, sample->fiber);
	const struct fiber_origin *origin;
	int err = fiber_labels_origin(f, sample, &origin);

	if (err)
		return err;
	fiber_labels_put(to, count, "go_state", fiber_labels_state(&fiber, origin, facts));
	if (fiber.parent_id)
		to[(*count)++] = (struct pprof_label){
			.key = "go_parent_goid", .number = (int64_t)fiber.parent_id, .unit = "id"
		};
	fiber_labels_put(to, count, "go_created_by", intern_text(&f->texts, origin->function));
	fiber_labels_put(to, count, "go_created_at", intern_text(&f->texts, origin->place));
	fiber_labels_put(to, count, "go_wait_reason", fiber_labels_wait(&fiber));
	return 0;
}
