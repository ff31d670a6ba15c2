/* SPDX-License-Identifier: Apache-2.0 */
/* The options of a command as --help lists them: in groups, what few people need at the end. */
#include <stdio.h>
#include <string.h>

#include "agent/settings/config.h"
#include "base/cleanup.h"

enum {
	HEAD_COLUMNS = 29,
	TEXT_COLUMNS = 68,
	GROUP_SIZE = 24,
};

struct option_group {
	const char *title;
	enum setting ids[GROUP_SIZE]; /* up to SETTING_COUNT */
};

/* What is in none of them is listed before them. */
static const struct option_group groups[] = {
	{ "What is sampled",
		{ SETTING_all, SETTING_pid, SETTING_tid, SETTING_cgroup, SETTING_comm, SETTING_goid,
			SETTING_cpu, SETTING_user, SETTING_kernel, SETTING_include, SETTING_exclude,
			SETTING_pod_annotations, SETTING_COUNT } },
	{ "How it is sampled",
		{ SETTING_frequency, SETTING_sampling_frequency, SETTING_off_cpu,
			SETTING_off_cpu_threshold, SETTING_profiling_duration, SETTING_cpu_budget,
			SETTING_event, SETTING_count, SETTING_stacks, SETTING_COUNT } },
	{ "Which functions", { SETTING_function, SETTING_kernel_function, SETTING_unwanted_function,
				     SETTING_exclude_vendor, SETTING_drilldown, SETTING_max_depth,
				     SETTING_min_duration, SETTING_dry_run, SETTING_COUNT } },
	{ "What is shown", { SETTING_by, SETTING_latency_by, SETTING_sort, SETTING_filter,
				   SETTING_delay, SETTING_iterations, SETTING_interval,
				   SETTING_arguments, SETTING_argument_rule, SETTING_no_demangle,
				   SETTING_no_inlines, SETTING_output_style, SETTING_COUNT } },
	{ "The page and other addresses",
		{ SETTING_http_address, SETTING_http_socket, SETTING_http_token_file, SETTING_node,
			SETTING_announce, SETTING_COUNT } },
	{ "Profiles kept on this machine",
		{ SETTING_local_store_directory, SETTING_local_store_max_bytes,
			SETTING_local_store_max_age, SETTING_COUNT } },
	{ "Sending profiles",
		{ SETTING_remote_store_type, SETTING_remote_store_address,
			SETTING_remote_store_name, SETTING_external_labels,
			SETTING_debuginfo_upload, SETTING_remote_store_bearer_token,
			SETTING_remote_store_bearer_token_file,
			SETTING_remote_store_basic_auth_user,
			SETTING_remote_store_basic_auth_password_file,
			SETTING_remote_store_tenant_id, SETTING_remote_store_headers,
			SETTING_remote_store_insecure, SETTING_remote_store_ca_file,
			SETTING_remote_store_client_cert, SETTING_remote_store_client_key,
			SETTING_remote_store_server_name, SETTING_remote_store_insecure_skip_verify,
			SETTING_remote_store_proxy_url, SETTING_remote_store_otlp_unstable,
			SETTING_remote_store_otlp_protocol, SETTING_COUNT } },
	{ "Names", { SETTING_debuginfod_urls, SETTING_debuginfo_directories,
			   SETTING_kernel_debuginfo, SETTING_container_runtime_socket,
			   SETTING_kubernetes_api, SETTING_include_env_var, SETTING_COUNT } },
	{ "General", { SETTING_help, SETTING_verbose, SETTING_quiet, SETTING_log_level,
			     SETTING_COUNT } },
	{ "For experts", { SETTING_cache_directory, SETTING_cache_max_bytes, SETTING_memory_limit,
				 SETTING_spool_directory, SETTING_spool_max_bytes,
				 SETTING_spool_max_age, SETTING_series_labels, SETTING_series_max,
				 SETTING_probe_series_max, SETTING_probe_series_max_idle,
				 SETTING_raw, SETTING_log_format, SETTING_COUNT } },
};

static bool is_shown(enum setting id, enum config_command command)
{
	return (config_row(id)->commands & command) && !config_is_hidden(id);
}

static bool is_grouped(enum setting id)
{
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		for (const enum setting *at = groups[i].ids; *at != SETTING_COUNT; at++) {
			if (*at == id)
				return true;
		}
	}
	return false;
}

/* Prints TEXT in the right column, in which USED columns are taken. */
static void print_wrapped(FILE *out, const char *text, size_t used)
{
	while (*text) {
		size_t word = strcspn(text, " ");

		if (used && used + 1 + word > TEXT_COLUMNS) {
			fprintf(out, "\n%*s", HEAD_COLUMNS + 2, "");
			used = 0;
		}
		fprintf(out, "%s%.*s", used ? " " : "", (int)word, text);
		used += word + (used ? 1 : 0);
		text += word;
		text += *text == ' ';
	}
}

static void print_option(FILE *out, enum setting id)
{
	const struct setting_row *row = config_row(id);
	autofree char *text = NULL;
	char head[80];
	int used;

	used = row->letter ? snprintf(head, sizeof(head), "-%c, --%s", row->letter, row->name)
			   : snprintf(head, sizeof(head), "    --%s", row->name);
	if (row->argument)
		snprintf(head + used, sizeof(head) - (size_t)used, " %s", row->argument);
	/* A long head gets a line of its own. */
	if (strlen(head) + 2 > HEAD_COLUMNS)
		fprintf(out, "  %s\n%*s", head, HEAD_COLUMNS + 2, "");
	else
		fprintf(out, "  %-*s", HEAD_COLUMNS, head);
	if (asprintf(&text, "%s%s%s%s", row->help, row->fallback ? " (default: " : "",
		    row->fallback ? row->fallback : "", row->fallback ? ")" : "") >= 0)
		print_wrapped(out, text, 0);
	fputc('\n', out);
}

static void print_group(FILE *out, const struct option_group *group, enum config_command command)
{
	bool any = false;

	for (const enum setting *at = group->ids; *at != SETTING_COUNT; at++) {
		if (!is_shown(*at, command))
			continue;
		if (!any)
			fprintf(out, "\n%s:\n", group->title);
		any = true;
		print_option(out, *at);
	}
}

void config_print_options(FILE *out, enum config_command command)
{
	for (enum setting id = 0; id < SETTING_COUNT; id++) {
		if (is_shown(id, command) && !is_grouped(id))
			print_option(out, id);
	}
	for (size_t i = 0; i < ARRAY_SIZE(groups); i++)
		print_group(out, &groups[i], command);
}
