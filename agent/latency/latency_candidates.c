/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/latency/latency_candidates.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

static uint64_t latency_candidates_probed(const struct latency_candidates *c, uint64_t *ret_probes)
{
	uint64_t count = 0, probes = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i].refusal)
			continue;
		count++;
		probes += (uint64_t)MAX(c->items[i].entry_count, 1U) + c->items[i].return_count +
			  c->items[i].restarts;
	}
	*ret_probes = probes;
	return count;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Names are foreign: control characters could drive the terminal. */
static void latency_candidate_put_name(struct buffer *out, const char *name)
{
	size_t begin = out->size;

	if (!buffer_string(out, name))
		utf8_clean((char *)out->bytes + begin, out->size - begin);
}

static void latency_candidate_put_names(struct buffer *out, const struct latency_candidate *c)
{
	latency_candidate_put_name(out, c->name);
	buffer_string(out, "  ");
	latency_candidate_put_name(out, c->binary);
	if (c->aliases)
		buffer_printf(out, "  (%" PRIu32 " more %s of the same code)", c->aliases,
			c->aliases == 1 ? "name" : "names");
}

static void latency_candidate_put_probed(struct buffer *out, const struct latency_candidate *c)
{
	char entry[24] = "-";

	if (c->address)
		snprintf(entry, sizeof(entry), "0x%" PRIx64, c->address);
	buffer_printf(out, "%18s %8" PRIu32 "  ", entry, c->return_count);
	latency_candidate_put_names(out, c);
	buffer_printf(out, "%s%s\n", *c->note ? ": " : "", c->note);
}

/* ` in main.run at /src/x.go:17 and 3 other places` */
static void latency_candidate_put_place(struct buffer *out, const struct latency_candidate *c)
{
	if (*c->caller) {
		buffer_string(out, " in ");
		latency_candidate_put_name(out, c->caller);
	}
	if (*c->file) {
		buffer_string(out, " at ");
		latency_candidate_put_name(out, c->file);
	}
	if (*c->file && c->line)
		buffer_printf(out, ":%" PRIu32, c->line);
	if (c->calls > 1)
		buffer_printf(out, " and %" PRIu32 " other %s", c->calls - 1,
			c->calls == 2 ? "place" : "places");
}

static void latency_candidate_put_refused(struct buffer *out, const struct latency_candidate *c)
{
	buffer_string(out, "  ");
	latency_candidate_put_names(out, c);
	buffer_printf(out, ": %s", c->refusal);
	latency_candidate_put_place(out, c);
	buffer_string(out, "\n");
}

int latency_candidates_text(const struct latency_candidates *candidates, struct buffer *out)
{
	uint64_t probes, probed = latency_candidates_probed(candidates, &probes);
	uint64_t refused = candidates->count - probed;

	buffer_printf(out, "to be probed: %" PRIu64 " %s, with %" PRIu64 " probes\n", probed,
		probed == 1 ? "function" : "functions", probes);
	if (probed)
		buffer_printf(out, "%18s %8s  %s\n", "ENTRY", "RETURNS", "FUNCTION");
	for (size_t i = 0; i < candidates->count; i++) {
		if (!candidates->items[i].refusal)
			latency_candidate_put_probed(out, &candidates->items[i]);
	}
	if (refused)
		buffer_printf(out, "cannot be probed: %" PRIu64 " %s\n", refused,
			refused == 1 ? "function" : "functions");
	for (size_t i = 0; i < candidates->count; i++) {
		if (candidates->items[i].refusal)
			latency_candidate_put_refused(out, &candidates->items[i]);
	}
	if (candidates->excluded)
		buffer_printf(out, "excluded: %" PRIu64 " %s\n", candidates->excluded,
			candidates->excluded == 1 ? "function" : "functions");
	return out->error;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void latency_candidate_put_json_refusal(struct json *j, const struct latency_candidate *c)
{
	json_text(j, "reason", c->refusal);
	if (*c->caller)
		json_text(j, "inlined_in", c->caller);
	if (*c->file)
		json_text(j, "file", c->file);
	if (c->line)
		json_number(j, "line", c->line);
}

static void latency_candidate_put_json(struct json *j, const struct latency_candidate *c)
{
	char entry[24];

	snprintf(entry, sizeof(entry), "0x%" PRIx64, c->address);
	json_object(j, NULL);
	json_text(j, "name", c->name);
	json_text(j, "linkage_name", c->linkage);
	json_text(j, "binary", c->binary);
	json_bool(j, "probed", !c->refusal);
	if (c->address) {
		json_text(j, "address", entry);
		json_number(j, "returns", c->return_count);
		json_number(j, "aliases", c->aliases);
	}
	if (*c->note)
		json_text(j, "note", c->note);
	if (c->refusal)
		latency_candidate_put_json_refusal(j, c);
	json_close(j);
}

int latency_candidates_json(const struct latency_candidates *candidates, struct buffer *out)
{
	uint64_t probes, probed = latency_candidates_probed(candidates, &probes);
	struct json j;

	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	json_number(&j, "functions", probed);
	json_number(&j, "probes", probes);
	json_number(&j, "excluded", candidates->excluded);
	json_array(&j, "candidates");
	for (size_t i = 0; i < candidates->count; i++)
		latency_candidate_put_json(&j, &candidates->items[i]);
	json_close(&j);
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}
