/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/torture.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	SLOTS = 1 << 18,
	TRIES_FIRST = 80, /* short form: fail each of the first calls, */
	TRIES_BETWEEN = 60, /* this many of those in between, */
	TRIES_LAST = 20, /* and each of the last ones */
	CALLERS = 12,
};

/* A resource that must be released. */
struct held {
	const void *address;
	const void *site; /* the call's return address */
	const char *call;
	uint64_t round; /* entries of earlier rounds are stale */
	size_t size;
	bool given_back;
};

static struct {
	bool armed; /* calls are counted */
	bool following; /* acquired and released resources are tracked */
	bool running; /* a case is running */
	uint64_t calls;
	uint64_t fails; /* number of the call that fails; 0 = none */
	const char *failed;
	void *callers[CALLERS]; /* of the call that failed, innermost first */
	int caller_count;
	int failed_errno;
	uint64_t round;
	struct held held[SLOTS];
	pthread_t thread;
} torture;

extern const char __executable_start;

static size_t site_offset(const void *site)
{
	return (size_t)((const char *)site - &__executable_start);
}

static bool is_ours(void)
{
	return torture.running && pthread_equal(pthread_self(), torture.thread);
}

/* True if this call is the one that fails. */
static bool torture_fails(const char *call, int error)
{
	if (!torture.armed || !is_ours() || ++torture.calls != torture.fails)
		return false;
	torture.failed = call;
	torture.caller_count = backtrace(torture.callers, CALLERS);
	torture.failed_errno = error;
	errno = error;
	return true;
}

/* ---- what is held --------------------------------------------------------------------------- */

static struct held *slot_of(const void *address)
{
	size_t slot = ((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15ULL >> 46;

	for (size_t i = 0; i < SLOTS; i++) {
		struct held *h = &torture.held[(slot + i) % SLOTS];

		if (h->round != torture.round || h->address == address)
			return h;
	}
	return NULL;
}

static void *hold(void *address, size_t size, const char *call, const void *site)
{
	struct held *h;

	if (!address || address == MAP_FAILED || !torture.following || !is_ours())
		return address;
	h = slot_of(address);
	if (h)
		*h = (struct held){ .address = address,
			.site = site,
			.call = call,
			.round = torture.round,
			.size = size };
	return address;
}

static void torture_forget(const void *address)
{
	struct held *h;

	if (!address || !torture.following)
		return;
	h = slot_of(address);
	if (h && h->round == torture.round)
		h->given_back = true;
}

static unsigned int print_held(void)
{
	unsigned int count = 0;

	for (size_t i = 0; i < SLOTS; i++) {
		const struct held *h = &torture.held[i];

		if (h->round != torture.round || h->given_back)
			continue;
		if (count++ < 10)
			print_message("# %zu bytes of %s() at 0x%zx were not given back\n", h->size,
				h->call, site_offset(h->site));
	}
	return count;
}

static unsigned int open_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* ---- the driver ----------------------------------------------------------------------------- */

static bool is_optional(const struct torture *t, const char *call)
{
	const char *list = t->optional ? t->optional : "";
	size_t length = strlen(call);

	for (const char *at = list; (at = strstr(at, call)); at += length) {
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || !at[length]))
			return true;
	}
	return !strcmp(list, "*");
}

static void judge(const struct torture *t, int result)
{
	if (!torture.failed) {
		if (result < 0)
			fail_msg("nothing failed, and the result is %d", result);
		return;
	}
	if (result >= 0) {
		if (!is_optional(t, torture.failed))
			fail_msg("a failure was not noticed");
	} else if (!t->other_errors && result != -torture.failed_errno &&
		   !is_optional(t, torture.failed)) {
		fail_msg("error %d in place of %d", result, -torture.failed_errno);
	}
}

/* Runs one try in which call FAILS fails (0 = none). Returns the number of calls made. */
static uint64_t torture_try(const struct torture *t, uint64_t fails)
{
	unsigned int descriptors = open_descriptors();
	int result;

	torture.round++;
	torture.calls = 0;
	torture.fails = fails;
	torture.failed = NULL;
	torture.following = true;
	if (t->begin)
		t->begin(t->context);
	torture.armed = true;
	result = t->operation(t->context);
	torture.armed = false;
	if (t->end)
		t->end(t->context, result);
	torture.following = false;
	judge(t, result);
	if (!t->freed_elsewhere)
		assert_int_equal(print_held(), 0);
	assert_int_equal(open_descriptors(), descriptors);
	return torture.calls;
}

static uint64_t torture_next(uint64_t call, uint64_t calls, uint64_t step)
{
	if (call < TRIES_FIRST || call + TRIES_LAST >= calls)
		return call + 1;
	return call + step;
}

static void torture_disarm(void)
{
	torture.armed = false;
	torture.following = false;
}

void torture_run(const struct torture *t)
{
	const char *full = getenv("FULL");
	uint64_t calls, step = 1;

	pthread_atfork(NULL, NULL, torture_disarm);
	torture.thread = pthread_self();
	torture.running = true;
	calls = torture_try(t, 0); /* the first run may fill permanent caches */
	calls = torture_try(t, 0);
	if ((!full || !*full) && calls > TRIES_FIRST + TRIES_BETWEEN + TRIES_LAST)
		step = (calls - TRIES_FIRST - TRIES_LAST) / TRIES_BETWEEN + 1;
	for (uint64_t call = 1; call <= calls; call = torture_next(call, calls, step))
		torture_try(t, call);
	torture.running = false;
}

const char *torture_failed(void)
{
	return torture.failed;
}

/* Prints the callers for addr2line. */
static void print_failed(void)
{
	print_message("# call %llu, %s(), had failed with %s, called from",
		(unsigned long long)torture.fails, torture.failed,
		strerrorname_np(torture.failed_errno));
	/* Skips our own two frames. */
	for (int i = 2; i < torture.caller_count; i++)
		print_message(" 0x%zx", site_offset(torture.callers[i]) - 1);
	print_message("\n");
}

int torture_errno(void)
{
	return torture.failed ? torture.failed_errno : 0;
}

int torture_teardown(void **state)
{
	(void)state;
	torture_disarm();
	if (torture.running && torture.failed)
		print_failed();
	torture.running = false;
	return 0;
}

/* ---- the wrappers --------------------------------------------------------------------------- */

#define SITE __builtin_return_address(0)
#define CALL(type, name, error, failure, parameters, arguments) \
	type __real_##name parameters;                          \
	type __wrap_##name parameters;                          \
	type __wrap_##name parameters                           \
	{                                                       \
		if (torture_fails(#name, error))                \
			return failure;                         \
		return __real_##name arguments;                 \
	}
#define OWN(name)
#include "tests/unit/torture_calls.def"

int __real_vasprintf(char **text, const char *format, va_list arguments);
int __wrap_vasprintf(char **text, const char *format, va_list arguments);
int __wrap_asprintf(char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **ret, size_t alignment, size_t size);
int __wrap_posix_memalign(void **ret, size_t alignment, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_strndup(const char *text, size_t length);
char *__wrap_strndup(const char *text, size_t length);
void __real_free(void *address);
void __wrap_free(void *address);
ssize_t __real_getline(char **line, size_t *size, FILE *file);
ssize_t __wrap_getline(char **line, size_t *size, FILE *file);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fdopen(int fd, const char *mode);
FILE *__wrap_fdopen(int fd, const char *mode);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_openat(int dir_fd, const char *path, int flags, ...);
int __wrap_openat(int dir_fd, const char *path, int flags, ...);
int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);
int __real_dup(int fd);
int __wrap_dup(int fd);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t off);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t off);
int __real_munmap(void *address, size_t size);
int __wrap_munmap(void *address, size_t size);

int __wrap_vasprintf(char **text, const char *format, va_list arguments)
{
	int length;

	if (torture_fails("asprintf", ENOMEM))
		return -1;
	length = __real_vasprintf(text, format, arguments);
	if (length >= 0)
		hold(*text, (size_t)length + 1, "asprintf", SITE);
	return length;
}

int __wrap_asprintf(char **text, const char *format, ...)
{
	va_list arguments;
	int length;

	if (torture_fails("asprintf", ENOMEM))
		return -1;
	va_start(arguments, format);
	length = __real_vasprintf(text, format, arguments);
	va_end(arguments);
	if (length >= 0)
		hold(*text, (size_t)length + 1, "asprintf", SITE);
	return length;
}

void *__wrap_calloc(size_t count, size_t size)
{
	if (torture_fails("calloc", ENOMEM))
		return NULL;
	return hold(__real_calloc(count, size), count * size, "calloc", SITE);
}

void *__wrap_malloc(size_t size)
{
	if (torture_fails("malloc", ENOMEM))
		return NULL;
	return hold(__real_malloc(size), size, "malloc", SITE);
}

void *__wrap_realloc(void *old, size_t size)
{
	uintptr_t was = (uintptr_t)old;
	void *new;

	if (torture_fails("realloc", ENOMEM))
		return NULL;
	new = __real_realloc(old, size);
	if (new)
		torture_forget((void *)was);
	return hold(new, size, "realloc", SITE);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	uintptr_t was = (uintptr_t)old;
	void *new;

	if (torture_fails("reallocarray", ENOMEM))
		return NULL;
	new = __real_reallocarray(old, count, size);
	if (new)
		torture_forget((void *)was);
	return hold(new, count * size, "reallocarray", SITE);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	if (torture_fails("aligned_alloc", ENOMEM))
		return NULL;
	return hold(__real_aligned_alloc(alignment, size), size, "aligned_alloc", SITE);
}

int __wrap_posix_memalign(void **ret, size_t alignment, size_t size)
{
	int error;

	if (torture_fails("posix_memalign", ENOMEM))
		return ENOMEM;
	error = __real_posix_memalign(ret, alignment, size);
	if (!error)
		hold(*ret, size, "posix_memalign", SITE);
	return error;
}

char *__wrap_strdup(const char *text)
{
	if (torture_fails("strdup", ENOMEM))
		return NULL;
	return hold(__real_strdup(text), strlen(text) + 1, "strdup", SITE);
}

char *__wrap_strndup(const char *text, size_t length)
{
	if (torture_fails("strndup", ENOMEM))
		return NULL;
	return hold(__real_strndup(text, length), length + 1, "strndup", SITE);
}

void __wrap_free(void *address)
{
	torture_forget(address);
	__real_free(address);
}

ssize_t __wrap_getline(char **line, size_t *size, FILE *file)
{
	ssize_t length;

	if (torture_fails("getline", EIO))
		return -1;
	torture_forget(*line);
	length = __real_getline(line, size, file);
	hold(*line, *size, "getline", SITE);
	return length;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return torture_fails("fopen", EMFILE) ? NULL : __real_fopen(path, mode);
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	return torture_fails("fdopen", ENOMEM) ? NULL : __real_fdopen(fd, mode);
}

static mode_t mode_of(int flags, va_list arguments)
{
	return flags & (O_CREAT | __O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
}

int __wrap_open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return torture_fails("open", EMFILE) ? -1 : __real_open(path, flags, mode);
}

int __wrap_openat(int dir_fd, const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	return torture_fails("openat", EMFILE) ? -1 : __real_openat(dir_fd, path, flags, mode);
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list arguments;
	long argument;

	va_start(arguments, command);
	argument = va_arg(arguments, long);
	va_end(arguments);
	return torture_fails("fcntl", EMFILE) ? -1 : __real_fcntl(fd, command, argument);
}

int __wrap_dup(int fd)
{
	return torture_fails("dup", EMFILE) ? -1 : __real_dup(fd);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t off)
{
	if (torture_fails("mmap", ENOMEM))
		return MAP_FAILED;
	return hold(__real_mmap(address, size, protection, flags, fd, off), size, "mmap", SITE);
}

int __wrap_munmap(void *address, size_t size)
{
	torture_forget(address);
	return __real_munmap(address, size);
}
