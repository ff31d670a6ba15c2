/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom symbolize`: reads addresses from standard input, prints functions and lines. */
#include "agent/commands/symbolize.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "agent/commands/symbolize_input.h"
#include "agent/settings/log_options.h"
#include "base/cleanup.h"
#include "symbolizer/index/functions.h"

DEFINE_AUTO(symbolize_process);

enum { IMAGE_BYTES = 128 }; /* of the name of a kernel module or a BPF program */

/* The source of the addresses; exactly one of these is set. */
struct source {
	struct symbolize_named_file *file;
	struct symbolize_process *process;
	struct symbolize_kernel *kernel;
};

/* Copies NAME of `[NAME]`; false if TEXT is something else. */
static bool parse_image(const char *text, char image[IMAGE_BYTES])
{
	size_t length = strlen(text);

	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length < 3 || length - 2 >= IMAGE_BYTES || text[0] != '[' || text[length - 1] != ']')
		return false;
	memcpy(image, text + 1, length - 2);
	image[length - 2] = 0;
	return true;
}

/*
 * Parses an address as llvm-symbolizer does: a C number, after an optional kind word. `[NAME]` may
 * follow it, a mapping of the kernel; IMAGE is "" without.
 */
static bool symbolize_parse_address(
	const char *line, uint64_t *ret_address, char image[IMAGE_BYTES])
{
	char *end;

	image[0] = 0;

	while (isspace((unsigned char)*line))
		line++;
	if (!strncmp(line, "CODE ", 5))
		line += 5;
	while (isspace((unsigned char)*line))
		line++;
	if (!isdigit((unsigned char)*line))
		return false;
	errno = 0;
	*ret_address = strtoull(line, &end, 0);
	while (isspace((unsigned char)*end))
		end++;
	return !errno && (!*end || parse_image(end, image));
}

static void symbolize_look_up(struct source *source, uint64_t address, const char *image,
	struct symbolize_answer *ret_answer)
{
	if (source->process) {
		symbolize_process_address(source->process, address, image, ret_answer);
		return;
	}
	if (source->kernel) {
		symbolize_kernel(source->kernel, address, image, ret_answer);
		return;
	}
	ret_answer->module = source->file->path;
	ret_answer->name_module = false;
	ret_answer->count = symbolize_file_lookup(source->file, address, ret_answer->frames);
}

static void answer_line(
	struct source *source, const struct symbolize_style *style, const char *line)
{
	struct symbolize_answer answer;
	char image[IMAGE_BYTES];
	uint64_t address;

	if (symbolize_parse_address(line, &address, image) && (!*image || !source->file)) {
		symbolize_look_up(source, address, *image ? image : NULL, &answer);
		symbolize_print(stdout, style, address, &answer);
	} else {
		symbolize_print_error(stdout, style, source->file ? source->file->path : "", line);
	}
}

static int answer_lines(
	struct source *source, const struct symbolize_style *style, struct symbolize_input *input)
{
	const char *line;

	while (!ferror(stdout) && (line = symbolize_input_take(input))) {
		answer_line(source, style, line);
		if (input->awaited)
			fflush(stdout);
	}
	if (input->error || fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "fathom symbolize: %s: %s\n",
			input->error ? "standard input" : "standard output",
			strerror(input->error ? -input->error : errno));
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int symbolize_usage_error(const char *message)
{
	fprintf(stderr, "fathom symbolize: %s; see fathom symbolize --help\n", message);
	return EXIT_USAGE;
}

static int parse_style(const struct config *config, struct symbolize_style *ret_style)
{
	const char *style = config_text(config, SETTING_output_style);

	if (strcasecmp(style, "LLVM") && strcasecmp(style, "JSON"))
		return -EINVAL;
	*ret_style = (struct symbolize_style){
		.json = !strcasecmp(style, "JSON"),
		.linkage_names = config_flag(config, SETTING_no_demangle),
		.no_inlines = config_flag(config, SETTING_no_inlines),
	};
	return 0;
}

static int answer_functions(const char *path, const struct index *index)
{
	if (!index_has_functions(index)) {
		fprintf(stderr,
			"fathom symbolize: cannot decode the code of %s: is the disassembler's "
			"library installed?\n",
			path);
		return EXIT_FAILED;
	}
	symbolize_print_functions(stdout, index);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : EXIT_DONE;
}

static void know_line(void *context, const char *line)
{
	struct symbolize_addresses *known = context;
	char image[IMAGE_BYTES];
	uint64_t address;

	if (symbolize_parse_address(line, &address, image) && !*image)
		known->items[known->count++] = address;
}

static void know_addresses(struct symbolize_named_file *file, struct symbolize_input *input)
{
	if (!symbolize_input_peek(input, ARRAY_SIZE(file->known.items), know_line, &file->known))
		file->known.count = 0;
	symbolize_file_sort(file);
}

static int answer_file(struct symbolize_indexes *indexes, const struct symbolize_style *style,
	const char *path, struct symbolize_input *input)
{
	autocall(symbolize_file_close) struct symbolize_named_file file = { .fd = -1 };

	if (symbolize_file_open(indexes, path, &file))
		return EXIT_FAILED;
	if (file.may_be_big && !indexes->wants_functions)
		know_addresses(&file, input);
	if (symbolize_file_index(&file))
		return EXIT_FAILED;
	if (indexes->wants_functions)
		return answer_functions(path, file.index);
	return answer_lines(&(struct source){ .file = &file }, style, input);
}

static int answer_kernel(struct symbolize_indexes *indexes, const struct config *config,
	const struct symbolize_style *style, struct symbolize_input *input)
{
	autocall(symbolize_kernel_close) struct symbolize_kernel kernel = { 0 };

	if (symbolize_kernel_open(config_flag(config, SETTING_raw), &kernel))
		return EXIT_FAILED;
	symbolize_kernel_add_lines(&kernel, indexes);
	return answer_lines(&(struct source){ .kernel = &kernel }, style, input);
}

static int answer_process(struct symbolize_indexes *indexes, const struct config *config,
	const struct symbolize_style *style, struct symbolize_input *input)
{
	autocall(auto_symbolize_process_destroy) struct symbolize_process *process = NULL;
	const struct symbolize_process_options options = {
		.indexes = indexes,
		.awaited = input->awaited,
		.raw = config_flag(config, SETTING_raw),
	};
	autofree uint32_t *pids = NULL;
	size_t count;

	if (config_numbers(config, SETTING_symbolize_pid, 1, &pids, &count))
		return EXIT_USAGE;
	if (count != 1 || pids[0] == 0)
		return symbolize_usage_error("-p takes the pid of one process");
	if (symbolize_process_create(pids[0], &options, &process))
		return EXIT_FAILED;
	return answer_lines(&(struct source){ .process = process }, style, input);
}

/* Returns what is wrong with the options, or NULL. */
static const char *misuse(const struct config *config)
{
	int sources = config_given(config, SETTING_executable) +
		      config_given(config, SETTING_symbolize_pid) +
		      config_flag(config, SETTING_kallsyms) + config_given(config, SETTING_profile);

	if (config->rest_count)
		return "addresses are read from standard input, not from arguments";
	if (sources == 0)
		return "say what the addresses belong to: a file (-e FILE), a process (-p PID), "
		       "the kernel (-k) or a profile (--profile FILE)";
	if (sources > 1)
		return "only one of -e, -p, -k and --profile";
	if (config_given(config, SETTING_profile) &&
		!config_given(config, SETTING_symbolize_output))
		return "--profile needs an output file: -o FILE";
	if (config_given(config, SETTING_symbolize_output) &&
		!config_given(config, SETTING_profile))
		return "-o is only for --profile: results go to standard output";
	if (config_flag(config, SETTING_kallsyms) || config_given(config, SETTING_symbolize_pid))
		return NULL;
	if (config_flag(config, SETTING_raw))
		return "--raw is only for addresses of the kernel: with -k or -p";
	if (config_flag(config, SETTING_kernel_debuginfo))
		return "--kernel-debuginfo is only for addresses of the kernel: with -k or -p";
	return NULL;
}

static int symbolize_run(const struct config *config, const struct symbolize_style *style)
{
	autocall(symbolize_indexes_deinit) struct symbolize_indexes indexes;
	autocall(symbolize_input_deinit) struct symbolize_input input;

	symbolize_input_init(&input, STDIN_FILENO);
	symbolize_indexes_init(&indexes, config);
	if (config_given(config, SETTING_profile))
		return symbolize_profile(&indexes, style, config_text(config, SETTING_profile),
			config_text(config, SETTING_symbolize_output));
	if (config_given(config, SETTING_symbolize_pid))
		return answer_process(&indexes, config, style, &input);
	if (config_flag(config, SETTING_kallsyms))
		return answer_kernel(&indexes, config, style, &input);
	return answer_file(&indexes, style, config_text(config, SETTING_executable), &input);
}

int command_symbolize(struct invocation *call)
{
	const struct config *config = &call->config;
	struct symbolize_style style;
	const char *wrong;

	wrong = misuse(config);
	if (wrong)
		return symbolize_usage_error(wrong);
	if (parse_style(config, &style))
		return symbolize_usage_error("--output-style must be LLVM or JSON");
	return symbolize_run(config, &style);
}
