/* SPDX-License-Identifier: Apache-2.0 */
/* `fathom symbolize`: addresses on standard input, functions and lines on standard output. */
#include "agent/commands/symbolize.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "agent/commands/commands.h"
#include "agent/commands/log_options.h"
#include "base/cleanup.h"

DEFINE_AUTO(index);

static void print_usage(FILE *out)
{
	fputs("usage: fathom symbolize -e FILE [OPTION]…\n\n"
	      "Reads addresses of the ELF file (0x…, one a line) from standard input; prints for\n"
	      "each, as llvm-symbolizer does, function and file:line:column, innermost first.\n\n",
		out);
	config_print_options(out, IN_SYMBOLIZE);
}

/* As llvm-symbolizer takes them: a C number, after an optional word for its kind. */
static bool parse_address(const char *line, uint64_t *ret_address)
{
	char *end;

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
	return !errno && !*end;
}

/* Whoever holds a pipe open to us waits for each answer; a file's are written in one go. */
static bool answers_are_awaited(void)
{
	struct stat st;

	return fstat(STDIN_FILENO, &st) || !S_ISREG(st.st_mode);
}

static int answer_lines(const struct index *index, const struct symbolize_style *style)
{
	struct index_frame frames[INDEX_MAX_FRAMES];
	bool flush = answers_are_awaited();
	autofree char *line = NULL;
	size_t room = 0;
	ssize_t length;

	while ((length = getline(&line, &room, stdin)) >= 0) {
		uint64_t address;

		if (length && line[length - 1] == '\n')
			line[length - 1] = 0;
		if (parse_address(line, &address))
			symbolize_print(stdout, style, address, frames,
				index_lookup(index, address, frames, INDEX_MAX_FRAMES));
		else
			symbolize_print_error(stdout, style, line);
		if (flush)
			fflush(stdout);
		if (ferror(stdout))
			break;
	}
	if (ferror(stdin) || fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "fathom symbolize: %s: %s\n",
			ferror(stdin) ? "standard input" : "standard output", strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int usage_error(const char *message)
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
		.module = config_text(config, SETTING_executable),
	};
	return 0;
}

int command_symbolize(int argc, char **argv)
{
	autocall(auto_index_destroy) struct index *index = NULL;
	autocall(config_deinit) struct config config;
	struct symbolize_style style;

	if (config_parse(&config, IN_SYMBOLIZE, argc, argv))
		return EXIT_USAGE;
	if (config_flag(&config, SETTING_help)) {
		print_usage(stdout);
		return EXIT_DONE;
	}
	if (log_options(&config))
		return EXIT_USAGE;
	if (config.rest_count)
		return usage_error("addresses come on standard input, not as arguments");
	if (!config_given(&config, SETTING_executable))
		return usage_error("no file given: name it with -e FILE");
	if (parse_style(&config, &style))
		return usage_error("--output-style is LLVM or JSON");
	if (symbolize_open(&config, style.module, &index))
		return EXIT_FAILED;
	return answer_lines(index, &style);
}
