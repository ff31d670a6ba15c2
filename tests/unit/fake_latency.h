/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A fake of agent/sampler/probes/latency without a kernel, which records what is attached. Include
 * in one file of a test program.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/sampler/probes/latency/latency.h"

struct latency {
	struct abi_latency_function functions[16];
	uint32_t function_count, function_limit;
	size_t removed;
	struct latency_site sites[64];
	size_t site_count;
	uint64_t refused_off; /* a site there is refused; 0 = none */
	int attach_error;
	unsigned int attached, attached_again, detached, ended;
	/* In the background. */
	int begin_error; /* of latency_attach_begin() */
	bool silent; /* what attaches or detaches goes on for ever */
	unsigned int attaching, cancelled, abandoned, detaching;
};

struct latency_attached {
	struct latency_refused_site refused[4];
	size_t refused_count;
};

int latency_functions_add(
	struct latency *l, const struct abi_latency_function *function, uint32_t *ret_number)
{
	if (l->function_count == l->function_limit)
		return -E2BIG;
	*ret_number = l->function_count;
	l->functions[l->function_count++] = *function;
	return 0;
}

void latency_functions_remove(struct latency *l, const uint32_t *numbers, size_t count)
{
	(void)numbers;
	l->removed += count;
}

int latency_attach(struct latency *l, int file_fd, const struct latency_site *sites, size_t count,
	struct latency_attached **ret_attached, const char **ret_step)
{
	struct latency_attached *attached;

	assert_true(fcntl(file_fd, F_GETFD) >= 0);
	*ret_step = "attach in the fake kernel";
	if (l->attach_error)
		return l->attach_error;
	attached = calloc(1, sizeof(*attached));
	assert_non_null(attached);
	for (size_t i = 0; i < count; i++) {
		if (l->refused_off && sites[i].file_off == l->refused_off)
			attached->refused[attached->refused_count++] =
				(struct latency_refused_site){ .number = i, .err = -ENOTSUP };
		else
			l->sites[l->site_count++] = sites[i];
	}
	l->attached++;
	*ret_attached = attached;
	return 0;
}

const struct latency_refused_site *latency_refused_sites(
	const struct latency_attached *attached, size_t *ret_count)
{
	*ret_count = attached->refused_count;
	return attached->refused;
}

void latency_detach(struct latency *l, struct latency_attached *attached)
{
	l->detached += attached != NULL;
	free(attached);
}

void latency_detach_all(struct latency *l, struct latency_attached **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		latency_detach(l, list[i]);
}

int latency_attach_again(struct latency *l, struct latency_attached *attached, int file_fd)
{
	assert_true(fcntl(file_fd, F_GETFD) >= 0 && attached);
	l->attached_again++;
	return 0;
}

struct latency_attaching {
	struct latency *latency;
	struct latency_attached *attached;
	int err;
};

struct latency_detaching {
	struct latency *latency;
};

void latency_functions_end(struct latency *l, const uint32_t *numbers, size_t count)
{
	(void)numbers;
	l->ended += (unsigned int)count;
}

int latency_attach_begin(struct latency *l, int file_fd, const struct latency_site *sites,
	size_t count, struct latency_attaching **ret_attaching)
{
	struct latency_attaching *attaching;
	const char *step;

	if (l->begin_error)
		return l->begin_error;
	attaching = calloc(1, sizeof(*attaching));
	assert_non_null(attaching);
	attaching->latency = l;
	attaching->err = latency_attach(l, file_fd, sites, count, &attaching->attached, &step);
	l->attaching++;
	*ret_attaching = attaching;
	return 0;
}

int latency_attach_end(struct latency_attaching *attaching, struct latency_attached **ret_attached,
	const char **ret_step)
{
	if (attaching->latency->silent)
		return -EAGAIN;
	*ret_step = "attach in a fake process";
	*ret_attached = attaching->attached;
	attaching->attached = NULL;
	return attaching->err;
}

void latency_attach_cancel(struct latency_attaching *attaching)
{
	attaching->latency->cancelled++;
}

void latency_attach_abandon(struct latency *l, struct latency_attaching *attaching)
{
	l->attaching--;
	l->abandoned++;
	free(attaching->attached);
	free(attaching);
}

bool latency_attach_reap(struct latency *l, struct latency_attaching *attaching)
{
	if (l->silent)
		return false;
	l->attaching--;
	free(attaching->attached);
	free(attaching);
	return true;
}

void latency_detach_begin(struct latency *l, struct latency_attached **list, size_t count,
	struct latency_detaching **ret_detaching)
{
	*ret_detaching = calloc(1, sizeof(**ret_detaching));
	assert_non_null(*ret_detaching);
	(*ret_detaching)->latency = l;
	latency_detach_all(l, list, count);
	l->detaching++;
}

void latency_detach_abandon(struct latency_detaching *detaching)
{
	detaching->latency->detaching--;
	detaching->latency->abandoned++;
	free(detaching);
}

bool latency_detach_reap(struct latency_detaching *detaching)
{
	if (detaching->latency->silent)
		return false;
	detaching->latency->detaching--;
	free(detaching);
	return true;
}
