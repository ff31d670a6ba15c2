/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/cpus.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/io.h"

enum {
	MAX_CPU = 8191, /* NR_CPUS of the biggest kernels, less one */
	LIST_BYTES = 4096,
};

void cpu_list_deinit(struct cpu_list *list)
{
	free(list->numbers);
	*list = (struct cpu_list){ 0 };
}

static int parse_number(const char **text, int *ret_number)
{
	int number = 0;

	if (!isdigit((unsigned char)**text))
		return -EBADMSG;
	for (; isdigit((unsigned char)**text); (*text)++) {
		number = number * 10 + (**text - '0');
		if (number > MAX_CPU)
			return -E2BIG;
	}
	*ret_number = number;
	return 0;
}

static int append_range(struct cpu_list *list, int first, int last)
{
	int err = array_reserve(list->numbers, list->capacity,
		list->count + (size_t)(last - first) + 1, MAX_CPU + 1);

	if (err)
		return err;
	for (int cpu = first; cpu <= last; cpu++)
		list->numbers[list->count++] = cpu;
	return 0;
}

/* `3` or `0-3`, rising above what the list holds already. */
static int parse_range(const char **text, struct cpu_list *list)
{
	int first, last;
	int err = parse_number(text, &first);

	if (err)
		return err;
	last = first;
	if (**text == '-') {
		(*text)++;
		err = parse_number(text, &last);
		if (err)
			return err;
	}
	if (last < first || (list->count && first <= list->numbers[list->count - 1]))
		return -EBADMSG;
	return append_range(list, first, last);
}

int cpu_list_parse(const char *text, struct cpu_list *ret_list)
{
	autocall(cpu_list_deinit) struct cpu_list list = { 0 };

	for (;;) {
		int err = parse_range(&text, &list);

		if (err)
			return err;
		if (*text != ',')
			break;
		text++;
	}
	if (*text)
		return -EBADMSG;
	*ret_list = list;
	list = (struct cpu_list){ 0 };
	return 0;
}

int cpu_list_online(struct cpu_list *ret_list)
{
	char line[LIST_BYTES];
	ssize_t length =
		io_read_line(AT_FDCWD, "/sys/devices/system/cpu/online", line, sizeof(line));

	if (length < 0)
		return (int)length;
	return cpu_list_parse(line, ret_list);
}

bool cpu_list_has(const struct cpu_list *list, int cpu)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->numbers[i] == cpu)
			return true;
	return false;
}
