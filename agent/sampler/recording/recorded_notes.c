/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/recorded_notes.h"

#include <stdlib.h>
#include <string.h>

#include "agent/report/report.h"
#include "agent/sampler/process/selection.h"
#include "agent/sampler/probes/probes.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/recording/notes.h"
#include "agent/sampler/recording/writer.h"
#include "agent/sampler/sampler.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "symbolizer/index/index.h"

enum { MAX_KNOWN = 1 << 24 };

void recorded_notes_init(struct recorded_notes *n, struct writer *writer)
{
	*n = (struct recorded_notes){ .writer = writer };
	map_init(&n->index_files, MAX_KNOWN);
	map_init(&n->requests, MAX_KNOWN);
}

void recorded_notes_deinit(struct recorded_notes *n)
{
	uint64_t tag, id;
	size_t iterator = 0;

	while (map_next(&n->requests, &iterator, &tag, &id))
		free(map_get_pointer(&n->requests, tag));
	map_deinit(&n->index_files);
	map_deinit(&n->requests);
}

/* Writes both lists, each with its NUL. */
static void recorded_notes_write_lists(const struct selection *selection, struct buffer *out)
{
	for (int exclude = 0; exclude <= 1; exclude++) {
		(void)selection_write(selection, exclude, out);
		(void)buffer_append(out, "", 1);
	}
}

static void recorded_notes_call(struct recorded_notes *n, const struct note_call *note)
{
	const struct sampler_options *o = note->options;
	struct recording_call call = { .call = note->call, .argument = note->argument };
	autocall(buffer_deinit) struct buffer lists;
	const uint32_t *tgids = NULL;

	buffer_init(&lists, UINT32_MAX);
	if (note->call == SAMPLER_CALL_SELECT)
		recorded_notes_write_lists(note->selection, &lists);
	if (o) {
		call.follow_pid = o->follow ? o->follow_pid : 0;
		call.frequency_hz = o->collect.frequency_hz;
		call.period = o->collect.period;
		call.profile_limit_bytes = o->profile_limit_bytes;
		call.memory_limit_bytes = o->memory_limit_bytes;
		call.off_cpu_share = o->collect.off_cpu_share;
		call.cycles = o->collect.event == COLLECT_CYCLES;
		call.user = o->collect.user;
		call.kernel = o->collect.kernel;
		call.has_full = o->full != NULL;
		call.filter_tgids = o->collect.filter.filter_tgids;
		call.tgid_count = (uint32_t)o->collect.tgid_count;
		tgids = o->collect.tgids;
	}
	writer_put(n->writer, RECORDING_CALL,
		&(struct writer_body){
			{ { &call, sizeof(call) }, { tgids, call.tgid_count * sizeof(*tgids) },
				{ lists.bytes, lists.size } } });
}

/*
 * Collects the numbers of the processes whose samples are in a report. Returns false if only a part
 * of a process's samples is in it, which is not recorded.
 */
static bool recorded_notes_included(const struct note_report *note, struct buffer *ret_processes)
{
	const struct report_options *o = note->options;
	autocall(map_deinit) struct map included;
	size_t count = profile_sample_count(note->profile);
	bool whole = true;

	map_init(&included, MAX_KNOWN);
	for (size_t i = 0; i < count && whole; i++) {
		const struct profile_sample *sample = profile_sample_at(note->profile, i);
		bool in = o->include(o->include_context, sample);
		uint64_t before;

		if (map_get(&included, sample->process, &before)) {
			whole = before == in;
			continue;
		}
		whole = !map_set(&included, sample->process, in);
		if (in)
			(void)buffer_append(
				ret_processes, &sample->process, sizeof(sample->process));
	}
	return whole && !ret_processes->error;
}

static void recorded_notes_report(struct recorded_notes *n, const struct note_report *note)
{
	autocall(buffer_deinit) struct buffer processes;
	const struct report_options *o = note->options;
	struct recording_report report = {
		.time_ns = o->time_ns,
		.duration_ns = o->duration_ns,
		.period = o->period,
		.cycles = !o->types.of[SAMPLE_TYPE_TICKS].is_time,
		.off_cpu = sample_types_have(&o->types, PROBE_off_cpu),
		.no_inlines = o->no_inlines,
		.no_demangle = o->no_demangle,
		.no_labels = o->no_labels,
		.additions = (o->file_hashes ? RECORDING_FILE_HASHES : 0) |
			     (o->bare_addresses ? RECORDING_BARE_ADDRESSES : 0) |
			     (o->span_labels ? RECORDING_SPAN_LABELS : 0) |
			     (o->group ? RECORDING_GROUPS : 0),
		.comment_bytes = o->comment ? (uint32_t)strlen(o->comment) : UINT32_MAX,
		.pprof_bytes = (uint32_t)note->pprof_bytes,
	};

	buffer_init(&processes, UINT32_MAX);
	if (o->include && !recorded_notes_included(note, &processes))
		return;
	report.process_count =
		o->include ? (uint32_t)(processes.size / sizeof(uint32_t)) : UINT32_MAX;
	writer_put(n->writer, RECORDING_REPORT,
		&(struct writer_body){ { { &report, sizeof(report) },
			{ o->comment, o->comment ? report.comment_bytes : 0 },
			{ processes.bytes, processes.size },
			{ note->pprof, note->pprof_bytes } } });
}

/* The number of INDEX's file in the recording, which has it once; 0 if there is none. */
static uint32_t recorded_notes_index_file(struct recorded_notes *n, const struct index *index)
{
	uint64_t number, hash;

	if (!index)
		return 0;
	hash = hash_bytes(index_file(index), index_bytes(index));
	if (map_get(&n->index_files, hash, &number))
		return (uint32_t)number;
	number = ++n->files;
	(void)map_set(&n->index_files, hash, number);
	writer_put(n->writer, RECORDING_INDEX_FILE,
		&(struct writer_body){ { { &number, sizeof(number) },
			{ index_file(index), index_bytes(index) } } });
	return (uint32_t)number;
}

static void recorded_notes_index(struct recorded_notes *n, enum recording_type type,
	const struct module_id *id, int error, const struct index *index)
{
	struct recording_index body = { .error = error,
		.file = recorded_notes_index_file(n, index) };

	if (id)
		body.id = *id;
	writer_put(n->writer, type, &(struct writer_body){ { { &body, sizeof(body) } } });
}

static void recorded_notes_request(struct recorded_notes *n, const struct note_request *note)
{
	struct module_id *id = map_get_pointer(&n->requests, note->tag);

	if (!id) {
		id = malloc(sizeof(*id));
		if (!id || map_set_pointer(&n->requests, note->tag, id)) {
			free(id);
			return;
		}
	}
	*id = *note->id;
	if (note->error)
		recorded_notes_index(n, RECORDING_REQUEST, id, note->error, NULL);
}

void recorded_notes_put(struct recorded_notes *n, enum host_note kind, const void *what)
{
	const struct note_index *index = what;
	const struct note_collect *collect = what;
	const struct note_vdso *vdso = what;
	const bool *timers = what;

	switch (kind) {
	case HOST_NOTE_TICK: {
		struct recording_tick body = { *timers };

		writer_put(n->writer, RECORDING_TICK,
			&(struct writer_body){ { { &body, sizeof(body) } } });
		break;
	}
	case HOST_NOTE_TIMER:
		writer_put(n->writer, RECORDING_TIMER,
			&(struct writer_body){ { { what, sizeof(uint64_t) } } });
		break;
	case HOST_NOTE_RINGS_READY:
		writer_put(n->writer, RECORDING_RINGS_READY, NULL);
		break;
	case HOST_NOTE_BUILDS_READY:
		writer_put(n->writer, RECORDING_BUILDS_READY, NULL);
		break;
	case HOST_NOTE_CALL:
		recorded_notes_call(n, what);
		break;
	case HOST_NOTE_COLLECT: {
		struct recording_collect body = { collect->tables, collect->by_file,
			collect->build_ids };

		writer_put(n->writer, RECORDING_COLLECT,
			&(struct writer_body){ { { &body, sizeof(body) } } });
		break;
	}
	case HOST_NOTE_VDSO:
		recorded_notes_index(n, RECORDING_VDSO, vdso->id, vdso->error, NULL);
		break;
	case HOST_NOTE_REQUEST:
		recorded_notes_request(n, what);
		break;
	case HOST_NOTE_INDEX:
		recorded_notes_index(n, RECORDING_INDEX, map_get_pointer(&n->requests, index->tag),
			0, index->index);
		break;
	case HOST_NOTE_CACHED:
		recorded_notes_index(n, RECORDING_CACHED, index->id, index->error, index->index);
		break;
	case HOST_NOTE_REPORT:
		recorded_notes_report(n, what);
		break;
	}
}
