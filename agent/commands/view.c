/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom view`: a profile (pprof, or a text of other tools), or the difference of two, as the page
 * that an agent has. The page contains the profiles: it is written as one file, or served on a free
 * port of loopback until Ctrl-C.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/output_file.h"
#include "agent/commands/text_profile.h"
#include "agent/loop/loop.h"
#include "agent/server/serve/page_file.h"
#include "agent/server/serve/serve.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/io.h"
#include "pprof/pprof_read.h"

enum {
	VIEW_PROFILES = 2, /* FILE and BASE */
	VIEW_PAGE_BYTES = 256 << 20,
	VIEW_DEPTH = 16384, /* of a stack, and labels of a sample: as the page's pprof.js */
};

static const char ANY_PORT[] = "127.0.0.1:0";

struct view {
	const char *paths[VIEW_PROFILES];
	struct buffer files[VIEW_PROFILES];
	size_t count;
	struct buffer page;
	char policy[PAGE_POLICY_BYTES];
};

static void view_deinit(struct view *v)
{
	for (size_t i = 0; i < VIEW_PROFILES; i++)
		buffer_deinit(&v->files[i]);
	buffer_deinit(&v->page);
}

/* ---- reading -------------------------------------------------------------------------------- */

static int view_refuse(const char *path, int err, const char *why)
{
	if (err == -EBADMSG)
		fprintf(stderr, "fathom view: %s: not a valid pprof file: %s\n", path, why);
	else if (err == -E2BIG)
		fprintf(stderr,
			"fathom view: %s: too large: at most %d MB, and %d MB after gunzip\n", path,
			PPROF_READ_FILE_BYTES >> 20, PPROF_READ_PLAIN_BYTES >> 20);
	else
		fprintf(stderr, "fathom view: cannot read %s: %s\n", path, strerror(-err));
	return err;
}

/* A file of another tool: its bytes, decompressed. */
static int view_read_plain(const char *path, struct buffer *out)
{
	autocall(buffer_deinit) struct buffer file;
	int err;

	buffer_init(&file, PPROF_READ_FILE_BYTES);
	err = io_read_file(AT_FDCWD, path, &file);
	if (err)
		return err;
	return gzip_is(file.bytes, file.size) ? gzip_inflate(file.bytes, file.size, out)
					      : buffer_append(out, file.bytes, file.size);
}

/* How files begin that other tools turn into what can be shown here, and by which command. */
static const struct {
	const char *begin;
	size_t size;
	const char *why;
} view_others[] = {
	{ "PERFILE2", 8, "it is perf's own; view what `perf script -i FILE` prints" },
	{ "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16,
		"it is gperftools' own; view what `go tool pprof -proto PROGRAM FILE` writes" },
	{ "FLR", 4, "it is of Java Flight Recorder; view what `jfrconv -o collapsed FILE` writes" },
	{ "{", 1,
		"it is JSON; have the tool write pprof or collapsed stacks, as `py-spy record -f "
		"raw` does" },
};

/* NULL: it is none of them. */
static const char *view_other(const struct buffer *file)
{
	for (size_t i = 0; i < ARRAY_SIZE(view_others); i++) {
		if (file->size >= view_others[i].size &&
			!memcmp(file->bytes, view_others[i].begin, view_others[i].size))
			return view_others[i].why;
	}
	return NULL;
}

/*
 * Appends a text of `perf script`, or collapsed stacks, to OUT as pprof. -ENOENT: the file is no
 * text, and may be pprof.
 */
static int view_read_text(const char *path, struct buffer *out, const char **ret_why)
{
	autocall(buffer_deinit) struct buffer plain;
	const char *why;
	int err;

	buffer_init(&plain, PPROF_READ_PLAIN_BYTES);
	err = view_read_plain(path, &plain);
	why = err ? NULL : view_other(&plain);
	if (why) {
		*ret_why = why;
		return -EBADMSG;
	}
	if (err || !text_profile_is(plain.bytes, plain.size))
		return -ENOENT;
	return text_profile_read(plain.bytes, plain.size, out, ret_why);
}

/* Appends the file's bytes, compressed, to OUT. */
static int view_read_bytes(const char *path, struct buffer *out)
{
	autocall(buffer_deinit) struct buffer file;
	int err;

	buffer_init(&file, PPROF_READ_FILE_BYTES);
	err = io_read_file(AT_FDCWD, path, &file);
	if (err)
		return err;
	return gzip_is(file.bytes, file.size) ? buffer_append(out, file.bytes, file.size)
					      : gzip_deflate(file.bytes, file.size, 6, out);
}

static bool view_fits(const struct pprof_read *profile)
{
	const Perftools__Profiles__Profile *p = profile->message;

	for (size_t i = 0; i < p->n_sample; i++) {
		if (p->sample[i]->n_location_id > VIEW_DEPTH || p->sample[i]->n_label > VIEW_DEPTH)
			return false;
	}
	return true;
}

/* Checked here, so that a file that cannot be shown fails where it is named. */
static int view_read(struct view *v, size_t number)
{
	const char *path = v->paths[number];
	struct pprof_read profile;
	const char *why = "";
	int err = view_read_text(path, &v->files[number], &why);

	if (err != -ENOENT)
		return err ? view_refuse(path, err, why) : 0;
	err = pprof_read_file(path, &profile, &why);
	if (!err) {
		if (!view_fits(&profile)) {
			why = "a sample has too many locations or labels";
			err = -EBADMSG;
		}
		pprof_read_deinit(&profile);
	}
	if (!err)
		err = view_read_bytes(path, &v->files[number]);
	return err ? view_refuse(path, err, why) : 0;
}

static int view_make_page(struct view *v)
{
	struct page_profile profiles[VIEW_PROFILES];
	int err;

	for (size_t i = 0; i < v->count; i++) {
		err = view_read(v, i);
		if (err)
			return err;
		profiles[i] = (struct page_profile){
			.name = v->paths[i],
			.bytes = v->files[i].bytes,
			.size = v->files[i].size,
			.base = i > 0,
		};
	}
	err = page_of_files(profiles, v->count, &v->page, v->policy);
	if (err)
		fprintf(stderr, "fathom view: cannot make the page: %s\n", strerror(-err));
	return err;
}

/* ---- showing -------------------------------------------------------------------------------- */

static int view_write(const struct view *v, const char *output)
{
	int err = output_file_write(output, &v->page);

	if (err)
		fprintf(stderr, "fathom view: cannot write %s: %s\n", output, strerror(-err));
	else if (strcmp(output, "-"))
		fprintf(stderr, "wrote %s; open it in a browser\n", output);
	return err;
}

static void view_on_signal(void *context, int signal)
{
	(void)signal;
	loop_stop(context);
}

static int view_watch_signals(struct loop *loop)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	return loop_signals(loop, &signals, view_on_signal, loop);
}

static int view_serve(const struct view *v)
{
	struct loop *loop = NULL;
	struct serve_options options = { .address = ANY_PORT,
		.page = { v->page.bytes, v->page.size, v->policy } };
	struct serve *serve = NULL;
	int err = loop_create(&loop);

	if (!err)
		err = view_watch_signals(loop);
	options.loop = loop;
	if (!err)
		err = serve_create(&options, &serve);
	if (!err) {
		fprintf(stderr, "http://127.0.0.1:%u/ shows %s until Ctrl-C\n", serve_port(serve),
			v->paths[0]);
		err = loop_run(loop);
	}
	serve_destroy(serve);
	loop_destroy(loop);
	if (err)
		fprintf(stderr, "fathom view: cannot serve the page: %s\n", serve_error(err));
	return err;
}

int command_view(struct invocation *call)
{
	const struct config *config = &call->config;
	const char *output = config_text(config, SETTING_page_output);
	autocall(view_deinit) struct view v = { .count = 1 };
	int err;

	if (config->rest_count != 1) {
		fprintf(stderr, "fathom view: name %s; see fathom view --help\n",
			config->rest_count ? "one pprof file, and with --diff another"
					   : "a pprof file");
		return EXIT_USAGE;
	}
	v.paths[0] = config->rest[0];
	v.paths[1] = config_text(config, SETTING_diff);
	v.count += v.paths[1] != NULL;
	for (size_t i = 0; i < VIEW_PROFILES; i++)
		buffer_init(&v.files[i], PPROF_READ_PLAIN_BYTES);
	buffer_init(&v.page, VIEW_PAGE_BYTES);
	err = output ? output_file_check(output) : 0;
	if (err) {
		fprintf(stderr, "fathom view: cannot write %s: %s\n", output, strerror(-err));
		return EXIT_FAILED;
	}
	err = view_make_page(&v);
	if (!err)
		err = output ? view_write(&v, output) : view_serve(&v);
	return err ? EXIT_FAILED : EXIT_DONE;
}
