/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom completion bash|zsh|fish`: prints completion scripts made from the tables of commands and
 * settings. The values of a setting are completed by its argument's name (FILE, DIR, PIDS) or from
 * its list of words.
 */
#include <stdio.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/settings/config.h"
#include "base/cleanup.h"

/* Each name is preceded by a blank. */
static const char remote_types[] =
#define REMOTE_KIND(id, name, ...) " " name
#include "agent/server/export/remote/remote_kinds.def"
#undef REMOTE_KIND
	;

/* The words that a setting accepts, or NULL. */
static const char *words_of(enum setting id)
{
	switch ((int)id) {
	case SETTING_event:
		return "cpu-clock cycles";
	case SETTING_by:
		return "process function goroutine";
	case SETTING_latency_by:
		return "goid pid cgroup";
	case SETTING_sort:
		return "cpu total pid name";
	case SETTING_output_style:
		return "LLVM JSON";
	case SETTING_remote_store_type:
		return remote_types + 1;
	case SETTING_remote_store_otlp_protocol:
		return "grpc http";
	case SETTING_log_level:
		return "error warn info debug";
	case SETTING_log_format:
		return "logfmt json";
	default:
		return NULL;
	}
}

static bool applies(enum setting id, const struct command *command)
{
	return (config_row(id)->commands & command->settings) && !config_is_hidden(id);
}

/* ---- bash ------------------------------------------------------------------------------------ */

static void bash_commands(void)
{
	const struct command *command;

	fputs("_fathom_commands='", stdout);
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary)
			printf("%s ", command->name);
	}
	puts("--help --version'\n");
}

static void bash_options(const struct command *command)
{
	printf("\t%s) echo '", command->name);
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (!applies(id, command))
			continue;
		if (config_row(id)->letter)
			printf("-%c ", config_row(id)->letter);
		printf("--%s ", config_row(id)->name);
	}
	puts("' ;;");
}

static const char *bash_value(enum setting id)
{
	const char *argument = config_row(id)->argument;

	if (words_of(id))
		return words_of(id);
	if (!strcmp(argument, "FILE"))
		return "@file";
	if (!strcmp(argument, "DIR") || !strcmp(argument, "CGROUP"))
		return "@directory";
	return strcmp(argument, "PIDS") ? "@nothing" : "@pid";
}

static void bash_values(const struct command *command)
{
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		const struct setting_row *row = config_row(id);

		if (!applies(id, command) || row->type == SETTING_TYPE_FLAG)
			continue;
		printf("\t'%s --%s'", command->name, row->name);
		if (row->letter)
			printf(" | '%s -%c'", command->name, row->letter);
		printf(") echo '%s' ;;\n", bash_value(id));
	}
}

static void bash_cases(const char *function, void (*each)(const struct command *command))
{
	const struct command *command;

	printf("%s() {\n\tcase \"$*\" in\n", function);
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary && command->settings)
			each(command);
	}
	puts("\tesac\n}\n");
}

static const char bash_function[] =
	"_fathom() {\n"
	"\tlocal current=${COMP_WORDS[COMP_CWORD]} previous= command=${COMP_WORDS[1]} value i\n"
	"\t[ \"$COMP_CWORD\" -gt 0 ] && previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
	"\t# Readline breaks words at `=`: --option=value comes as three.\n"
	"\tif [ \"$current\" = = ]; then\n"
	"\t\tcurrent=\n"
	"\telif [ \"$previous\" = = ]; then\n"
	"\t\tprevious=${COMP_WORDS[COMP_CWORD - 2]}\n"
	"\tfi\n"
	"\tCOMPREPLY=()\n"
	"\tif [ \"$COMP_CWORD\" -le 1 ]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"$_fathom_commands\" -- \"$current\")\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tif [ \"$command\" = completion ]; then\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W 'bash zsh fish' -- \"$current\")\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\t[ \"${COMP_WORDS[i]}\" = -- ] || continue\n"
	"\t\t[[ $command = @(record|latency|trace) ]] || return\n"
	"\t\tif [ \"$previous\" = -- ]; then\n"
	"\t\t\tmapfile -t COMPREPLY < <(compgen -c -- \"$current\")\n"
	"\t\telse\n"
	"\t\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
	"\t\tfi\n"
	"\t\treturn\n"
	"\tdone\n"
	"\tvalue=$(_fathom_value \"$command $previous\")\n"
	"\tcase $value in\n"
	"\t@file) compopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$current\") ;;\n"
	"\t@directory) compopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$current\") ;;\n"
	"\t@pid) mapfile -t COMPREPLY < <(cd /proc && compgen -G '[0-9]*' -- \"$current\")\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -W \"${COMPREPLY[*]}\" -- \"$current\") ;;\n"
	"\t@nothing) ;;\n"
	"\t'') mapfile -t COMPREPLY < <(compgen -W \"$(_fathom_options \"$command\")\" -- "
	"\"$current\") ;;\n"
	"\t*) mapfile -t COMPREPLY < <(compgen -W \"$value\" -- \"$current\") ;;\n"
	"\tesac\n"
	"}\n"
	"complete -F _fathom fathom\n";

static void print_bash(void)
{
	puts("# bash completion for fathom, made by `fathom completion bash`");
	bash_commands();
	bash_cases("_fathom_options", bash_options);
	bash_cases("_fathom_value", bash_values);
	fputs(bash_function, stdout);
}

/* ---- zsh ------------------------------------------------------------------------------------- */

/* Escapes TEXT for single quotes inside an _arguments specification. */
static void put_zsh(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", stdout);
		else if (strchr("[]:\\", *text))
			printf("\\%c", *text);
		else
			putchar(*text);
	}
}

static void zsh_value(enum setting id)
{
	const struct setting_row *row = config_row(id);

	if (row->type == SETTING_TYPE_FLAG)
		return;
	printf(":%s:", row->argument);
	if (words_of(id))
		printf("(%s)", words_of(id));
	else if (!strcmp(row->argument, "FILE"))
		fputs("_files", stdout);
	else if (!strcmp(row->argument, "DIR") || !strcmp(row->argument, "CGROUP"))
		fputs("_directories", stdout);
	else if (!strcmp(row->argument, "PIDS"))
		fputs("_pids", stdout);
	else
		putchar(' ');
}

static void zsh_option(enum setting id)
{
	const struct setting_row *row = config_row(id);
	bool value = row->type != SETTING_TYPE_FLAG;
	bool repeats = row->type == SETTING_TYPE_LIST || row->type == SETTING_TYPE_REPEATED;
	const char *repeat = repeats ? "*" : "";

	if (row->letter)
		printf("\t\t\t'%s-%c%s[", repeat, row->letter, value ? "+" : "");
	else
		printf("\t\t\t'%s--%s%s[", repeat, row->name, value ? "=" : "");
	put_zsh(row->help);
	putchar(']');
	zsh_value(id);
	puts("' \\");
	if (!row->letter)
		return;
	printf("\t\t\t'%s--%s%s[", repeat, row->name, value ? "=" : "");
	put_zsh(row->help);
	putchar(']');
	zsh_value(id);
	puts("' \\");
}

static void zsh_command(const struct command *command)
{
	printf("\t%s)\n\t\t_arguments -s -S \\\n", command->name);
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (applies(id, command))
			zsh_option(id);
	}
	puts((command->settings & (IN_RECORD | IN_LATENCY | IN_TRACE))
			? "\t\t\t'*::command:_normal'\n\t\t;;"
			: "\t\t\t'*: :'\n\t\t;;");
}

static void print_zsh(void)
{
	const struct command *command;

	puts("#compdef fathom\n# zsh completion for fathom, made by `fathom completion zsh`\n"
	     "_fathom() {\n\tlocal -a commands=(");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (!command->summary)
			continue;
		printf("\t\t'%s:", command->name);
		put_zsh(command->summary);
		puts("'");
	}
	puts("\t)\n\tif (( CURRENT == 2 )); then\n\t\t_describe command "
	     "commands\n\t\treturn\n\tfi\n"
	     "\tlocal command=$words[2]\n\tshift words\n\t(( CURRENT-- ))\n\tcase $command in");
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary && command->settings)
			zsh_command(command);
	}
	puts("\tcompletion)\n\t\t_values shell bash zsh fish\n\t\t;;\n\tesac\n}\n_fathom \"$@\"");
}

/* ---- fish ------------------------------------------------------------------------------------ */

/* Escapes TEXT for single quotes. */
static void put_fish(const char *text)
{
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			putchar('\\');
		putchar(*text);
	}
}

static void fish_value(enum setting id)
{
	const struct setting_row *row = config_row(id);

	if (row->type == SETTING_TYPE_FLAG)
		return;
	if (words_of(id))
		printf(" -x -a '%s'", words_of(id));
	else if (!strcmp(row->argument, "FILE"))
		fputs(" -r -F", stdout);
	else if (!strcmp(row->argument, "DIR") || !strcmp(row->argument, "CGROUP"))
		fputs(" -x -a '(__fish_complete_directories)'", stdout);
	else if (!strcmp(row->argument, "PIDS"))
		fputs(" -x -a '(__fish_complete_pids)'", stdout);
	else
		fputs(" -x", stdout);
}

static void fish_option(const struct command *command, enum setting id)
{
	const struct setting_row *row = config_row(id);

	printf("complete -c fathom -n '__fathom_is %s' -l %s", command->name, row->name);
	if (row->letter)
		printf(" -s %c", row->letter);
	fish_value(id);
	fputs(" -d '", stdout);
	put_fish(row->help);
	puts("'");
}

static void fish_command(const struct command *command)
{
	printf("complete -c fathom -n __fish_use_subcommand -f -a %s -d '", command->name);
	put_fish(command->summary);
	puts("'");
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (applies(id, command))
			fish_option(command, id);
	}
	/* Options end at the command to run, or at the files of the others. */
	if (command->settings & (IN_RECORD | IN_LATENCY | IN_TRACE))
		printf("complete -c fathom -n '__fathom_runs %s' -x -a "
		       "'(__fish_complete_subcommand --commandline (__fathom_rest))'\n",
			command->name);
}

static const char fish_functions[] =
	"function __fathom_is\n"
	"\tset -l words (commandline -opc)\n"
	"\ttest (count $words) -gt 1; and test $words[2] = $argv[1]; and not contains -- -- "
	"$words\n"
	"end\n"
	"function __fathom_runs\n"
	"\tset -l words (commandline -opc)\n"
	"\ttest (count $words) -gt 1; and test $words[2] = $argv[1]; and contains -- -- $words\n"
	"end\n"
	"function __fathom_rest\n"
	"\tset -l words (commandline -opc) (commandline -ct)\n"
	"\tset -l at (contains -i -- -- $words)\n"
	"\tprintf '%s\\n' $words[(math $at + 1)..-1]\n"
	"end\n";

static void print_fish(void)
{
	const struct command *command;

	puts("# fish completion for fathom, made by `fathom completion fish`");
	fputs(fish_functions, stdout);
	for (size_t i = 0; (command = commands_at(i)) != NULL; i++) {
		if (command->summary)
			fish_command(command);
	}
	puts("complete -c fathom -n '__fathom_is completion' -x -a 'bash zsh fish'\n"
	     "complete -c fathom -n __fish_use_subcommand -l version -d 'print the version'\n"
	     "complete -c fathom -n __fish_use_subcommand -l help -d 'list the commands'");
}

int command_completion(struct invocation *call)
{
	const char *shell = call->argc == 2 ? call->argv[1] : "";

	if (!strcmp(shell, "bash")) {
		print_bash();
		return EXIT_DONE;
	}
	if (!strcmp(shell, "zsh")) {
		print_zsh();
		return EXIT_DONE;
	}
	if (!strcmp(shell, "fish")) {
		print_fish();
		return EXIT_DONE;
	}
	fputs("usage: fathom completion bash|zsh|fish\n", stderr);
	return EXIT_USAGE;
}
