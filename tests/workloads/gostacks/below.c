/* SPDX-License-Identifier: Apache-2.0 */
/* C functions that cgo.go calls, and that call back into Go. */
#include <pthread.h>

#include "_cgo_export.h"

static volatile unsigned int sink;

__attribute__((noinline)) static void c_leaf(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) static void c_inner(void)
{
	c_leaf(3000);
	sink++;
}

void c_outer(void);
void c_call_go(int depth);
void c_start_thread(void);

void c_outer(void)
{
	c_inner();
	sink++;
}

/* Has more on the stack than a frame pointer. */
__attribute__((noinline)) void c_call_go(int depth)
{
	volatile char room[200];

	room[depth] = 1;
	goBack(depth);
	sink += (unsigned int)room[depth];
}

static void *c_thread(void *argument)
{
	(void)argument;
	for (;;) {
		goFromThread();
		sink++;
	}
	return NULL;
}

void c_start_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, c_thread, NULL);
}
