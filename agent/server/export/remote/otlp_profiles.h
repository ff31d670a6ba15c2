/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The samples of a payload as OTLP profiles, one for each sample type, and their table of stacks.
 */
#include "proto/otlp_profiles.pb-c.h"

struct otlp;

/* Puts the profiles into SCOPE, the default type's first. -E2BIG, -ENOMEM. */
int otlp_profiles(struct otlp *o, Otlp__ScopeProfiles *scope);
/* Fills the table of the stacks that otlp_profiles() found. -E2BIG, -ENOMEM. */
int otlp_stack_table(struct otlp *o, Otlp__ProfilesDictionary *dictionary);
