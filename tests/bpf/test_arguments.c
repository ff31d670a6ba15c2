/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `--drive PROGRAM SITES COMMAND…`: runs COMMAND and prints what its calls of the functions in
 * SITES had for arguments and results, by PROGRAM's DWARF. tests/arguments_truth.py compares this
 * with what the program says.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "agent/trace_arguments/fetch_rule.h"
#include "agent/trace_arguments/fetched.h"
#include "base/cleanup.h"
#include "symbolizer/builds/function_arguments.h"
#include "symbolizer/sandboxed/main.h"
#include "tests/bpf/programs/arguments.h"
#include "tests/bpf/programs/arguments.skel.h"

enum { MAX_FUNCTIONS = 256, NAME_BYTES = 256, STEP_MS = 20 };

struct site {
	uint64_t file_off;
	uint32_t function;
	bool is_return;
};

struct drive {
	struct arguments_bpf *skeleton;
	char names[MAX_FUNCTIONS][NAME_BYTES];
	uint64_t entries[MAX_FUNCTIONS]; /* ascending */
	uint64_t entry_offs[MAX_FUNCTIONS];
	struct function_arguments arguments[MAX_FUNCTIONS];
	struct abi_fetch_set sets[MAX_FUNCTIONS][2];
	size_t function_count;
	struct site sites[ARGUMENT_SITES];
	size_t site_count;
	uint32_t fetch_count;
};

static void drive_check(int err, const char *step)
{
	if (!err)
		return;
	fprintf(stderr, "cannot %s: %s\n", step, strerror(-err));
	exit(1);
}

static bool drive_read_line(struct drive *d, const char *line)
{
	struct site *site = &d->sites[d->site_count];
	unsigned long long number;
	char word[16];

	if (d->function_count < MAX_FUNCTIONS && sscanf(line, "function %llx %255[^\n]", &number,
							 d->names[d->function_count]) == 2) {
		d->entries[d->function_count++] = number;
		return true;
	}
	if (!d->function_count || d->site_count == ARGUMENT_SITES ||
		sscanf(line, "%15s %llx", word, &number) != 2)
		return false;
	*site = (struct site){ .file_off = number, .function = (uint32_t)d->function_count - 1 };
	site->is_return = !strcmp(word, "return");
	if (!site->is_return)
		d->entry_offs[site->function] = number;
	d->site_count++;
	return true;
}

static int drive_read_sites(struct drive *d, const char *path)
{
	autofclose FILE *file = fopen(path, "re");
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (!drive_read_line(d, line))
			return -EBADMSG;
	return file && d->site_count ? 0 : -ENOENT;
}

static void drive_add_set(
	struct drive *d, const struct argument_plan *plan, struct abi_fetch_set *ret_set)
{
	int map = bpf_map__fd(d->skeleton->maps.fetches);

	*ret_set = (struct abi_fetch_set){ .first = d->fetch_count };
	for (uint32_t i = 0; plan && i < plan->fetch_count; i++) {
		uint32_t key = d->fetch_count++;

		drive_check(
			bpf_map_update_elem(map, &key, &argument_plan_fetches(plan)[i], BPF_ANY),
			"write a fetch");
		ret_set->count++;
	}
}

static void drive_attach(struct drive *d, const char *path, int32_t pid)
{
	for (uint32_t i = 0; i < d->site_count; i++) {
		const struct site *site = &d->sites[i];
		const struct argument_site value = {
			.set = d->sets[site->function][site->is_return],
			.distance = site->file_off - d->entry_offs[site->function],
		};
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = i);

		drive_check(bpf_map_update_elem(
				    bpf_map__fd(d->skeleton->maps.sites), &i, &value, BPF_ANY),
			"write a site");
		if (!bpf_program__attach_uprobe_opts(
			    d->skeleton->progs.arguments_at_site, pid, path, site->file_off, &opts))
			drive_check(-errno, "attach");
	}
}

static int drive_print(void *context, void *bytes, size_t)
{
	autocall(buffer_deinit) struct buffer text;
	const struct argument_event *event = bytes;
	const struct drive *d = context;
	const struct site *site = &d->sites[event->site];
	const struct function_arguments *arguments = &d->arguments[site->function];

	buffer_init(&text, 65536);
	if (fetched_text(site->is_return ? arguments->results : arguments->entry,
		    &event->room.fetched, &text))
		return -1;
	printf(site->is_return ? "saw left %s: %.*s\n" : "saw call %s(%.*s)\n",
		d->names[site->function], (int)text.size, (const char *)text.bytes);
	return 0;
}

/* The child executes ARGV when a byte comes. */
static pid_t drive_fork(char **argv, int *ret_go)
{
	int ends[2];
	pid_t child;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return -1;
	child = fork();
	if (child == 0) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 1)
			execv(argv[0], argv);
		_exit(127);
	}
	*ret_go = ends[1];
	return child;
}

static int drive_read_arguments(struct drive *d, const char *path)
{
	const struct debug_search search = { .directories = "", .root_fd = -1, .path = path };
	autoclose int file = open(path, O_RDONLY | O_CLOEXEC);
	const struct arguments_wanted wanted = {
		.entries = d->entries,
		.count = d->function_count,
	};
	struct arguments_reading *reading;
	int err = arguments_reading_begin(file, &search, &wanted, &reading);

	if (err)
		return err;
	while (!arguments_reading_step(reading))
		poll(NULL, 0, STEP_MS);
	err = arguments_reading_finish(reading, d->arguments);
	arguments_reading_destroy(reading);
	return err;
}

static int drive(struct drive *d, char **argv)
{
	struct ring_buffer *ring;
	int go = -1, status = 0;
	pid_t child = drive_fork(argv + 2, &go);

	drive_check(drive_read_sites(d, argv[1]), "read the sites");
	drive_check(drive_read_arguments(d, argv[0]), "read the arguments");
	d->skeleton = arguments_bpf__open_and_load();
	drive_check(d->skeleton ? 0 : -errno, "load");
	for (size_t i = 0; i < d->function_count; i++) {
		drive_add_set(d, d->arguments[i].entry, &d->sets[i][0]);
		drive_add_set(d, d->arguments[i].results, &d->sets[i][1]);
	}
	drive_attach(d, argv[0], child);
	ring = ring_buffer__new(bpf_map__fd(d->skeleton->maps.events), drive_print, d, NULL);
	drive_check(write(go, "", 1) == 1 ? 0 : -errno, "start the command");
	waitpid(child, &status, 0);
	drive_check(ring_buffer__consume(ring) >= 0 ? 0 : -EIO, "read the events");
	return status ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct drive *d = calloc(1, sizeof(*d));

	if (argc > 1 && sandboxed_is_command(argv[1]))
		return sandboxed_main(argc, argv);
	if (argc < 5 || strcmp(argv[1], "--drive") || !d) {
		puts("driven by tests/arguments_truth.py");
		return 77;
	}
	return drive(d, argv + 2);
}
