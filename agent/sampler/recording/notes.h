/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Arguments of the notes of base/host.h. All pointers are borrowed for the call. */
#include <stddef.h>
#include <stdint.h>

#include "base/host.h"
#include "base/module_id.h"

struct index;
struct profile;
struct report_options;
struct sampler_options;
struct selection;

/* Functions of agent/sampler/sampler.h. */
enum sampler_call {
	SAMPLER_CALL_CREATE,
	SAMPLER_CALL_PREPARE, /* argument: ns to wait */
	SAMPLER_CALL_START,
	SAMPLER_CALL_STOP,
	SAMPLER_CALL_FINISH_DEBUG, /* argument: ns to wait */
	SAMPLER_CALL_TURN_WINDOW,
	SAMPLER_CALL_TAP_OPEN, /* argument: pid, or 0 */
	SAMPLER_CALL_TAP_PROFILE, /* argument: the tap's number, the lowest free one when opened */
	SAMPLER_CALL_TAP_CLOSE, /* argument: the tap's number */
	SAMPLER_CALL_LAST_WINDOW, /* the reports that follow are of this window */
	SAMPLER_CALL_SELECT,
	SAMPLER_CALL_FULL, /* the sampler itself calls its owner: the window has to end */
	SAMPLER_CALLS,
};

/* HOST_NOTE_CALL, before anything else is done. */
struct note_call {
	enum sampler_call call;
	uint64_t argument;
	const struct sampler_options *options; /* SAMPLER_CALL_CREATE; else NULL */
	const struct selection *selection; /* SAMPLER_CALL_SELECT; NULL = all processes */
};

/* HOST_NOTE_COLLECT */
struct note_collect {
	bool tables; /* BPF walks by unwind tables */
	bool by_file; /* unwind tables are keyed by file, not by process */
	bool build_ids; /* mapping records have build IDs; another event's have the files */
};

/* HOST_NOTE_VDSO */
struct note_vdso {
	int error; /* 0, or why it could not be opened */
	const struct module_id *id;
};

/* HOST_NOTE_REQUEST, before an index is requested, and again if that failed. */
struct note_request {
	uint64_t tag; /* as in symbolizer/builds/builds.h */
	const struct module_id *id;
	int error;
};

/* HOST_NOTE_INDEX and HOST_NOTE_CACHED */
struct note_index {
	uint64_t tag; /* HOST_NOTE_INDEX: of the request */
	const struct module_id *id; /* HOST_NOTE_CACHED: the identity looked up */
	int error; /* of HOST_NOTE_CACHED: why there is none */
	const struct index *index; /* or NULL */
};

/* HOST_NOTE_REPORT */
struct note_report {
	const struct report_options *options;
	const struct profile *profile;
	const uint8_t *pprof; /* compressed */
	size_t pprof_bytes;
};

static inline void note_call(enum sampler_call call, uint64_t argument)
{
	host_note(HOST_NOTE_CALL, &(struct note_call){ .call = call, .argument = argument });
}
