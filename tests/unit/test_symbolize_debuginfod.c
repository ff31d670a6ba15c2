/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom symbolize` with a debuginfod server: a stripped copy of this test gets its names and
 * lines from the debug file that the server has, doesn't have, or mixes up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/symbolize.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/debuginfod/debuginfod.h"
#include "symbolizer/indexer/elf/build_id.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/unit/fault_server.h"

enum { MAX_FILE_BYTES = 256 << 20 };

extern const char __executable_start[];

static char directory[] = "/tmp/fathom-test-XXXXXX";
static char self[PATH_MAX];
static char hex[2 * BUILD_ID_MAX_BYTES + 1]; /* our build ID */
static struct build_id id;

static __attribute__((noinline, used)) int symbolize_me(int number)
{
	return number * 3;
}

static const char *below(const char *name)
{
	static char paths[4][PATH_MAX + 64];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

/* ---- the server and the files ---------------------------------------------------------------- */

struct world {
	struct fault_server *server;
	const char *file; /* what it has under our build ID; NULL = nothing */
	char asked[512]; /* the last request line */
	struct symbolize_indexes indexes;
	char *said; /* on standard error by the last call */
};

static void answer_request(struct fault_connection *c)
{
	struct world *w = c->context;
	struct fault_request request = { 0 };
	autocall(buffer_deinit) struct buffer bytes;
	char head[256];

	buffer_init(&bytes, MAX_FILE_BYTES);
	if (!fault_read_request(c, &request))
		return;
	snprintf(w->asked, sizeof(w->asked), "%.*s", (int)strcspn(request.head, "\r\n"),
		request.head);
	free(request.body);
	if (!w->file || io_read_file(AT_FDCWD, w->file, &bytes)) {
		fault_text(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
		return;
	}
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", bytes.size);
	(void)(fault_text(c, head) && fault_write(c, bytes.bytes, bytes.size));
}

static void use_server(struct world *w, int port)
{
	char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	debuginfod_destroy(w->indexes.debuginfod);
	assert_int_equal(debuginfod_create(
				 &(struct debuginfod_options){
					 .urls = url,
					 .cache = w->indexes.cache,
				 },
				 &w->indexes.debuginfod),
		0);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	if (!w || cache_create(below("cache"), MAX_FILE_BYTES, &w->indexes.cache))
		return -1;
	w->indexes.debug_directories = "";
	w->file = below("debug");
	w->server = fault_server_start(answer_request, w, NULL);
	use_server(w, fault_server_port(w->server));
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	char command[PATH_MAX];

	symbolize_indexes_deinit(&w->indexes);
	fault_server_stop(w->server);
	free(w->said);
	free(w);
	snprintf(command, sizeof(command), "rm -rf %s/cache", directory);
	return system(command);
}

/* What the stripped program needs, in the directory. */
static int make_files(void **state)
{
	autoclose int fd = open(self, O_RDONLY | O_CLOEXEC);
	char command[4 * PATH_MAX];

	(void)state;
	if (build_id_read(fd, &id))
		return -1;
	build_id_format(&id, hex, sizeof(hex));
	snprintf(command, sizeof(command),
		"cd %s && objcopy --only-keep-debug %s debug && strip -o bare %s", directory, self,
		self);
	return system(command);
}

static int remove_files(void **state)
{
	char command[PATH_MAX];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

/* Without -g the debug file has no lines, and no server is of use. */
static bool has_lines(void)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), "readelf -SW %s | grep -q debug_line", self);
	return !system(command);
}

static void needs_lines(void)
{
	if (!has_lines())
		skip();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int begin_reading(FILE *file)
{
	int before = dup(STDERR_FILENO);

	assert_true(before >= 0);
	fflush(NULL);
	dup2(fileno(file), STDERR_FILENO);
	return before;
}

static void end_reading(struct world *w, FILE *file, int before)
{
	size_t size;

	fflush(NULL);
	dup2(before, STDERR_FILENO);
	close(before);
	rewind(file);
	free(w->said);
	w->said = calloc(1, 4096);
	assert_non_null(w->said);
	size = fread(w->said, 1, 4095, file);
	w->said[size] = 0;
	fclose(file);
}

/* The name of symbolize_me according to INDEX, which it frees; "" without one. */
static const char *name_of(struct index *index)
{
	uint64_t address =
		(uint64_t)(uintptr_t)symbolize_me - (uint64_t)(uintptr_t)__executable_start;
	static char name[128];
	struct index_frame frame;

	*name = 0;
	if (index && index_lookup(index, address, &frame, 1))
		snprintf(name, sizeof(name), "%s", frame.name);
	index_destroy(index);
	return name;
}

static const char *name_in_program(struct world *w)
{
	FILE *file = tmpfile();
	int before = begin_reading(file), err;
	struct index *index = NULL;

	err = symbolize_index_of_file(&w->indexes, below("bare"), &index);
	end_reading(w, file, before);
	assert_int_equal(err, 0);
	return name_of(index);
}

static int index_by_id(struct world *w, const struct build_id *wanted, struct index **ret_index)
{
	FILE *file = tmpfile();
	int before = begin_reading(file), err;

	err = symbolize_index_of_id(&w->indexes, wanted, "/gone/program", ret_index);
	end_reading(w, file, before);
	return err;
}

static unsigned int requests(const struct world *w)
{
	return fault_server_connections(w->server);
}

/* ---- a stripped program ---------------------------------------------------------------------- */

static void the_servers_debug_file_has_the_names(void **state)
{
	char expected[256];
	struct world *w = *state;

	needs_lines();
	assert_string_equal(name_in_program(w), "symbolize_me");
	assert_string_equal(w->said, "");
	snprintf(expected, sizeof(expected), "GET /buildid/%s/debuginfo HTTP/1.1", hex);
	assert_string_equal(w->asked, expected);
	/* From then on it is in the cache. */
	assert_string_equal(name_in_program(w), "symbolize_me");
	assert_int_equal(requests(w), 1);
}

static void a_server_without_the_file_is_asked_once(void **state)
{
	struct world *w = *state;

	w->file = NULL;
	assert_string_equal(name_in_program(w), "");
	assert_string_equal(w->said, "");
	assert_string_equal(name_in_program(w), "");
	assert_int_equal(requests(w), 1);
}

/* This test's stripped file has the build ID but no lines. */
static void a_wrong_file_is_reported_and_not_fetched_again(void **state)
{
	struct world *w = *state;

	w->file = below("bare");
	assert_string_equal(name_in_program(w), "");
	assert_non_null(strstr(w->said,
		"fathom symbolize: debuginfod sent a file that is not the debug file of "));
	assert_string_equal(name_in_program(w), "");
	assert_string_equal(w->said, "");
	assert_int_equal(requests(w), 1);
}

static void a_server_that_does_not_answer_is_paused(void **state)
{
	struct world *w = *state;

	use_server(w, fault_free_port());
	assert_string_equal(name_in_program(w), "");
	assert_non_null(strstr(w->said, "fathom symbolize: no debug file of "));
	assert_non_null(strstr(w->said, "bare from debuginfod: Connection refused\n"));
	assert_string_equal(name_in_program(w), "");
	assert_string_equal(w->said, "");
}

/* ---- a build ID only ------------------------------------------------------------------------- */

static void a_build_id_is_enough(void **state)
{
	struct world *w = *state;
	struct index *index = NULL;

	needs_lines();
	assert_int_equal(index_by_id(w, &id, &index), 0);
	assert_string_equal(name_of(index), "symbolize_me");
	assert_string_equal(w->said, "");
}

static void nothing_is_found_without_a_server(void **state)
{
	struct world *w = *state;
	struct index *index = NULL;

	debuginfod_destroy(w->indexes.debuginfod);
	w->indexes.debuginfod = NULL;
	assert_int_equal(index_by_id(w, &id, &index), -ENOENT);
	assert_null(index);
}

static void a_build_id_that_no_server_has_is_asked_for_once(void **state)
{
	struct world *w = *state;
	struct index *index = NULL;

	w->file = NULL;
	assert_int_equal(index_by_id(w, &id, &index), -ENOENT);
	assert_int_equal(index_by_id(w, &id, &index), -ENOENT);
	assert_null(index);
	assert_int_equal(requests(w), 1);
}

/* The file of another build, or one without lines. */
static void a_file_that_does_not_fit_is_not_used(void **state)
{
	const struct build_id another = { .size = 4, .bytes = { 1, 2, 3, 4 } };
	struct world *w = *state;
	struct index *index = NULL;

	assert_int_equal(index_by_id(w, &another, &index), -ENOENT);
	assert_int_equal(index_by_id(w, &another, &index), -ENOENT);
	assert_int_equal(requests(w), 1);
	w->file = below("bare");
	assert_int_equal(index_by_id(w, &id, &index), -ENOENT);
	assert_int_equal(index_by_id(w, &id, &index), -ENOENT);
	assert_int_equal(requests(w), 2);
	assert_null(index);
}

int main(int argc, char **argv)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(the_servers_debug_file_has_the_names),
		CASE(a_server_without_the_file_is_asked_once),
		CASE(a_wrong_file_is_reported_and_not_fetched_again),
		CASE(a_server_that_does_not_answer_is_paused),
		CASE(a_build_id_is_enough),
		CASE(nothing_is_found_without_a_server),
		CASE(a_build_id_that_no_server_has_is_asked_for_once),
		CASE(a_file_that_does_not_fit_is_not_used),
	};

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	if (!realpath("/proc/self/exe", self) || !mkdtemp(directory))
		return 1;
	return cmocka_run_group_tests(tests, make_files, remove_files);
}
