/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/pod_choices.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "agent/sampler/seam/calls.h"
#include "agent/server/metadata/container_pairs.h"
#include "base/cleanup.h"

bool pod_annotations_parse(const char *text, enum pod_annotations *ret_annotations)
{
	static const char *const names[] = {
		[PODS_OPT_OUT] = "opt-out",
		[PODS_OPT_IN] = "opt-in",
		[PODS_IGNORED] = "ignore",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(text, names[i]) != 0)
			continue;
		*ret_annotations = (enum pod_annotations)i;
		return true;
	}
	return false;
}

bool pod_choices_need_runtime(const struct pod_choices_options *options)
{
	return options->annotations == PODS_OPT_IN || selection_needs_pods(options->selection);
}

/* ---- one container -------------------------------------------------------------------------- */

static const char *pod_choices_value(void *context, const char *key, const char *name)
{
	const struct container_facts *facts = context;
	const struct container_pod *pod = facts->pod;
	const struct container_pairs *labels =
		container_is_in_pod(facts) ? &pod->labels : &facts->labels;

	if (!strcmp(key, "namespace"))
		return pod->namespace;
	if (!strcmp(key, "pod"))
		return pod->name;
	if (!strcmp(key, "container"))
		return facts->name;
	return container_pairs_get(!strcmp(key, "label") ? labels : &pod->annotations, name);
}

/* Ours is stronger. Any other value than true and false is as good as none. */
static uint32_t pod_choices_annotated(const struct container_pod *pod)
{
	static const char *const names[] = { "fathom.dev/profile",
		"profiles.grafana.com/cpu.ebpf.enabled" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = container_pairs_get(&pod->annotations, names[i]);

		if (value && !strcasecmp(value, "true"))
			return CONTAINER_ASKED;
		if (value && !strcasecmp(value, "false"))
			return CONTAINER_DECLINED;
	}
	return 0;
}

static uint32_t pod_choices_flags(
	const struct pod_choices_options *options, const struct container_facts *facts)
{
	const struct selection *s = options->selection;
	uint32_t flags = 0;

	if (!facts)
		return CONTAINER_UNSETTLED;
	if (selection_matches_pod(s, SELECTION_INCLUDE, pod_choices_value, (void *)facts))
		flags |= CONTAINER_INCLUDED;
	if (selection_matches_pod(s, SELECTION_EXCLUDE, pod_choices_value, (void *)facts))
		flags |= CONTAINER_EXCLUDED;
	if (options->annotations != PODS_IGNORED)
		flags |= pod_choices_annotated(facts->pod);
	if (options->annotations == PODS_OPT_IN && container_is_in_pod(facts) &&
		!(flags & CONTAINER_ASKED))
		flags |= CONTAINER_DECLINED;
	return flags;
}

/* ---- all ------------------------------------------------------------------------------------ */

static int pod_choices_add(const struct pod_choices_options *options,
	const struct metadata_view *view, struct container_choices *choices)
{
	for (size_t i = 0; i < view->count; i++) {
		size_t iterator = 0;
		const char *id;

		while ((id = containers_next_id(view->tables[i], &iterator))) {
			const struct container_facts *facts = metadata_view_find(view, id);
			int err = container_choices_add(choices, id, facts ? facts->pod->uid : "",
				pod_choices_flags(options, facts));

			if (err)
				return err;
		}
	}
	return 0;
}

/* Only if every list was complete can a container that is on none have no pod. */
static void pod_choices_set_times(
	const struct metadata_view *view, struct container_choices *choices)
{
	uint64_t from = UINT64_MAX, until = 0;

	for (size_t i = 0; i < view->count; i++) {
		const struct containers_times times = containers_times(view->tables[i]);

		if (containers_refused(view->tables[i])->over_limit)
			return;
		from = MIN(from, times.from_ns);
		until = MAX(until, times.until_ns);
	}
	if (!view->count)
		return;
	choices->listed_from_ns = from;
	choices->listed_until_ns = until;
}

int pod_choices_make(const struct pod_choices_options *options, const struct metadata_view *view,
	struct container_choices **ret_choices)
{
	autocall(container_choices_freep) struct container_choices *choices = NULL;
	int err = container_choices_create(&choices);

	if (err)
		return err;
	choices->strict = pod_choices_need_runtime(options);
	choices->incomplete = view->count || view->waiting || pod_choices_need_runtime(options);
	err = pod_choices_add(options, view, choices);
	if (!err)
		pod_choices_set_times(view, choices);
	else if (err != -E2BIG)
		return err;
	*ret_choices = take(choices);
	return 0;
}

void pod_choices_deinit(struct pod_choices *p)
{
	metadata_view_deinit(&p->told);
}

static bool pod_choices_are_told(const struct pod_choices *p, const struct metadata_view *view)
{
	if (!p->has_told || p->told.count != view->count || p->told.waiting != view->waiting ||
		p->told.joined != view->joined)
		return false;
	for (size_t i = 0; i < view->count; i++) {
		if (p->told.tables[i] != view->tables[i])
			return false;
	}
	return true;
}

int pod_choices_tell(struct pod_choices *p, const struct pod_choices_options *options,
	struct metadata *metadata, struct sampler *sampler, bool changed)
{
	uint64_t missed = sampler_containers_missed(sampler);
	bool needed = pod_choices_need_runtime(options) ||
		      (metadata && options->annotations != PODS_IGNORED);
	autocall(metadata_view_deinit) struct metadata_view view = { .count = 0 };
	struct container_choices *choices = NULL;
	int err;

	if (metadata && missed != p->missed)
		metadata_ask(metadata);
	p->missed = missed;
	metadata_view_init(&view, metadata);
	if (!changed && pod_choices_are_told(p, &view))
		return 0;
	err = needed ? pod_choices_make(options, &view, &choices) : 0;
	if (err)
		return err;
	sampler_choose(sampler, choices);
	metadata_view_deinit(&p->told);
	p->told = view;
	view = (struct metadata_view){ 0 };
	p->has_told = true;
	return 0;
}
