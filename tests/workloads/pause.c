/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for a signal: the first process of a pod. */
#include <unistd.h>

int main(void)
{
	pause();
	return 0;
}
