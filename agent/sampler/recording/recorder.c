/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/recording/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/report/report.h"
#include "agent/sampler/profile/profile.h"
#include "agent/sampler/recording/format.h"
#include "agent/sampler/recording/notes.h"
#include "agent/sampler/recording/ring_copy.h"
#include "agent/sampler/sampler.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/host.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/log.h"
#include "base/map.h"
#include "symbolizer/index/index.h"

enum {
	MAX_DESCRIPTORS = 1 << 16, /* those above are not recorded */
	MAX_RINGS = 1 << 12,
	MAX_QUESTION_BYTES = 8192,
	MAX_FILE_BYTES = 256 << 20, /* of a file of /proc; kallsyms is the longest */
	MAX_KNOWN = 1 << 24,
};

/* What a descriptor was opened as. */
struct handle {
	char *path; /* NULL = not opened by us */
	uint32_t object; /* 0 = a directory, or an O_PATH descriptor */
};

struct recorded_ring {
	const struct perf_event_mmap_page *control; /* of the ring that is copied */
	struct ring_copy copy;
};

struct recorder {
	struct host host;
	FILE *out;
	pid_t thread;
	uint64_t now_ns; /* CLOCK_MONOTONIC as the sampler sees it */
	struct recording_begin begin;
	struct handle *handles; /* by descriptor, MAX_DESCRIPTORS */
	struct recorded_ring *rings; /* MAX_RINGS: readers have pointers to them */
	size_t ring_count;
	uint32_t objects; /* number of files opened */
	uint32_t files; /* number of indexes written */
	struct map index_files; /* hash of an index → its number */
	struct map written; /* hashes of data that is in the recording already */
	struct map requests; /* tag → struct module_id */
	bool failed; /* which was logged */
};

/* ---- writing --------------------------------------------------------------------------------- */

struct part {
	const void *bytes;
	size_t size;
};

static void recorder_write(
	struct recorder *r, enum recording_type type, const struct part *parts, size_t count)
{
	struct recording_head head = { .type = type, .time_ns = r->now_ns };
	bool good;

	for (size_t i = 0; i < count; i++)
		head.size += (uint32_t)parts[i].size;
	good = fwrite(&head, sizeof(head), 1, r->out) == 1;
	for (size_t i = 0; i < count; i++)
		good &= fwrite(parts[i].bytes, 1, parts[i].size, r->out) == parts[i].size;
	if (!good && !r->failed)
		log_warn("the recording cannot be written, it is of no use", "%s", "");
	r->failed |= !good;
}

#define RECORD(r, type, ...)                                                           \
	recorder_write((r), (type), (const struct part[]){ { NULL, 0 }, __VA_ARGS__ }, \
		sizeof((const struct part[]){ { NULL, 0 }, __VA_ARGS__ }) / sizeof(struct part))

static struct part text_part(const char *text)
{
	return (struct part){ text, strlen(text) + 1 };
}

static uint64_t recorder_system_ns(clockid_t clock)
{
	struct timespec t = { 0 };

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/* Advances the sampler's clock, by a nanosecond at least. */
static void recorder_tick(struct recorder *r)
{
	uint64_t now_ns = recorder_system_ns(CLOCK_MONOTONIC);

	r->now_ns = MAX(now_ns, r->now_ns + 1);
}

/* Threads of libraries and servers are no part of the sampler. */
static bool is_recorded_thread(const struct recorder *r)
{
	return gettid() == r->thread;
}

static uint64_t recorder_clock_ns(void *context, clockid_t clock)
{
	const struct recorder *r = context;

	if (!is_recorded_thread(r))
		return recorder_system_ns(clock);
	switch (clock) {
	case CLOCK_MONOTONIC:
		return r->now_ns;
	case CLOCK_BOOTTIME:
		return r->now_ns + (uint64_t)r->begin.boot_offset_ns;
	case CLOCK_REALTIME:
		return r->now_ns + (uint64_t)r->begin.real_offset_ns;
	default:
		return recorder_system_ns(clock);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static struct handle *recorder_handle(struct recorder *r, int fd)
{
	if (!is_recorded_thread(r) || fd < 0 || fd >= MAX_DESCRIPTORS || !r->handles[fd].path)
		return NULL;
	return &r->handles[fd];
}

static int recorder_keep_handle(struct recorder *r, int fd, const char *path, uint32_t object)
{
	char *copy = fd < MAX_DESCRIPTORS ? strdup(path) : NULL;

	if (!copy)
		return -ENOMEM;
	free(r->handles[fd].path);
	r->handles[fd] = (struct handle){ .path = copy, .object = object };
	return 0;
}

/* Writes the kind of the question and the path of PATH below DIR_FD. False: it is not recorded. */
static bool recorder_question(struct recorder *r, enum recording_question kind, int dir_fd,
	const char *path, char question[MAX_QUESTION_BYTES])
{
	const struct handle *dir;
	int length;

	if (!is_recorded_thread(r))
		return false;
	if (dir_fd == AT_FDCWD) {
		length = snprintf(question, MAX_QUESTION_BYTES, "%c%s", kind, path);
		return path[0] == '/' && length < MAX_QUESTION_BYTES;
	}
	dir = recorder_handle(r, dir_fd);
	if (!dir)
		return false;
	length = snprintf(question, MAX_QUESTION_BYTES, "%c%s%s%s", kind, dir->path,
		path && path[0] != '/' ? "/" : "", path ? path : "");
	return length < MAX_QUESTION_BYTES;
}

static void recorder_answer(struct recorder *r, const char *question, int error, uint32_t object)
{
	struct recording_answer answer = { .error = error, .value = object };

	RECORD(r, RECORDING_OPENED, { &answer, sizeof(answer) }, text_part(question));
}

static void recorder_data(
	struct recorder *r, uint32_t object, uint64_t offset, const void *bytes, size_t size)
{
	struct recording_data data = { .object = object, .offset = offset };
	uint64_t key[4] = { object, offset, size, hash_bytes(bytes, size) }, one;

	if (!size || map_get(&r->written, hash_bytes(key, sizeof(key)), &one))
		return;
	(void)map_set(&r->written, hash_bytes(key, sizeof(key)), 1);
	RECORD(r, RECORDING_DATA, { &data, sizeof(data) }, { bytes, size });
}

static struct recording_stat to_stat(const struct stat *st)
{
	return (struct recording_stat){
		.device = st->st_dev,
		.inode = st->st_ino,
		.size_bytes = (uint64_t)st->st_size,
		.mtime_ns = (uint64_t)st->st_mtim.tv_sec * UINT64_C(1000000000) +
			    (uint64_t)st->st_mtim.tv_nsec,
		.mode = st->st_mode,
		.uid = st->st_uid,
	};
}

static int recorder_fstat(void *context, int fd, struct stat *ret_stat)
{
	struct recorder *r = context;
	const struct handle *handle = recorder_handle(r, fd);
	struct recording_answer answer = { .value = handle ? handle->object : 0 };
	struct recording_stat st;

	if (fstat(fd, ret_stat))
		return -1;
	st = to_stat(ret_stat);
	if (answer.value)
		RECORD(r, RECORDING_STAT, { &answer, sizeof(answer) }, { &st, sizeof(st) });
	return 0;
}

/* FD was opened: gives it a name in the recording. Closes it on failure. */
static int recorder_name(struct recorder *r, const char *question, int fd, bool is_file)
{
	uint32_t object = is_file ? ++r->objects : 0;
	struct stat st;

	recorder_answer(r, question, 0, object);
	if (recorder_keep_handle(r, fd, question + 1, object)) {
		close(fd);
		errno = ENOMEM;
		return -1;
	}
	if (is_file)
		(void)recorder_fstat(r, fd, &st);
	return fd;
}

/* Copies the present content of a /proc file into TEXT and a memfd, which is returned. */
static int recorder_snapshot(int fd, struct buffer *text)
{
	autoclose int copy = memfd_create("recorded", MFD_CLOEXEC);
	ssize_t got;

	if (copy < 0)
		return -1;
	for (;;) {
		void *room = buffer_room(text, 65536);

		if (!room) {
			errno = ENOMEM;
			return -1;
		}
		got = read(fd, room, 65536);
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		text->size += (size_t)got;
	}
	if (io_write_all(copy, text->bytes, text->size) || lseek(copy, 0, SEEK_SET))
		return -1;
	return take_fd(&copy);
}

static int recorder_open_text(struct recorder *r, const char *question, int fd_)
{
	autocall(buffer_deinit) struct buffer text;
	autoclose int fd = fd_;
	int copy;

	buffer_init(&text, MAX_FILE_BYTES);
	copy = recorder_snapshot(fd, &text);
	if (copy < 0) {
		int error = errno;

		recorder_answer(r, question, error, 0);
		errno = error;
		return -1;
	}
	copy = recorder_name(r, question, copy, true);
	if (copy >= 0)
		recorder_data(r, r->objects, 0, text.bytes, text.size);
	return copy;
}

/* The size of our own memory is read again and again from one descriptor. */
static bool is_read_again(const char *path)
{
	return !strcmp(path, "/proc/self/statm");
}

static int recorder_openat(void *context, int dir_fd, const char *path, int flags)
{
	struct recorder *r = context;
	bool names = flags & (O_PATH | O_DIRECTORY);
	char question[MAX_QUESTION_BYTES];
	int fd = openat(dir_fd, path, flags), error = errno;

	if (!recorder_question(r, RECORDING_ASKED_OPEN, dir_fd, path, question)) {
		errno = error;
		return fd;
	}
	if (fd < 0) {
		recorder_answer(r, question, error, 0);
		errno = error;
		return -1;
	}
	if (names || is_read_again(path))
		return recorder_name(r, question, fd, !names);
	return recorder_open_text(r, question, fd);
}

static int recorder_resolve(int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	if (how == HOST_RESOLVE_AGAIN)
		return open_regular_again(dir_fd, ret_fd);
	return how == HOST_RESOLVE_BELOW ? open_regular_below(dir_fd, path, ret_fd)
					 : open_regular_itself_below(dir_fd, path, ret_fd);
}

static int recorder_open_regular(
	void *context, int dir_fd, const char *path, enum host_resolve how, int *ret_fd)
{
	static const enum recording_question kinds[] = {
		[HOST_RESOLVE_AGAIN] = RECORDING_ASKED_AGAIN,
		[HOST_RESOLVE_BELOW] = RECORDING_ASKED_BELOW,
		[HOST_RESOLVE_ITSELF_BELOW] = RECORDING_ASKED_ITSELF_BELOW,
	};
	struct recorder *r = context;
	char question[MAX_QUESTION_BYTES];
	bool recorded = recorder_question(r, kinds[how], dir_fd, path, question);
	int fd, err = recorder_resolve(dir_fd, path, how, &fd);

	if (recorded && err)
		recorder_answer(r, question, -err, 0);
	else if (recorded)
		fd = recorder_name(r, question, fd, true);
	if (err)
		return err;
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int recorder_fstatat(void *context, int dir_fd, const char *path, struct stat *ret_stat)
{
	struct recorder *r = context;
	struct recording_answer answer = { 0 };
	struct recording_stat st = { 0 };
	char question[MAX_QUESTION_BYTES];
	int got = fstatat(dir_fd, path, ret_stat, 0);

	answer.error = got ? errno : 0;
	if (!got)
		st = to_stat(ret_stat);
	if (recorder_question(r, RECORDING_ASKED_STAT, dir_fd, path, question))
		RECORD(r, RECORDING_STAT_AT, { &answer, sizeof(answer) }, { &st, sizeof(st) },
			text_part(question));
	errno = answer.error;
	return got;
}

static ssize_t recorder_readlinkat(
	void *context, int dir_fd, const char *path, char *text, size_t size)
{
	struct recorder *r = context;
	struct recording_answer answer = { 0 };
	char question[MAX_QUESTION_BYTES];
	ssize_t length = readlinkat(dir_fd, path, text, size);

	answer.error = length < 0 ? errno : 0;
	answer.value = (uint32_t)MAX(length, 0);
	if (recorder_question(r, RECORDING_ASKED_LINK, dir_fd, path, question))
		RECORD(r, RECORDING_LINK, { &answer, sizeof(answer) }, { text, answer.value },
			text_part(question));
	errno = answer.error;
	return length;
}

static ssize_t recorder_pread(void *context, int fd, void *bytes, size_t size, off_t off)
{
	struct recorder *r = context;
	const struct handle *handle = recorder_handle(r, fd);
	ssize_t got = pread(fd, bytes, size, off);

	if (handle && handle->object && got > 0)
		recorder_data(r, handle->object, (uint64_t)off, bytes, (size_t)got);
	return got;
}

static struct dirent *recorder_readdir(void *context, DIR *directory)
{
	struct recorder *r = context;
	const struct handle *handle = recorder_handle(r, dirfd(directory));
	struct dirent *entry = readdir(directory);
	struct recording_answer answer = { .error = entry ? 0 : errno, .value = entry != NULL };
	char question[MAX_QUESTION_BYTES];

	if (handle) {
		snprintf(question, sizeof(question), "%c%s", RECORDING_ASKED_ENTRIES, handle->path);
		RECORD(r, RECORDING_ENTRY, { &answer, sizeof(answer) },
			text_part(entry ? entry->d_name : ""), text_part(question));
	}
	errno = answer.error;
	return entry;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static struct recorded_ring *recorder_ring(struct recorder *r, const struct ring *ring)
{
	struct recorded_ring *recorded;

	for (size_t i = 0; i < r->ring_count; i++)
		if (r->rings[i].control == ring->control)
			return &r->rings[i];
	if (r->ring_count == MAX_RINGS)
		return NULL;
	recorded = &r->rings[r->ring_count];
	if (ring_copy_init(&recorded->copy, ring->size_bytes, ring->behind_bytes, ring->room_bytes))
		return NULL;
	recorded->control = ring->control;
	r->ring_count++;
	return recorded;
}

/* Moves what RING holds into its copy, as far as that has room. */
static void recorder_move(
	struct recorded_ring *recorded, struct ring *ring, uint8_t *scratch, struct buffer *moved)
{
	uint64_t time_ns;
	size_t size;
	int found;

	ring_look(ring);
	while ((found = ring_peek(ring, &time_ns, &size)) > 0 &&
		size <= ring_copy_left(&recorded->copy)) {
		const uint8_t *record = ring_record(ring, size, scratch);

		(void)buffer_append(moved, record, size);
		ring_copy_append(&recorded->copy, record, size);
		ring_pop(ring, time_ns, size);
	}
	if (found < 0) {
		const uint64_t nonsense[2] = { 0 };

		(void)buffer_append(moved, nonsense, sizeof(nonsense));
		ring_copy_append(&recorded->copy, (const uint8_t *)nonsense, sizeof(nonsense));
		ring_drop(ring);
	}
	ring_release(ring);
}

static void recorder_rings(void *context, struct ring **rings, size_t count)
{
	struct recorder *r = context;
	autofree uint8_t *scratch = malloc(RING_MAX_RECORD_BYTES);

	for (size_t i = 0; scratch && i < count; i++) {
		autocall(buffer_deinit) struct buffer moved;
		struct recorded_ring *recorded = recorder_ring(r, rings[i]);
		struct recording_ring ring;

		if (!recorded)
			continue;
		buffer_init(&moved, UINT32_MAX);
		recorder_move(recorded, rings[i], scratch, &moved);
		ring = (struct recording_ring){
			.number = (uint32_t)(recorded - r->rings),
			.behind_bytes = (uint32_t)rings[i]->behind_bytes,
			.size_bytes = rings[i]->size_bytes,
			.room_bytes = rings[i]->room_bytes,
		};
		RECORD(r, RECORDING_RING, { &ring, sizeof(ring) }, { moved.bytes, moved.size });
		rings[i] = &recorded->copy.ring;
	}
	recorder_tick(r);
	RECORD(r, RECORDING_LOOKED, { NULL, 0 });
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void recorder_note_call(struct recorder *r, const struct note_call *note)
{
	const struct sampler_options *o = note->options;
	struct recording_call call = { .call = note->call, .argument = note->argument };
	const uint32_t *tgids = NULL;

	recorder_tick(r);
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
	RECORD(r, RECORDING_CALL, { &call, sizeof(call) },
		{ tgids, call.tgid_count * sizeof(*tgids) });
}

/*
 * Collects the numbers of the processes whose samples are in a report. Returns false if only a part
 * of a process's samples is in it, which is not recorded.
 */
static bool recorder_included(const struct note_report *note, struct buffer *ret_processes)
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

static void recorder_note_report(struct recorder *r, const struct note_report *note)
{
	autocall(buffer_deinit) struct buffer processes;
	const struct report_options *o = note->options;
	struct recording_report report = {
		.time_ns = o->time_ns,
		.duration_ns = o->duration_ns,
		.period = o->period,
		.cycles = o->cycles,
		.off_cpu = o->off_cpu,
		.no_inlines = o->no_inlines,
		.no_demangle = o->no_demangle,
		.no_labels = o->no_labels,
		.file_hashes = o->file_hashes,
		.comment_bytes = o->comment ? (uint32_t)strlen(o->comment) : UINT32_MAX,
		.pprof_bytes = (uint32_t)note->pprof_bytes,
	};

	buffer_init(&processes, UINT32_MAX);
	if (o->include && !recorder_included(note, &processes))
		return;
	report.process_count =
		o->include ? (uint32_t)(processes.size / sizeof(uint32_t)) : UINT32_MAX;
	RECORD(r, RECORDING_REPORT, { &report, sizeof(report) },
		{ o->comment, o->comment ? report.comment_bytes : 0 },
		{ processes.bytes, processes.size }, { note->pprof, note->pprof_bytes });
}

/* The number of INDEX's file in the recording, which has it once; 0 if there is none. */
static uint32_t recorder_index_file(struct recorder *r, const struct index *index)
{
	uint64_t number, hash;

	if (!index)
		return 0;
	hash = hash_bytes(index_file(index), index_bytes(index));
	if (map_get(&r->index_files, hash, &number))
		return (uint32_t)number;
	number = ++r->files;
	(void)map_set(&r->index_files, hash, number);
	RECORD(r, RECORDING_INDEX_FILE, { &number, sizeof(number) },
		{ index_file(index), index_bytes(index) });
	return (uint32_t)number;
}

static void recorder_write_index(struct recorder *r, enum recording_type type,
	const struct module_id *id, int error, const struct index *index)
{
	struct recording_index body = { .error = error, .file = recorder_index_file(r, index) };

	if (id)
		body.id = *id;
	RECORD(r, type, { &body, sizeof(body) });
}

static void recorder_note_request(struct recorder *r, const struct note_request *note)
{
	struct module_id *id = map_get_pointer(&r->requests, note->tag);

	if (!id) {
		id = malloc(sizeof(*id));
		if (!id || map_set_pointer(&r->requests, note->tag, id)) {
			free(id);
			return;
		}
	}
	*id = *note->id;
	if (note->error)
		recorder_write_index(r, RECORDING_REQUEST, id, note->error, NULL);
}

static void recorder_note(void *context, enum host_note kind, const void *what)
{
	struct recorder *r = context;
	const struct note_index *index = what;
	const struct note_collect *collect = what;
	const struct note_vdso *vdso = what;
	const bool *timers = what;

	if (!is_recorded_thread(r))
		return;
	switch (kind) {
	case HOST_NOTE_TICK: {
		struct recording_tick body = { *timers };

		recorder_tick(r);
		RECORD(r, RECORDING_TICK, { &body, sizeof(body) });
		break;
	}
	case HOST_NOTE_RINGS_READY:
		RECORD(r, RECORDING_RINGS_READY, { NULL, 0 });
		break;
	case HOST_NOTE_BUILDS_READY:
		RECORD(r, RECORDING_BUILDS_READY, { NULL, 0 });
		break;
	case HOST_NOTE_CALL:
		recorder_note_call(r, what);
		break;
	case HOST_NOTE_COLLECT: {
		struct recording_collect body = { collect->tables, collect->by_file,
			collect->build_ids };

		RECORD(r, RECORDING_COLLECT, { &body, sizeof(body) });
		break;
	}
	case HOST_NOTE_VDSO:
		recorder_write_index(r, RECORDING_VDSO, vdso->id, vdso->error, NULL);
		break;
	case HOST_NOTE_REQUEST:
		recorder_note_request(r, what);
		break;
	case HOST_NOTE_INDEX:
		recorder_write_index(r, RECORDING_INDEX, map_get_pointer(&r->requests, index->tag),
			0, index->index);
		break;
	case HOST_NOTE_CACHED:
		recorder_write_index(r, RECORDING_CACHED, index->id, index->error, index->index);
		break;
	case HOST_NOTE_REPORT:
		recorder_note_report(r, what);
		break;
	}
}

/* ---- the start ------------------------------------------------------------------------------- */

static void recorder_begin(struct recorder *r)
{
	uint64_t now_ns;

	recorder_tick(r);
	now_ns = r->now_ns;
	r->begin.real_offset_ns = (int64_t)(recorder_system_ns(CLOCK_REALTIME) - now_ns);
	r->begin.boot_offset_ns = (int64_t)(recorder_system_ns(CLOCK_BOOTTIME) - now_ns);
	(void)fwrite(RECORDING_MAGIC, 1, strlen(RECORDING_MAGIC), r->out);
	RECORD(r, RECORDING_BEGIN, { &r->begin, sizeof(r->begin) });
}

int recorder_start(const char *path)
{
	struct recorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->handles = calloc(MAX_DESCRIPTORS, sizeof(*r->handles));
	r->rings = calloc(MAX_RINGS, sizeof(*r->rings));
	r->out = fopen(path, "we");
	if (!r->out || !r->handles || !r->rings) {
		int err = r->out ? -ENOMEM : -errno;

		free(r->handles);
		free(r->rings);
		free(r);
		return err;
	}
	r->thread = gettid();
	map_init(&r->index_files, MAX_KNOWN);
	map_init(&r->written, MAX_KNOWN);
	map_init(&r->requests, MAX_KNOWN);
	recorder_begin(r);
	r->host = (struct host){
		.context = r,
		.clock_ns = recorder_clock_ns,
		.openat = recorder_openat,
		.open_regular = recorder_open_regular,
		.fstat = recorder_fstat,
		.fstatat = recorder_fstatat,
		.readlinkat = recorder_readlinkat,
		.pread = recorder_pread,
		.readdir = recorder_readdir,
		.rings = recorder_rings,
		.note = recorder_note,
	};
	/* It lives until the process exits, which flushes the file. */
	host_current = &r->host;
	return 0;
}
