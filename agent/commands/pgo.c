/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom pgo`: profiles of the agent's store, or files, become default.pgo. */
#include "agent/commands/pgo.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/output_file.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/moment.h"
#include "base/version.h"

enum {
	OUTPUT_BYTES = 256 << 20,
	COMMENT_BYTES = 8192,
	MAX_SHOWN = 16, /* programs, and files that cannot be read */
	TIME_BYTES = 32,
	FEW_SAMPLES = 1000,
};

DEFINE_AUTO(pgo_merge);

struct pgo {
	const struct config *config;
	struct pgo_selection selection;
	const char *store; /* NULL: the files were given */
	struct pgo_files stored;
	char *const *paths;
	size_t count;
	uint64_t bad, gone; /* stored files that could not be read */
	struct pgo_programs programs;
	struct pgo_merge *merge;
	const char *output;
};

static int pgo_usage_error(const char *message)
{
	fprintf(stderr, "fathom pgo: %s; see fathom pgo --help\n", message);
	return EXIT_USAGE;
}

static int pgo_failed(const char *subject, const char *why)
{
	fprintf(stderr, "fathom pgo: %s: %s\n", subject, why);
	return EXIT_FAILED;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Returns as pgo_merge_add(). */
typedef int pgo_each_fn(struct pgo *pgo, const struct pgo_samples *samples, const char **ret_why);

static int pgo_read(struct pgo *pgo, const char *path, pgo_each_fn *each, const char **ret_why)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	autocall(pgo_samples_deinit) struct pgo_samples samples = { 0 };
	int err = pprof_read_file(path, &profile, ret_why);

	if (err == -E2BIG) {
		*ret_why = "is too large";
		return -EBADMSG;
	}
	if (!err)
		err = pgo_samples_init(&samples, &profile, &pgo->selection, ret_why);
	return err ? err : each(pgo, &samples, ret_why);
}

/* A file of the store may be damaged, or removed meanwhile; the others count all the same. */
static bool pgo_may_be_missing(struct pgo *pgo, const char *path, int err, const char *why)
{
	if (!pgo->store || err == -ENOMEM || err == -E2BIG)
		return false;
	if (err == -ENOENT) {
		pgo->gone++;
		return true;
	}
	if (pgo->bad++ < MAX_SHOWN)
		fprintf(stderr, "fathom pgo: left out: %s: %s\n", path,
			err == -EBADMSG ? why : strerror(-err));
	return true;
}

static void pgo_show_progress(const struct pgo *pgo, size_t done)
{
	if (pgo->count < 100 || config_flag(pgo->config, SETTING_quiet) || !isatty(STDERR_FILENO))
		return;
	if (done == pgo->count)
		fprintf(stderr, "\r\033[K");
	else if (done % 50 == 0)
		fprintf(stderr, "\r%zu of %zu profiles", done, pgo->count);
}

/* Returns the exit status. */
static int pgo_read_all(struct pgo *pgo, pgo_each_fn *each)
{
	pgo->bad = pgo->gone = 0;
	for (size_t i = 0; i < pgo->count; i++) {
		const char *why = "";
		int err;

		pgo_show_progress(pgo, i);
		err = pgo_read(pgo, pgo->paths[i], each, &why);
		if (!err || pgo_may_be_missing(pgo, pgo->paths[i], err, why))
			continue;
		if (err == -E2BIG)
			why = "the merge has more different stacks than fit in 256 MiB: choose "
			      "one program with -x, or less time with --from and --to";
		return pgo_failed(
			pgo->paths[i], err == -EBADMSG || err == -E2BIG ? why : strerror(-err));
	}
	pgo_show_progress(pgo, pgo->count);
	return EXIT_DONE;
}

/* ---- which program -------------------------------------------------------------------------- */

static int pgo_survey(struct pgo *pgo, const struct pgo_samples *samples, const char **ret_why)
{
	(void)ret_why;
	return pgo_programs_survey(&pgo->programs, samples, false);
}

static void pgo_list_programs(const struct pgo *pgo)
{
	uint32_t numbers[MAX_SHOWN];
	size_t count = pgo_programs_heaviest(&pgo->programs, numbers, MAX_SHOWN);

	fprintf(stderr,
		"fathom pgo: which program? Say -x and one of these (with its CPU time):\n");
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "%10.2f s  %s\n", (double)pgo->programs.weights[numbers[i]] / 1e9,
			intern_text(&pgo->programs.names, numbers[i]));
	if (pgo->programs.names.count - 1 > count)
		fprintf(stderr, "             and %zu others\n",
			pgo->programs.names.count - 1 - count);
}

/* Without -x and --comm: the only Go program there is. */
static int pgo_choose_program(struct pgo *pgo)
{
	int status = pgo_read_all(pgo, pgo_survey);

	if (status)
		return status;
	if (pgo->programs.names.count == 1)
		return pgo_failed(pgo->store ? pgo->store : pgo->paths[0],
			"no profile has samples of a Go program with names");
	if (pgo->programs.names.count > 2) {
		pgo_list_programs(pgo);
		return EXIT_USAGE;
	}
	pgo->selection.program = intern_text(&pgo->programs.names, 1);
	pgo->selection.exact = true;
	return EXIT_DONE;
}

/* ---- what the profile says of itself -------------------------------------------------------- */

static void pgo_time_text(int64_t time_ns, char text[TIME_BYTES])
{
	time_t seconds = (time_t)(time_ns / 1000000000);
	struct tm t = { 0 };

	gmtime_r(&seconds, &t);
	strftime(text, TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &t);
}

static int pgo_comment(struct pgo *pgo, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static int pgo_comment(struct pgo *pgo, const char *format, ...)
{
	char text[COMMENT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return pgo_merge_comment(pgo->merge, text);
}

static int pgo_comment_programs(struct pgo *pgo, const struct pgo_programs *builds)
{
	uint32_t numbers[MAX_SHOWN];
	size_t count = pgo_programs_heaviest(builds, numbers, MAX_SHOWN);
	int err = 0;

	for (size_t i = 0; i < count && !err; i++)
		err = pgo_comment(pgo, "%.2f s of CPU time of %s",
			(double)builds->weights[numbers[i]] / 1e9,
			intern_text(&builds->names, numbers[i]));
	if (!err && builds->names.count - 1 > count)
		err = pgo_comment(
			pgo, "and %zu other programs and builds", builds->names.count - 1 - count);
	return err;
}

static int pgo_put_comments(struct pgo *pgo)
{
	const struct pgo_merge_facts facts = pgo_merge_facts(pgo->merge);
	char begin[TIME_BYTES], end[TIME_BYTES];
	int err;

	pgo_time_text(facts.begin_ns, begin);
	pgo_time_text(facts.end_ns, end);
	err = pgo_comment(pgo, "fathom pgo %s: %" PRIu64 " profiles of %s, from %s to %s",
		FATHOM_VERSION, facts.profiles, pgo->store ? pgo->store : "files", begin, end);
	if (!err && pgo->selection.program)
		err = pgo_comment(pgo, "only samples of executable=%s", pgo->selection.program);
	if (!err && pgo->selection.comm)
		err = pgo_comment(pgo, "only samples of comm=%s", pgo->selection.comm);
	if (!err)
		err = pgo_comment_programs(pgo, &pgo->programs);
	if (!err && (pgo->bad || pgo->gone))
		err = pgo_comment(pgo,
			"left out: %" PRIu64 " damaged profiles, and %" PRIu64
			" that were removed meanwhile",
			pgo->bad, pgo->gone);
	return err;
}

static void pgo_print_result(const struct pgo *pgo)
{
	const struct pgo_merge_facts facts = pgo_merge_facts(pgo->merge);
	char begin[TIME_BYTES], end[TIME_BYTES];

	if (config_flag(pgo->config, SETTING_quiet))
		return;
	pgo_time_text(facts.begin_ns, begin);
	pgo_time_text(facts.end_ns, end);
	fprintf(stderr,
		"samples:  %" PRIu64 " (%.2f s of CPU time) in %" PRIu64
		" profiles, from %s to %s\n",
		facts.samples, (double)facts.time_ns / 1e9, facts.profiles, begin, end);
	if (facts.kernel_only)
		fprintf(stderr, "left out: %" PRIu64 " stacks that are only in the kernel\n",
			facts.kernel_only);
	if (facts.cut)
		fprintf(stderr, "cut:      %" PRIu64 " stacks, at their outer ends\n", facts.cut);
	if (pgo->bad || pgo->gone)
		fprintf(stderr,
			"left out: %" PRIu64 " damaged profiles, %" PRIu64
			" that were removed meanwhile\n",
			pgo->bad, pgo->gone);
	if (facts.samples && facts.samples < FEW_SAMPLES)
		fprintf(stderr, "          so few samples show the compiler only the hottest "
				"calls: take more time\n");
	if (strcmp(pgo->output, "-") != 0)
		fprintf(stderr, "\nwrote %s; build with: go build -pgo=%s\n", pgo->output,
			pgo->output);
}

/* ---- merging -------------------------------------------------------------------------------- */

static int pgo_merge_one(struct pgo *pgo, const struct pgo_samples *samples, const char **ret_why)
{
	int err = pgo_merge_add(pgo->merge, samples, ret_why);

	return err ? err : pgo_programs_survey(&pgo->programs, samples, true);
}

static int pgo_write(struct pgo *pgo)
{
	autocall(buffer_deinit) struct buffer out;
	int err = pgo_put_comments(pgo);

	buffer_init(&out, OUTPUT_BYTES);
	if (!err)
		err = pgo_merge_encode(pgo->merge, &out);
	if (!err)
		err = output_file_write(pgo->output, &out);
	if (err)
		return pgo_failed(pgo->output, strerror(-err));
	pgo_print_result(pgo);
	return EXIT_DONE;
}

static int pgo_merge_and_write(struct pgo *pgo)
{
	autocall(auto_pgo_merge_destroy) struct pgo_merge *merge = NULL;
	autocall(pgo_programs_deinit) struct pgo_programs surveyed = pgo->programs;
	struct pgo_merge_facts facts;
	int status;

	/* The chosen program's name stays in `surveyed`. */
	if (pgo_programs_init(&pgo->programs) || pgo_merge_create(&merge))
		return pgo_failed(pgo->output, strerror(ENOMEM));
	pgo->merge = merge;
	status = pgo_read_all(pgo, pgo_merge_one);
	if (status)
		return status;
	facts = pgo_merge_facts(merge);
	if (!facts.samples && !facts.time_ns)
		return pgo_failed(pgo->store ? pgo->store : pgo->paths[0],
			"no profile has samples of such a program");
	if (!facts.start_lines)
		return pgo_failed(pgo->selection.program ?: pgo->selection.comm,
			"its functions have no start lines, which go build needs: it is not "
			"written in Go, or was built by a Go older than 1.20");
	return pgo_write(pgo);
}

/* ---- options -------------------------------------------------------------------------------- */

static int pgo_read_time(const struct config *config, enum setting id, int64_t *time_ns)
{
	const char *text = config_text(config, id);

	if (!text || !moment_parse(text, (int64_t)clock_real_ns(), time_ns))
		return EXIT_DONE;
	fprintf(stderr,
		"fathom pgo: %s %s: must be a time such as 2026-11-24T10:00:00Z, seconds since "
		"1970, or so long ago as 2h\n",
		config_name(id), text);
	return EXIT_USAGE;
}

static int pgo_list_store(struct pgo *pgo)
{
	int64_t from_ns = INT64_MIN, to_ns = INT64_MAX;
	int err;

	if (pgo_read_time(pgo->config, SETTING_pgo_from, &from_ns) ||
		pgo_read_time(pgo->config, SETTING_pgo_to, &to_ns))
		return EXIT_USAGE;
	pgo->selection.from_ns = from_ns;
	pgo->selection.to_ns = to_ns;
	pgo->store = config_text(pgo->config, SETTING_pgo_store);
	if (!pgo->store || !*pgo->store)
		return pgo_usage_error(
			"name the agent's store (--local-store-directory), or files");
	err = pgo_files_of_store(pgo->store, from_ns, to_ns, &pgo->stored);
	if (err == -EACCES)
		return pgo_failed(pgo->store, "only the agent's user, mostly root, may read it");
	if (err)
		return pgo_failed(pgo->store, strerror(-err));
	if (!pgo->stored.count)
		return pgo_failed(pgo->store, "no profiles are stored there (of that time)");
	pgo->paths = pgo->stored.paths;
	pgo->count = pgo->stored.count;
	return EXIT_DONE;
}

/* On the command line: the environment may say where the store is, for all commands. */
static bool pgo_says(const struct config *config, enum setting id)
{
	return config->values[id].source == CONFIG_COMMAND_LINE;
}

static int pgo_list(struct pgo *pgo)
{
	const struct config *config = pgo->config;

	if (!config->rest_count)
		return pgo_list_store(pgo);
	if (pgo_says(config, SETTING_pgo_from) || pgo_says(config, SETTING_pgo_to) ||
		pgo_says(config, SETTING_pgo_store))
		return pgo_usage_error(
			"--from, --to and --local-store-directory are for the store, and files "
			"were given");
	pgo->paths = config->rest;
	pgo->count = (size_t)config->rest_count;
	return EXIT_DONE;
}

static void pgo_deinit(struct pgo *pgo)
{
	pgo_programs_deinit(&pgo->programs);
	pgo_files_deinit(&pgo->stored);
}

int command_pgo(struct invocation *call)
{
	const struct config *config = &call->config;
	autocall(pgo_deinit) struct pgo pgo = {
		.config = config,
		.selection = { .comm = config_text(config, SETTING_pgo_comm),
			.program = config_text(config, SETTING_pgo_program) },
		.output = config_text(config, SETTING_pgo_output) ?: "default.pgo",
	};
	int status, err = output_file_check(pgo.output);

	if (err)
		return pgo_failed(pgo.output, strerror(-err));
	if (!strcmp(pgo.output, "-") && isatty(STDOUT_FILENO))
		return pgo_usage_error("a profile is not written to a terminal");
	status = pgo_list(&pgo);
	if (status)
		return status;
	if (pgo_programs_init(&pgo.programs))
		return pgo_failed(pgo.output, strerror(ENOMEM));
	if (!pgo.selection.comm && !pgo.selection.program)
		status = pgo_choose_program(&pgo);
	return status ? status : pgo_merge_and_write(&pgo);
}
