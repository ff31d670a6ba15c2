/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Scope guards: an object is freed at the end of its scope unless take() moved it out. Built on
 * GNU's cleanup attribute, so that error paths need no cleanup code of their own.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Moves a pointer out of its guarded variable: returns it and sets the variable to NULL. */
#define take(p)                           \
	({                                \
		__auto_type taken_ = (p); \
		(p) = NULL;               \
		taken_;                   \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

static inline void cleanup_free_(void *pointer)
{
	free(*(void **)pointer);
}

static inline void cleanup_close_(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_fclose_(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void cleanup_closedir_(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}

#define autofree __attribute__((cleanup(cleanup_free_)))
#define autoclose __attribute__((cleanup(cleanup_close_))) /* an int file descriptor, -1 = none */
#define autofclose __attribute__((cleanup(cleanup_fclose_)))
#define autoclosedir __attribute__((cleanup(cleanup_closedir_)))
/* Calls FN(&variable): a struct's deinit function, or one from DEFINE_AUTO for a pointer. */
#define autocall(fn) __attribute__((cleanup(fn)))

/* Defines auto_TYPE_destroy(), so that `autocall(auto_map_destroy) struct map *m` works. */
#define DEFINE_AUTO(type)                                              \
	static inline void auto_##type##_destroy(struct type **object) \
	{                                                              \
		type##_destroy(*object);                               \
	}                                                              \
	struct type

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
