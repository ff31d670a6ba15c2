/* SPDX-License-Identifier: Apache-2.0 */
#include "_cgo_export.h"

static volatile unsigned int sink;

void churn_c_work(int times);
void churn_c_calls_go(int depth);

__attribute__((noinline)) void churn_c_work(int times)
{
	for (int i = 0; i < times; i++)
		sink += (unsigned int)i;
}

__attribute__((noinline)) void churn_c_calls_go(int depth)
{
	volatile char room[200];

	room[depth] = 1;
	churn_c_work(1000);
	churnBack(depth);
	sink += (unsigned int)room[depth];
}
