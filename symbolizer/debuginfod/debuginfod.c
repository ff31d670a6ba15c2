/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/debuginfod/debuginfod.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { MAX_DOUBLINGS = 4 };

static const uint64_t MAX_FILE_BYTES = UINT64_C(1) << 30;
static const uint64_t MINUTE_NS = UINT64_C(60000000000);
static const uint64_t LONGEST_PAUSE_NS = 15 * UINT64_C(60000000000);
/* The child's own limit is shorter. */
static const uint64_t DEADLINE_NS = 11 * UINT64_C(60000000000);

struct debuginfod {
	struct debuginfod_options options;
	char *urls;
	uint64_t paused_until_ns;
	uint64_t minute_ns; /* start of the current minute */
	unsigned int asked; /* in that minute */
	struct debuginfod_state state;
};

DEFINE_AUTO(debuginfod);

int debuginfod_create(const struct debuginfod_options *options, struct debuginfod **ret_debuginfod)
{
	autocall(auto_debuginfod_destroy) struct debuginfod *d = calloc(1, sizeof(*d));
	const char *at = options->urls;
	size_t length;

	if (!d)
		return -ENOMEM;
	if (!debuginfod_next_url(&at, &length))
		return -ENOENT;
	d->options = *options;
	d->options.limit_bytes =
		options->limit_bytes ? MIN(options->limit_bytes, MAX_FILE_BYTES) : MAX_FILE_BYTES;
	d->urls = strdup(options->urls);
	if (!d->urls)
		return -ENOMEM;
	*ret_debuginfod = take(d);
	return 0;
}

void debuginfod_destroy(struct debuginfod *d)
{
	if (!d)
		return;
	free(d->urls);
	free(d);
}

/* ---- how often ------------------------------------------------------------------------------ */

bool debuginfod_is_paused(const struct debuginfod *d, uint64_t now_ns)
{
	return now_ns < d->paused_until_ns;
}

bool debuginfod_may_ask(struct debuginfod *d, uint64_t now_ns)
{
	if (now_ns - d->minute_ns >= MINUTE_NS) {
		d->minute_ns = now_ns;
		d->asked = 0;
	}
	return !debuginfod_is_paused(d, now_ns) &&
	       (!d->options.per_minute || d->asked < d->options.per_minute);
}

bool debuginfod_is_absent(const struct debuginfod *d, const struct build_id *id)
{
	const struct module_id debug_file = { .build_id = *id };
	uint64_t now_ns = clock_real_ns();

	return d->options.cache && (cache_absent(d->options.cache, id, d->urls, now_ns) ||
					   cache_pause_ns(d->options.cache, &debug_file, now_ns));
}

bool debuginfod_is_wanted(
	const struct debuginfod *d, const struct index *index, struct build_id *ret_id)
{
	const struct build_id *id = index_build_id(index);

	if (index_sources(index) & (INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB) ||
		index_has_own_dwarf(index) || id->size <= 1 ||
		debuginfod_is_paused(d, clock_monotonic_ns()) || debuginfod_is_absent(d, id))
		return false;
	*ret_id = *id;
	return true;
}

/* ---- what came of it ------------------------------------------------------------------------ */

static void count(struct debuginfod *d, enum metric id, uint64_t number)
{
	if (d->options.metrics)
		metrics_add(d->options.metrics, id, number);
}

static void set_absent(struct debuginfod *d, const struct build_id *id)
{
	if (d->options.cache)
		cache_set_absent(d->options.cache, id, d->urls);
}

static void pause_asking(struct debuginfod *d, const struct debuginfod_answer *a, uint64_t now_ns)
{
	unsigned int doublings = MIN(d->state.failures, (unsigned int)MAX_DOUBLINGS);

	/* Questions already under way when the pause began do not lengthen it. */
	if (debuginfod_is_paused(d, now_ns))
		return;
	d->paused_until_ns = now_ns + MIN(MINUTE_NS << doublings, LONGEST_PAUSE_NS);
	d->state.failures++;
	d->state.last = *a;
}

static enum metric metric_of(int error)
{
	switch (error) {
	case -ENOENT:
		return METRIC_DEBUGINFOD_ABSENT;
	case -EFBIG:
		return METRIC_DEBUGINFOD_TOO_LARGE;
	case -EBADMSG:
		return METRIC_DEBUGINFOD_WRONG;
	default:
		return METRIC_DEBUGINFOD_FAILED;
	}
}

void debuginfod_note(struct debuginfod *d, const struct build_id *id,
	const struct debuginfod_answer *answer, uint64_t now_ns)
{
	int error = answer->error;

	if (error)
		count(d, metric_of(error), 1);
	if (error == -ENOENT || error == -EFBIG || error == -EBADMSG)
		set_absent(d, id);
	if (error == -EBADMSG)
		d->state.wrong++;
	else if (!error || answer->answered)
		d->state.failures = 0;
	else
		pause_asking(d, answer, now_ns);
}

void debuginfod_is_right(struct debuginfod *d)
{
	count(d, METRIC_DEBUGINFOD_FOUND, 1);
}

void debuginfod_is_wrong(struct debuginfod *d, const struct build_id *id)
{
	count(d, METRIC_DEBUGINFOD_WRONG, 1);
	d->state.wrong++;
	set_absent(d, id);
}

/* A module ID without a content hash is used only for debug files, so the count is theirs alone. */
void debuginfod_is_too_much(struct debuginfod *d, const struct build_id *id)
{
	const struct module_id debug_file = { .build_id = *id };

	if (d->options.cache)
		cache_add_interrupted(d->options.cache, &debug_file);
}

struct debuginfod_state debuginfod_state(const struct debuginfod *d)
{
	return d->state;
}

const char *debuginfod_explain(int error)
{
	switch (error) {
	case -EREMOTEIO:
		return "the server or the network failed";
	case -EACCES:
		return "the server rejects the credentials";
	case -EKEYREJECTED:
		return "TLS: the server's certificate is missing or not trusted";
	case -ENOSYS:
		return "libcurl is not installed";
	case -EBADMSG:
		return "the response is not an ELF file";
	case -EFBIG:
		return "the file exceeds the size limit";
	case -ENOENT:
		return "no server has it";
	default:
		return strerror(-error);
	}
}

/* ---- asking --------------------------------------------------------------------------------- */

static int scratch(const struct debuginfod *d, int *ret_fd)
{
	int fd;

	if (d->options.cache)
		return cache_scratch(d->options.cache, ret_fd);
	fd = memfd_create("fathom-debuginfo", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int debuginfod_ask(
	struct debuginfod *d, const struct build_id *id, struct debuginfod_request *ret_request)
{
	struct debuginfod_request r = { .id = *id };
	struct debuginfod_question question;
	autoclose int fd = -1;
	int err = scratch(d, &fd);

	if (err)
		return err;
	question = (struct debuginfod_question){
		.urls = d->urls,
		.id = id,
		.limit_bytes = d->options.limit_bytes,
		.output_fd = fd,
	};
	err = debuginfod_fetch_start(&question, &r.child);
	if (err)
		return err;
	d->asked++;
	r.deadline_ns = clock_monotonic_ns() + DEADLINE_NS;
	r.fd = take_fd(&fd);
	*ret_request = r;
	return 0;
}

void debuginfod_abandon(struct debuginfod_request *r)
{
	/* It has only our own files open, so this does not take long. */
	while (!sandbox_kill(&r->child))
		;
	if (r->fd >= 0)
		close(take_fd(&r->fd));
}

int debuginfod_collect(
	struct debuginfod *d, struct debuginfod_request *r, uint64_t now_ns, int *ret_fd)
{
	struct debuginfod_answer answer = { .error = -ETIMEDOUT };
	struct stat st;

	if (sandbox_receive(&r->child))
		debuginfod_fetch_finish(&r->child, &answer);
	else if (now_ns < r->deadline_ns)
		return -EAGAIN;
	debuginfod_note(d, &r->id, &answer, now_ns);
	if (!answer.error) {
		count(d, METRIC_DEBUGINFOD_BYTES, fstat(r->fd, &st) ? 0 : (uint64_t)st.st_size);
		*ret_fd = take_fd(&r->fd);
	}
	debuginfod_abandon(r);
	return answer.error;
}
