/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How many descriptors this process may have open. */

/*
 * Raises the soft limit to the hard one. The soft limit, often 1024, exists for programs that use
 * select().
 */
void descriptors_raise_limit(void);
/* The limit; UINT_MAX = none, or unknown. */
unsigned int descriptors_limit(void);
/* About how many more can be opened now; exact as long as none was closed. */
unsigned int descriptors_left(void);
