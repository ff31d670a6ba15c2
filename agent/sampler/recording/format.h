/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A recording of the host: records in the order in which they were written. Each is a
 * recording_head and its body. Numbers are in this machine's byte order; a text is a NUL-terminated
 * string at the end of the body. A file is compressed with zstd before it is kept.
 *
 * A question to the host is a text: a letter for the kind of question (enum recording_question) and
 * the path. Times are CLOCK_MONOTONIC as the sampler saw it, which stands still while the sampler
 * is being called by the loop and advances when rings are read. So a question that was asked twice
 * at one time was asked twice in one call.
 */
#include <stdint.h>

#include "base/module_id.h"

#define RECORDING_MAGIC "fathom recording 1\n"

enum recording_type {
	RECORDING_BEGIN = 1, /* struct recording_begin */
	/* What happens, in order (HOST_NOTE_*). */
	RECORDING_TICK, /* struct recording_tick */
	RECORDING_RINGS_READY, /* no body */
	RECORDING_BUILDS_READY, /* no body */
	RECORDING_CALL, /* struct recording_call */
	RECORDING_REPORT, /* struct recording_report, the profile */
	/* Rings. */
	RECORDING_RING, /* struct recording_ring, the bytes that came since */
	RECORDING_LOOKED, /* no body; ends the rings that were read together */
	/* Answers to questions. */
	RECORDING_OPENED, /* struct recording_answer, question */
	RECORDING_LINK, /* struct recording_answer, link text, question; value: bytes of the text */
	RECORDING_STAT_AT, /* struct recording_answer, struct recording_stat, question */
	RECORDING_ENTRY, /* struct recording_answer, name, question; value 0: the end */
	RECORDING_STAT, /* struct recording_answer, struct recording_stat; value: the object */
	RECORDING_DATA, /* struct recording_data, bytes */
	/* Answers of other processes. */
	RECORDING_COLLECT, /* struct recording_collect */
	RECORDING_VDSO, /* struct recording_index */
	RECORDING_REQUEST, /* struct recording_index; only if there was an error */
	RECORDING_INDEX, /* struct recording_index */
	RECORDING_CACHED, /* struct recording_index */
	RECORDING_INDEX_FILE, /* the number of the file (uint64_t), its bytes */
	RECORDING_BUILD_ID, /* struct recording_answer, struct build_id; value: the object */
	/* One more event; follows the RECORDING_TICK of the timers. */
	RECORDING_TIMER, /* when the timer was due (uint64_t) */
	RECORDING_FILE_STATE, /* struct recording_answer, struct file_id; value: the object */
	RECORDING_TYPES,
};

enum recording_question {
	RECORDING_ASKED_OPEN = 'o',
	RECORDING_ASKED_AGAIN = 'a', /* HOST_RESOLVE_* */
	RECORDING_ASKED_BELOW = 'b',
	RECORDING_ASKED_ITSELF_BELOW = 'i',
	RECORDING_ASKED_LINK = 'l',
	RECORDING_ASKED_STAT = 's',
	RECORDING_ASKED_ENTRIES = 'e',
};

struct recording_head {
	uint32_t type;
	uint32_t size; /* of the body, bytes */
	uint64_t time_ns;
};

struct recording_begin {
	int64_t real_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	int64_t boot_offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC */
};

struct recording_call {
	uint32_t call; /* enum sampler_call */
	uint32_t follow_pid; /* from here on only for SAMPLER_CALL_CREATE; 0 = none */
	uint64_t argument;
	uint64_t frequency_hz, period;
	uint64_t profile_limit_bytes, memory_limit_bytes;
	double off_cpu_share;
	uint32_t cycles, user, kernel; /* 0 or 1 */
	uint32_t has_full; /* windows end early when they are full */
	uint32_t filter_tgids;
	uint32_t tgid_count; /* number of uint32_t that follow */
	/* Behind them, for SAMPLER_CALL_SELECT: the two lists of selection_create(), each with its
	 * NUL. */
};

/* What a report puts beside or leaves of the names. */
enum recording_additions {
	RECORDING_FILE_HASHES = 1 << 0,
	RECORDING_BARE_ADDRESSES = 1 << 1,
	RECORDING_SPAN_LABELS = 1 << 2,
	RECORDING_GROUPS = 1 << 3, /* samples say their group */
};

struct recording_report {
	int64_t time_ns, duration_ns, period;
	uint32_t cycles, off_cpu, no_inlines, no_demangle, no_labels;
	uint32_t additions; /* enum recording_additions */
	uint32_t comment_bytes; /* of the comment, which follows; UINT32_MAX = none */
	uint32_t process_count; /* whose numbers follow (uint32_t); UINT32_MAX = all */
	uint32_t pprof_bytes; /* of the gzip-compressed pprof, which follows */
};

struct recording_ring {
	uint32_t number; /* from 0 */
	uint32_t behind_bytes;
	uint64_t size_bytes, room_bytes;
};

struct recording_answer {
	int32_t error; /* errno, or 0 */
	uint32_t value; /* of an opened file: the object, from 1; 0 = a directory */
};

struct recording_stat {
	uint64_t device, inode, size_bytes, mtime_ns;
	uint32_t mode, uid;
};

struct recording_data {
	uint32_t object;
	uint32_t reserved; /* 0 */
	uint64_t offset;
};

struct recording_tick {
	uint32_t timers; /* 0 or 1 */
};

struct recording_collect {
	uint32_t tables, by_file, build_ids; /* 0 or 1 */
};

struct recording_index {
	int32_t error;
	uint32_t file; /* of RECORDING_INDEX_FILE, from 1; 0 = none */
	struct module_id id;
};
