/* SPDX-License-Identifier: Apache-2.0 */
/* The completion scripts, as bash and zsh run them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/commands/commands.h"
#include "base/cleanup.h"
#include "tests/unit/command_fixture.h"

enum { OUTPUT_BYTES = 1 << 20 };

static struct command_run run;
static char output[OUTPUT_BYTES];

/* The output of SHELL for its completion script followed by the text AFTER. */
static const char *completed(const char *shell, const char *before, const char *after)
{
	char script[] = "/tmp/fathom-test-XXXXXX", command[64], words[32];
	int fd = mkstemp(script);
	FILE *file = fdopen(fd, "w"), *pipe;
	size_t size;

	snprintf(words, sizeof(words), "completion %s", shell);
	command_expect(&run, words, EXIT_DONE, "");
	fprintf(file, "%s\n%s\n%s\n", before, run.out, after);
	assert_int_equal(fclose(file), 0);
	snprintf(command, sizeof(command), "exec 2>&1; %s %s", shell, script);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	size = fread(output, 1, sizeof(output) - 1, pipe);
	output[size] = 0;
	assert_int_equal(pclose(pipe), 0);
	unlink(script);
	return output;
}

static bool is_shown(const struct command *command, enum setting id)
{
	return (config_row(id)->commands & command->settings) && !config_is_hidden(id);
}

/* ---- bash ------------------------------------------------------------------------------------ */

/* The candidates for the last of WORDS. */
static void bash_offers(const char *words, const char *expected)
{
	char text[512];

	snprintf(text, sizeof(text),
		"COMP_WORDS=(%s)\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_fathom fathom\n"
		"echo \"${COMPREPLY[*]}\"",
		words);
	assert_string_equal(completed("bash", "", text), expected);
}

static void bash_completes_what_is_typed(void **state)
{
	(void)state;
	bash_offers("fathom ''",
		"agent record top latency trace symbolize pgo upload view check completion --help "
		"--version\n");
	bash_offers("fathom re", "record\n");
	bash_offers("fathom completion ''", "bash zsh fish\n");
	bash_offers("fathom top --by ''", "process function goroutine\n");
	bash_offers("fathom top --by =", "process function goroutine\n");
	bash_offers("fathom top --by = f", "function\n");
	bash_offers("fathom record -e cy", "cycles\n");
	bash_offers("fathom record -F ''", "\n");
	bash_offers("fathom record --fo", "--folded\n");
	bash_offers("fathom check --j", "--json\n");
	bash_offers("fathom symbolize -e /proc/self/cmdl", "/proc/self/cmdline\n");
	bash_offers("fathom record --cache-directory /et", "/etc\n");
	bash_offers("fathom record --cache-directory /proc/self/cmdl", "\n");
	bash_offers("fathom record -- no-such-comm", "\n");
	bash_offers("fathom record -- cat /proc/self/cmdl", "/proc/self/cmdline\n");
	bash_offers("fathom top -- ''", "\n");
	bash_offers("fathom record -p x", "\n");
	assert_non_null(strstr(completed("bash", "",
				       "COMP_WORDS=(fathom record -p $$)\nCOMP_CWORD=3\n_fathom\n"
				       "[[ \" ${COMPREPLY[*]} \" == *\" $$ \"* ]] && echo itself"),
		"itself\n"));
}

/* Words that the parser accepts, and those found on the machine. */
static const char *expected_value(enum setting id)
{
	static const struct {
		const char *argument, *value;
	} kinds[] = {
		{ "EVENT", "cpu-clock cycles" },
		{ "WHAT", "process function goroutine" },
		{ "KEY", "cpu total pid name" },
		{ "KIND", "goid pid cgroup" },
		{ "STYLE", "LLVM JSON" },
		{ "TYPE", "pyroscope parca otlp file" },
		{ "PROTOCOL", "grpc http" },
		{ "LEVEL", "error warn info debug" },
		{ "FORMAT", "logfmt json" },
		{ "FILE", "@file" },
		{ "DIR", "@directory" },
		{ "CGROUP", "@directory" },
		{ "PIDS", "@pid" },
	};
	const char *argument = config_row(id)->argument;

	if (!argument)
		return "";
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(argument, kinds[i].argument))
			return kinds[i].value;
	}
	return "@nothing";
}

/* Two commands may have different settings with one name. */
static bool is_anothers(const struct command *command, enum setting id)
{
	for (enum setting other = 0; other < SETTING_COUNT; other++) {
		if (!is_shown(command, id) && is_shown(command, other) &&
			!strcmp(config_row(id)->name, config_row(other)->name))
			return true;
	}
	return false;
}

static void bash_knows_every_option_and_its_value(void **state)
{
	autofree char *asked = NULL, *expected = NULL;
	const struct command *command;
	size_t asked_size, expected_size;
	FILE *ask = open_memstream(&asked, &asked_size);
	FILE *expect = open_memstream(&expected, &expected_size);

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->settings)
			continue;
		fprintf(ask, "_fathom_options %s\n", command->name);
		for (enum setting id = 0; id < SETTING_COUNT; id++) {
			const struct setting_row *row = config_row(id);

			if (!is_shown(command, id))
				continue;
			if (row->letter)
				fprintf(expect, "-%c ", row->letter);
			fprintf(expect, "--%s ", row->name);
		}
		fputc('\n', expect);
		for (enum setting id = 0; id < SETTING_COUNT; id++) {
			const struct setting_row *row = config_row(id);

			if (is_anothers(command, id))
				continue;
			fprintf(ask, "echo %s: $(_fathom_value '%s --%s')\n", row->name,
				command->name, row->name);
			fprintf(expect, "%s:%s%s\n", row->name,
				is_shown(command, id) && row->argument ? " " : "",
				is_shown(command, id) ? expected_value(id) : "");
			if (!row->letter || !is_shown(command, id))
				continue;
			fprintf(ask, "echo %c: $(_fathom_value '%s -%c')\n", row->letter,
				command->name, row->letter);
			fprintf(expect, "%c:%s%s\n", row->letter, row->argument ? " " : "",
				expected_value(id));
		}
	}
	fclose(ask);
	fclose(expect);
	assert_string_equal(completed("bash", "", asked), expected);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* The script calls these of zsh's completion functions; here they print their arguments. */
static const char zsh_functions[] = "_arguments() { print -rl -- \"$@\" }\n"
				    "_describe() { print -rl -- $1 ${(P)2} }\n"
				    "_values() { print -r -- values \"$@\" }\n";

/* What the script passes to zsh when the words of the array are typed. */
static const char *zsh_arguments(const char *words)
{
	char before[512];

	snprintf(before, sizeof(before), "%swords=(%s)\nCURRENT=${#words}\n", zsh_functions, words);
	return completed("zsh", before, "");
}

static void has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)) != NULL; at++) {
		if ((at == text || at[-1] == '\n') && at[length] == '\n')
			return;
	}
	fail_msg("no line '%s' in:\n%s", line, text);
}

static void zsh_is_given_the_commands(void **state)
{
	const struct command *command;
	const char *text = zsh_arguments("fathom ''");
	char line[128];
	size_t lines = 0;

	(void)state;
	has_line(text, "command");
	has_line(text, "record:sample processes and the kernel, write a pprof file");
	/* A colon in a description is escaped: zsh would end the name there. */
	has_line(text,
		"agent:sample continuously\\: stored profiles, flame graphs, on-demand profiles");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		snprintf(line, sizeof(line), "\n%s:", command->name);
		assert_int_equal(strstr(text, line) != NULL, command->summary != NULL);
		lines += command->summary != NULL;
	}
	for (const char *at = text; *at; at++)
		lines -= *at == '\n';
	assert_int_equal(lines + 1, 0);
}

static void zsh_is_given_options_and_their_values(void **state)
{
	const char *text;

	(void)state;
	text = zsh_arguments("fathom record ''");
	has_line(text, "-F+[samples per second on each CPU (1 to 10000)]:HZ: ");
	has_line(text, "--frequency=[samples per second on each CPU (1 to 10000)]:HZ: ");
	has_line(text, "-U[user stacks only]");
	has_line(text, "--user[user stacks only]");
	has_line(text, "*-t+[only these threads]:TIDS: ");
	has_line(text, "*--tid=[only these threads]:TIDS: ");
	has_line(text, "*-C+[only these CPUs\\: 0,2-3]:CPUS: ");
	has_line(text,
		"--comm=[only threads with this name (the first 15 bytes are compared)]:NAME: ");
	assert_non_null(strstr(text, "]:PIDS:_pids\n"));
	assert_non_null(strstr(text, "]:CGROUP:_directories\n"));
	assert_non_null(strstr(text, "]:DIR:_directories\n"));
	assert_non_null(strstr(text, "]:FILE:_files\n"));
	assert_non_null(strstr(text, "]:EVENT:(cpu-clock cycles)\n"));
	has_line(text, "*::command:_normal");
	text = zsh_arguments("fathom check ''");
	has_line(text, "-s");
	has_line(text, "-S");
	has_line(text, "--json[print JSON]");
	has_line(text, "*: :");
	assert_null(strstr(text, "frequency"));
	assert_string_equal(zsh_arguments("fathom completion ''"), "values shell bash zsh fish\n");
}

static void zsh_is_given_every_option(void **state)
{
	const struct command *command;
	char words[64], option[80];

	(void)state;
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		size_t options = 0;

		if (!command->settings)
			continue;
		snprintf(words, sizeof(words), "fathom %s ''", command->name);
		zsh_arguments(words);
		for (enum setting id = 0; id < SETTING_COUNT; id++) {
			const struct setting_row *row = config_row(id);

			snprintf(option, sizeof(option), "--%s%s[", row->name,
				row->argument ? "=" : "");
			assert_int_equal(strstr(output, option) != NULL,
				is_shown(command, id) || is_anothers(command, id));
			options += is_shown(command, id) ? 1 + (row->letter != 0) : 0;
		}
		for (const char *at = output; *at; at++)
			options -= *at == '\n';
		assert_int_equal(options + 3, 0); /* -s, -S and words that are not options */
	}
}

static void other_shells_have_none(void **state)
{
	(void)state;
	command_expect(&run, "completion", EXIT_USAGE, "usage: fathom completion bash|zsh|fish\n");
	command_expect(&run, "completion bash zsh", EXIT_USAGE, "usage: ");
	command_expect(&run, "completion tcsh", EXIT_USAGE, "usage: ");
	assert_string_equal(run.out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bash_completes_what_is_typed),
		cmocka_unit_test(bash_knows_every_option_and_its_value),
		cmocka_unit_test(zsh_is_given_the_commands),
		cmocka_unit_test(zsh_is_given_options_and_their_values),
		cmocka_unit_test(zsh_is_given_every_option),
		cmocka_unit_test(other_shells_have_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
