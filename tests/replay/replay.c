/* SPDX-License-Identifier: Apache-2.0 */
/* Replays the recorded calls of the sampler. */
#include "tests/replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/groups.h"
#include "agent/report/report.h"
#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/recording/notes.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/cursor.h"
#include "base/gzip.h"
#include "tests/replay/replay_internal.h"

enum {
	MAX_PPROF_BYTES = 64 << 20,
	MAX_TGIDS = 4096,
	MAX_COMMENT_BYTES = 4096,
	MAX_PROCESSES = 1 << 20,
};

const struct record *replay_next_event(const struct replay *r)
{
	const struct recording *recording = r->recording;

	return r->event < recording->event_count ? &recording->records[recording->events[r->event]]
						 : NULL;
}

const struct record *replay_take_event(struct replay *r)
{
	const struct record *event = replay_next_event(r);

	r->event++;
	replay_move_clock(r, event->time_ns);
	return event;
}

/* ---- reports --------------------------------------------------------------------------------- */

/* A report request of the recording. */
struct asked_report {
	struct report_options options;
	char comment[MAX_COMMENT_BYTES];
	bool has_groups;
	struct groups groups;
	struct groups_label label;
	struct map processes; /* number → 1 for each process in the report */
	const uint8_t *pprof; /* as the recorded run wrote it, compressed */
	size_t pprof_bytes;
};

static bool asked_report_includes(void *context, const struct profile_sample *sample)
{
	const struct asked_report *asked = context;
	uint64_t one;

	return map_get(&asked->processes, sample->process, &one);
}

static void asked_report_deinit(struct asked_report *asked)
{
	map_deinit(&asked->processes);
	if (asked->label.groups)
		groups_deinit(&asked->groups);
}

/* The agent's own groups: they depend on the window only. */
static int asked_report_group(struct asked_report *asked, const struct sealed_window *window)
{
	int err = groups_init(&asked->groups, window->profile, window->processes);

	if (err)
		return err;
	asked->label = (struct groups_label){ .groups = &asked->groups };
	asked->options.group = groups_label_of;
	asked->options.group_context = &asked->label;
	return 0;
}

static void asked_report_set_options(
	struct asked_report *asked, const struct recording_report *body)
{
	const struct collect_options sampled = {
		.event = body->cycles ? COLLECT_CYCLES : COLLECT_CPU_CLOCK,
		.off_cpu_share = body->off_cpu,
	};

	asked->options = (struct report_options){
		.period = body->period,
		.time_ns = body->time_ns,
		.duration_ns = body->duration_ns,
		.no_inlines = body->no_inlines,
		.no_demangle = body->no_demangle,
		.no_labels = body->no_labels,
		.file_hashes = body->additions & RECORDING_FILE_HASHES,
		.bare_addresses = body->additions & RECORDING_BARE_ADDRESSES,
		.span_labels = body->additions & RECORDING_SPAN_LABELS,
		.comment = body->comment_bytes == UINT32_MAX ? NULL : asked->comment,
		.include = body->process_count == UINT32_MAX ? NULL : asked_report_includes,
		.include_context = asked,
	};
	asked->has_groups = body->additions & RECORDING_GROUPS;
	probes_sample_types(&sampled, &asked->options.types);
}

/* Returns false if the record is invalid. */
static bool asked_report_read(struct asked_report *asked, const struct record *event)
{
	struct recording_report body;
	struct cursor c = cursor_over(event->body, event->size);
	const void *comment;
	uint32_t count;

	if (!recording_body(event, &body, sizeof(body)))
		return false;
	cursor_skip(&c, sizeof(body));
	count = body.comment_bytes == UINT32_MAX ? 0 : body.comment_bytes;
	comment = count < MAX_COMMENT_BYTES ? cursor_bytes(&c, count) : NULL;
	if (!comment)
		return false;
	memcpy(asked->comment, comment, count);
	for (uint32_t i = 0; i < body.process_count && body.process_count != UINT32_MAX; i++)
		if (c.bad || map_set(&asked->processes, cursor_u32(&c), 1))
			return false;
	asked->pprof_bytes = body.pprof_bytes;
	asked->pprof = cursor_bytes(&c, body.pprof_bytes);
	asked_report_set_options(asked, &body);
	return asked->pprof != NULL;
}

static int replay_write_report(struct replay *r, const struct record *event,
	const struct sealed_window *window, struct buffer *expected, struct buffer *got)
{
	autocall(buffer_deinit) struct buffer compressed;
	autocall(asked_report_deinit) struct asked_report asked = { 0 };
	struct report_sources sources;
	struct report_summary summary;
	int err;

	buffer_init(&compressed, MAX_PPROF_BYTES);
	map_init(&asked.processes, MAX_PROCESSES);
	if (!asked_report_read(&asked, event))
		return -EBADMSG;
	sources = report_window_sources(
		window, sampler_symbolize(r->sampler), sampler_metrics_to_add(r->sampler));
	err = asked.has_groups ? asked_report_group(&asked, window) : 0;
	if (!err)
		err = report_pprof(&sources, &asked.options, &compressed, &summary);
	if (!err)
		err = gzip_inflate(compressed.bytes, compressed.size, got);
	if (!err)
		err = gzip_inflate(asked.pprof, asked.pprof_bytes, expected);
	return err;
}

static void replay_report(struct replay *r, const struct sealed_window *window)
{
	const struct record *event = replay_take_event(r);
	autocall(buffer_deinit) struct buffer expected, got;
	int err;

	buffer_init(&expected, MAX_PPROF_BYTES);
	buffer_init(&got, MAX_PPROF_BYTES);
	err = r->sampler ? replay_write_report(r, event, window, &expected, &got) : -EBADMSG;
	if (err) {
		r->error = err;
		return;
	}
	r->result.reports++;
	r->fn(r->context, &(struct replay_report){
				  .expected = expected.bytes,
				  .expected_bytes = expected.size,
				  .got = got.bytes,
				  .got_bytes = got.size,
			  });
}

static bool replay_is_next(const struct replay *r, enum recording_type type)
{
	const struct record *next = replay_next_event(r);

	return next && next->type == type;
}

static void replay_sealed(void *context, const struct sealed_window *window)
{
	struct replay *r = context;

	while (replay_is_next(r, RECORDING_REPORT))
		replay_report(r, window);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void replay_call(struct replay *r);

static bool replay_is_call(const struct replay *r, enum sampler_call wanted)
{
	struct recording_call call;

	return replay_is_next(r, RECORDING_CALL) &&
	       recording_body(replay_next_event(r), &call, sizeof(call)) && call.call == wanted;
}

/* Windows must end early at the same samples as in the recorded run. */
static void replay_full(void *context)
{
	struct replay *r = context;

	if (!replay_is_call(r, SAMPLER_CALL_FULL)) {
		r->error = -EBADMSG;
		return;
	}
	replay_take_event(r);
	if (replay_is_call(r, SAMPLER_CALL_TURN_WINDOW))
		replay_call(r);
}

static int replay_create(
	struct replay *r, const struct record *event, const struct recording_call *call)
{
	static uint32_t tgids[MAX_TGIDS];
	struct sampler_failure failure;
	struct sampler_options options = {
		.cache_directory = "",
		.profile_limit_bytes = call->profile_limit_bytes,
		.memory_limit_bytes = call->memory_limit_bytes,
		.loop = r->loop,
		.sealed = replay_sealed,
		.full = call->has_full ? replay_full : NULL,
		.sealed_context = r,
		.follow = call->follow_pid != 0,
		.follow_pid = call->follow_pid,
	};

	if (r->sampler || call->tgid_count > MAX_TGIDS ||
		event->size - sizeof(*call) < call->tgid_count * sizeof(*tgids))
		return -EBADMSG;
	memcpy(tgids, event->body + sizeof(*call), call->tgid_count * sizeof(*tgids));
	options.collect = (struct collect_options){
		.event = call->cycles ? COLLECT_CYCLES : COLLECT_CPU_CLOCK,
		.frequency_hz = call->frequency_hz,
		.period = call->period,
		.user = call->user,
		.kernel = call->kernel,
		.off_cpu_share = call->off_cpu_share,
		.filter.filter_tgids = call->filter_tgids,
		.tgids = tgids,
		.tgid_count = call->tgid_count,
		.without = r->without,
	};
	return sampler_create(&options, &r->sampler, &failure);
}

static void replay_open_tap(struct replay *r, uint32_t pid)
{
	struct windows_tap *tap;
	size_t i = 0;

	while (i < REPLAY_MAX_TAPS && r->taps[i])
		i++;
	if (i < REPLAY_MAX_TAPS && !sampler_tap_open(r->sampler, pid, &tap))
		r->taps[i] = tap;
}

static void replay_close_tap(struct replay *r, uint64_t number)
{
	if (number >= REPLAY_MAX_TAPS || !r->taps[number])
		return;
	sampler_tap_close(r->sampler, take(r->taps[number]));
}

static int replay_select(struct replay *r, const struct record *event)
{
	struct cursor c = cursor_over(event->body, event->size);
	struct selection *selection;
	const char *include, *exclude;
	bool second;
	int err;

	cursor_skip(&c, sizeof(struct recording_call));
	include = cursor_string(&c);
	exclude = cursor_string(&c);
	if (c.bad)
		return -EBADMSG;
	err = selection_create(include, exclude, &selection, &second);
	if (err)
		return err;
	sampler_select(r->sampler, selection);
	selection_destroy(r->selection);
	r->selection = selection;
	return 0;
}

static void replay_call_sampler(struct replay *r, const struct recording_call *call)
{
	switch (call->call) {
	case SAMPLER_CALL_PREPARE:
		(void)sampler_prepare(r->sampler, call->argument);
		break;
	case SAMPLER_CALL_START:
		(void)sampler_start(r->sampler);
		break;
	case SAMPLER_CALL_STOP:
		(void)sampler_stop(r->sampler);
		break;
	case SAMPLER_CALL_FINISH_DEBUG:
		(void)sampler_finish_debug(r->sampler, call->argument);
		break;
	case SAMPLER_CALL_TURN_WINDOW:
		(void)sampler_rotate_window(r->sampler);
		break;
	case SAMPLER_CALL_TAP_OPEN:
		replay_open_tap(r, (uint32_t)call->argument);
		break;
	case SAMPLER_CALL_TAP_PROFILE:
		if (call->argument < REPLAY_MAX_TAPS && r->taps[call->argument])
			r->returned = sampler_tap_read(r->sampler, r->taps[call->argument]);
		break;
	case SAMPLER_CALL_TAP_CLOSE:
		replay_close_tap(r, call->argument);
		break;
	case SAMPLER_CALL_LAST_WINDOW:
		r->returned = sampler_last_window(r->sampler);
		break;
	default:
		r->error = -EBADMSG;
	}
}

static void replay_call(struct replay *r)
{
	const struct record *event = replay_take_event(r);
	struct recording_call call;
	int err = 0;

	r->returned.profile = NULL;
	if (!recording_body(event, &call, sizeof(call)))
		err = -EBADMSG;
	else if (call.call == SAMPLER_CALL_CREATE)
		err = replay_create(r, event, &call);
	else if (!r->sampler)
		err = -EBADMSG;
	else if (call.call == SAMPLER_CALL_SELECT)
		err = replay_select(r, event);
	else
		replay_call_sampler(r, &call);
	if (err)
		r->error = err;
}

/* Writes a report of an on-demand profile, or of all samples. */
static void replay_other_report(struct replay *r)
{
	struct sealed_window window = r->returned;

	if (!window.profile && r->sampler)
		window = sampler_last_window(r->sampler);
	replay_report(r, &window);
}

static void replay_loop(struct replay *r)
{
	/* A timer may free the profile. */
	r->returned.profile = NULL;
	(void)loop_run(r->loop);
}

static int replay_events(struct replay *r)
{
	while (!r->error && replay_next_event(r)) {
		if (replay_is_next(r, RECORDING_CALL))
			replay_call(r);
		else if (replay_is_next(r, RECORDING_REPORT))
			replay_other_report(r);
		else
			replay_loop(r);
	}
	return r->error;
}

int replay_run(const struct recording *recording, uint32_t without, replay_report_fn *fn,
	void *context, struct replay_result *ret_result)
{
	struct replay r = {
		.recording = recording, .without = without, .fn = fn, .context = context
	};
	int err = replay_host_init(&r);

	r.result.used = calloc(recording->count + 1, 1);
	if (!r.result.used)
		err = -ENOMEM;
	r.now_ns = recording->count > 1 ? recording->records[1].time_ns : 0;
	if (!err)
		err = loop_create(&r.loop);
	if (!err)
		err = replay_events(&r);
	if (r.sampler)
		r.result.samples = sampler_samples(r.sampler);
	sampler_destroy(r.sampler);
	selection_destroy(r.selection);
	loop_destroy(r.loop);
	replay_host_deinit(&r);
	*ret_result = r.result;
	return err;
}
