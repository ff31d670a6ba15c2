/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/module_indexes/index_requests.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/sampler/recording/notes.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/host.h"
#include "base/intern.h"
#include "symbolizer/kernel_file.h"
#include "symbolizer/vdso.h"

int index_requests_open(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, struct module_id *ret_id, int *ret_fd)
{
	int err = module_open(&requests->opener, p->pid, mapping, ret_id, ret_fd);

	if (err)
		metrics_add(requests->metrics, METRIC_MODULE_OPEN_FAILED, 1);
	return err;
}

int index_requests_identity(const struct index_requests *requests, const struct module *module,
	struct module_id *ret_id)
{
	if (!file_hash_is_none(&module->id.content)) {
		*ret_id = module->id;
		return 0;
	}
	return processes_identify(requests->processes, &module->id, ret_id) ? 0 : -ENOENT;
}

/* Whose turn in the queue of builds it is. A container may have made control groups of its own. */
static uint64_t index_requests_owner(const struct index_requests *requests, const struct process *p)
{
	if (p && p->container_id[0])
		return hash_bytes(p->container_id, strlen(p->container_id));
	return p ? requests->cgroup_id : 0;
}

/* A question to the builds. */
struct index_question {
	const struct module *module;
	const struct process *p; /* one that maps the file; NULL = none */
	bool functions;
};

/* Takes FD, even on failure. */
static int index_requests_send(const struct index_requests *requests,
	const struct index_question *question, const struct module_id *id, int fd_)
{
	const struct module *module = question->module;
	const struct process *p = question->p;
	autoclose int root_fd = -1, fd = fd_;
	struct debug_search search = {
		.owner = index_requests_owner(requests, p),
		.directories = requests->debug_directories,
	};
	char root[32];
	int err;

	if (p) {
		snprintf(root, sizeof(root), "%u/root", p->pid);
		err = foreign_open(
			&(struct foreign_path){
				.place = FOREIGN_DIRECTORY,
				.dir_fd = requests->opener.proc_fd,
				.name = root,
			},
			&root_fd);
		/* Without it our own debug files would be taken for a container's. */
		if (failure_is_transient(err))
			return err;
	}
	search.root_fd = root_fd;
	search.path = module->path ? module->path : "";
	if (module->kind == MODULE_KERNEL) {
		search.path = kernel_file_debug_name();
		search.also = search.path;
	}
	host_note(HOST_NOTE_REQUEST, &(struct note_request){ .tag = module->number, .id = id });
	err = (question->functions ? builds_request_functions : builds_request_debug)(
		requests->builds, id, take_fd(&fd), module->number, &search);
	if (err)
		host_note(HOST_NOTE_REQUEST,
			&(struct note_request){ .tag = module->number, .id = id, .error = err });
	return err;
}

int index_requests_mapped(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping, int *ret_open_err)
{
	const struct module *module = mapping->module;
	autoclose int fd = -1;
	struct module_id id;
	int err;

	*ret_open_err = err = index_requests_open(requests, p, mapping, &id, &fd);
	if (err || !file_hash_is_none(&module->id.content))
		err = index_requests_identity(requests, module, &id);
	return err ? err
		   : index_requests_send(requests, &(struct index_question){ module, p, false },
			     &id, take_fd(&fd));
}

int index_requests_functions(const struct index_requests *requests, const struct process *p,
	const struct mapping *mapping)
{
	const struct module *module = mapping->module;
	autoclose int fd = -1;
	struct module_id id;
	int err = index_requests_open(requests, p, mapping, &id, &fd);

	if (!err && !file_hash_is_none(&module->id.content))
		err = index_requests_identity(requests, module, &id);
	return err ? err
		   : index_requests_send(requests, &(struct index_question){ module, p, true }, &id,
			     take_fd(&fd));
}

int index_requests_functions_of(
	const struct index_requests *requests, const struct module *module, int fd)
{
	return index_requests_send(
		requests, &(struct index_question){ module, NULL, true }, &module->id, fd);
}

int index_requests_seen(const struct index_requests *requests, const struct module *module)
{
	struct module_id id;
	int err = index_requests_identity(requests, module, &id);

	return err ? err
		   : index_requests_send(requests, &(struct index_question){ module }, &id, -1);
}

int index_requests_vdso(const struct index_requests *requests, const struct module *module)
{
	struct module_id id;
	int fd, err = vdso_open(&fd, &id);

	host_note(HOST_NOTE_VDSO, &(struct note_vdso){ .error = err, .id = err ? NULL : &id });
	return err ? err
		   : index_requests_send(requests, &(struct index_question){ module }, &id, fd);
}

int index_requests_kernel(const struct index_requests *requests, const struct module *module,
	uint64_t start, uint64_t end)
{
	struct module_id id;
	int fd, err = kernel_file_open(start, end, &fd, &id);

	return err ? err
		   : index_requests_send(requests, &(struct index_question){ module }, &id, fd);
}
