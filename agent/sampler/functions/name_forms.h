/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The names by which users know one function. For `void app::run<int>(int) const` these are, beside
 * that name and its linkage name, `void app::run<int>` and `app::run<int>`.
 */
#include <stddef.h>

enum { NAME_FORMS = 4 };

struct name_form {
	const char *text; /* not terminated */
	size_t size;
};

struct name_forms {
	struct name_form forms[NAME_FORMS];
	size_t count;
};

/* The texts of *RET_FORMS are parts of NAME (demangled) and LINKAGE. */
void name_forms_of(const char *name, const char *linkage, struct name_forms *ret_forms);
