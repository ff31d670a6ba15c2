/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where gdb, elfutils and LLVM look, the safest match first: by build ID, then by name
 * next to the file, in .debug/ there, and below the debug directories. Each is tried below the
 * process's root first, because its container may bring its own debug files, and paths are
 * meaningful only there. Symbolic links cannot lead outside of that root (openat2).
 */
#include "symbolizer/builds/debug_search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/failure.h"
#include "base/foreign.h"
#include "base/items.h"
#include "symbolizer/index/index.h"

enum {
	MAX_DIRECTORIES = 16,
	MAX_DEBUG = 4, /* debug files offered; the others are for what they name */
	MAX_FOUND = 8,
	ROOTS = 2,
};

struct search {
	const struct debug_search *options;
	int roots[ROOTS]; /* -1 = none */
	struct stat module;
	struct debug_files *found;
	struct stat states[MAX_FOUND]; /* of `found` */
	int shortage; /* errno of a failed search: no memory, no descriptors; 0 = none */
};

/* A path under construction; one that does not fit is skipped. */
struct place {
	char text[PATH_MAX];
};

bool debug_search_is_our_root(int root_fd)
{
	struct stat target, ours;

	if (root_fd < 0)
		return true;
	return !foreign_look(root_fd, &target) && !stat("/", &ours) &&
	       target.st_dev == ours.st_dev && target.st_ino == ours.st_ino;
}

static void open_roots(struct search *s)
{
	s->roots[0] = debug_search_is_our_root(s->options->root_fd) ? -1 : s->options->root_fd;
	s->roots[1] = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (s->roots[1] < 0 && failure_is_shortage(-errno))
		s->shortage = -errno;
}

static bool is_found_already(const struct search *s, const struct stat *st)
{
	if (st->st_dev == s->module.st_dev && st->st_ino == s->module.st_ino)
		return true;
	for (size_t i = 0; i < s->found->count; i++)
		if (s->states[i].st_dev == st->st_dev && s->states[i].st_ino == st->st_ino)
			return true;
	return false;
}

static void note_late(const struct search *s, int err)
{
	if (err == -EAGAIN && s->options->late)
		*s->options->late = true;
}

/* Opens PLACE below ROOT as a debug file like KIND. */
static void try_path(
	struct search *s, int root, const struct debug_file *kind, const struct place *place)
{
	autoclose int fd = -1;
	struct stat st;
	int err;

	if (root < 0 || s->found->count == MAX_FOUND)
		return;
	err = foreign_open_below(root, place->text, &st, &fd);
	if (failure_is_shortage(err))
		s->shortage = err;
	note_late(s, err);
	if (err || is_found_already(s, &st))
		return;
	s->states[s->found->count] = st;
	s->found->items[s->found->count] = *kind;
	s->found->items[s->found->count].is_ours = root == s->roots[1];
	s->found->items[s->found->count].bytes = (uint64_t)st.st_size;
	s->found->items[s->found->count++].fd = take_fd(&fd);
}

static void try_below(
	struct search *s, int root, const struct debug_file *kind, const char *parts[3])
{
	struct place place;
	int length =
		snprintf(place.text, sizeof(place.text), "%s%s%s", parts[0], parts[1], parts[2]);

	if (length > 0 && (size_t)length < sizeof(place.text))
		try_path(s, root, kind, &place);
}

/* Calls TRY_ONE for each debug directory. */
static void each_directory(struct search *s, const void *context,
	void (*try_one)(struct search *s, const char *directory, const void *context))
{
	autofree char *copy = strdup(s->options->directories);
	char *next = copy, *directory;

	for (int i = 0; i < MAX_DIRECTORIES && (directory = items_next(&next, ",")); i++) {
		if (*directory == '/' && strlen(directory) < PATH_MAX)
			try_one(s, directory, context);
	}
}

/* ---- by build ID ---------------------------------------------------------------------------- */

struct by_id {
	const struct build_id *id;
	struct debug_file kind;
};

static void try_build_id(struct search *s, const char *directory, const void *context)
{
	const struct by_id *by_id = context;
	char text[MODULE_ID_TEXT_BYTES], name[MODULE_ID_TEXT_BYTES + 24];

	build_id_format(by_id->id, text, sizeof(text));
	snprintf(name, sizeof(name), "/.build-id/%.2s/%s.debug", text, text + 2);
	for (int i = 0; i < ROOTS; i++)
		try_below(s, s->roots[i], &by_id->kind, (const char *[3]){ directory, name, "" });
}

static void find_by_id(struct search *s, const struct build_id *id, enum debug_file_role role)
{
	const struct by_id by_id = { .id = id, .kind = { .role = role } };

	if (id->size > 1)
		each_directory(s, &by_id, try_build_id);
}

static void try_also(struct search *s, const char *directory, const void *context)
{
	const struct debug_file kind = { .role = DEBUG_FILE_SEPARATE };

	try_below(s, s->roots[1], &kind, (const char *[3]){ directory, context, "" });
}

/* ---- by name -------------------------------------------------------------------------------- */

struct by_link {
	const char *folder; /* of the module, with a trailing slash */
	const char *name;
	struct debug_file kind;
};

static void try_link(struct search *s, const char *directory, const void *context)
{
	const struct by_link *link = context;

	for (int i = 0; i < ROOTS; i++) {
		struct place place;
		int length = snprintf(place.text, sizeof(place.text), "%s%s%s", directory,
			link->folder, link->name);

		if (length > 0 && (size_t)length < sizeof(place.text))
			try_path(s, s->roots[i], &link->kind, &place);
	}
}

/* The root to which the module's path is relative. */
static int home_root(const struct search *s)
{
	return s->roots[0] >= 0 ? s->roots[0] : s->roots[1];
}

/* The root below which a debug file was found. */
static int debug_file_root(const struct search *s, const struct debug_file *c)
{
	return c->is_ours ? s->roots[1] : s->roots[0];
}

static bool folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) + 1 : 0;

	if (!length || length >= PATH_MAX || path[0] != '/')
		return false;
	memcpy(folder, path, length);
	folder[length] = 0;
	return true;
}

static void find_by_link(struct search *s, const struct debug_names *names)
{
	char folder[PATH_MAX];
	struct by_link link = {
		.folder = folder,
		.name = names->link,
		.kind = { .role = DEBUG_FILE_LINKED, .crc = names->link_crc },
	};

	if (!names->link[0] || !folder_of(s->options->path, folder))
		return;
	try_below(s, home_root(s), &link.kind, (const char *[3]){ folder, names->link, "" });
	try_below(s, home_root(s), &link.kind, (const char *[3]){ folder, ".debug/", names->link });
	each_directory(s, &link, try_link);
}

/* ---- what the files found name in turn ------------------------------------------------------ */

/* PATH, below ROOT, is the file with NAMES: a relative alternate is resolved from its folder. */
static void debug_search_open_alternate(
	struct search *s, const struct debug_names *names, int root, const char *path)
{
	const struct debug_file kind = { .role = DEBUG_FILE_SUPPLEMENTARY };
	char folder[PATH_MAX];

	if (!names->alternate[0])
		return;
	find_by_id(s, &names->alternate_id, DEBUG_FILE_SUPPLEMENTARY);
	for (int i = 0; i < ROOTS && names->alternate[0] == '/'; i++)
		try_below(s, s->roots[i], &kind, (const char *[3]){ names->alternate, "", "" });
	if (names->alternate[0] != '/' && folder_of(path, folder))
		try_below(s, root, &kind, (const char *[3]){ folder, names->alternate, "" });
}

/*
 * Path of an open file after all symbolic links. For a file in a container, the path of its mounts.
 */
static void path_of(int fd, struct place *ret_path)
{
	char name[40];
	ssize_t length;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	length = readlink(name, ret_path->text, sizeof(ret_path->text) - 1);
	ret_path->text[MAX(length, 0)] = 0;
}

/* .dwp packages: split DWARF in one file, next to the program or its debug file. */
static void find_packages(struct search *s)
{
	const struct debug_file kind = { .role = DEBUG_FILE_SPLIT };
	size_t own_count = s->found->count;

	if (s->options->path[0] == '/')
		try_below(
			s, home_root(s), &kind, (const char *[3]){ s->options->path, ".dwp", "" });
	for (size_t i = 0; i < own_count; i++) {
		struct place place;

		path_of(s->found->items[i].fd, &place);
		if (place.text[0] == '/')
			try_below(s, debug_file_root(s, &s->found->items[i]), &kind,
				(const char *[3]){ place.text, ".dwp", "" });
	}
}

static void find_all(struct search *s, const struct debug_names *names)
{
	if (!names->has_dwarf) {
		find_by_id(s, &names->build_id, DEBUG_FILE_SEPARATE);
		if (s->options->also && *s->options->also)
			each_directory(s, s->options->also, try_also);
		find_by_link(s, names);
	}
	while (s->found->count > MAX_DEBUG)
		close(s->found->items[--s->found->count].fd);
	find_packages(s);
	debug_search_open_alternate(s, names, home_root(s), s->options->path);
}

static int end_search(struct search *s)
{
	if (s->roots[1] >= 0)
		close(s->roots[1]);
	if (s->shortage)
		debug_files_close(s->found);
	return s->shortage;
}

int debug_search_find(const struct debug_search *search, int elf_fd,
	const struct debug_names *names, struct debug_files *ret_debug_files)
{
	struct search s = { .options = search, .found = ret_debug_files };
	int err;

	ret_debug_files->count = 0;
	err = foreign_look(elf_fd, &s.module);
	note_late(&s, err);
	if (err)
		return 0;
	open_roots(&s);
	find_all(&s, names);
	return end_search(&s);
}

int debug_search_find_alternate(const struct debug_search *search, const struct debug_file *debug,
	const struct debug_names *names, struct debug_files *ret_debug_files)
{
	struct search s = { .options = search, .found = ret_debug_files };
	struct place place;
	int err;

	ret_debug_files->count = 0;
	err = foreign_look(debug->fd, &s.module);
	note_late(&s, err);
	if (err)
		return 0;
	open_roots(&s);
	path_of(debug->fd, &place);
	debug_search_open_alternate(&s, names, debug_file_root(&s, debug), place.text);
	return end_search(&s);
}

static bool has_role(const struct debug_files *c, enum debug_file_role role)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->items[i].role == role)
			return true;
	return false;
}

/* Returns true if the alternate that the debug files in FOUND name (NAMES) can be found. */
static bool has_alternate(const struct debug_search *search, const struct debug_names *names,
	const struct debug_files *found)
{
	bool has = false;

	for (size_t i = 0; i < found->count && !has; i++) {
		const struct debug_file *c = &found->items[i];
		struct debug_files alternates = { .count = 0 };

		if (c->role == DEBUG_FILE_SEPARATE || c->role == DEBUG_FILE_LINKED)
			(void)debug_search_find_alternate(search, c, names, &alternates);
		has = alternates.count > 0;
		debug_files_close(&alternates);
	}
	return has;
}

/* Returns true if FOUND, or a file that it names, has something that INDEX lacks. */
static bool index_is_helped(const struct debug_search *search, const struct index *index,
	const struct debug_names *of_debug, const struct debug_files *found)
{
	if (index_lacks_debug(index) && found->count)
		return true;
	if (index_lacks_shared(index) &&
		(has_role(found, DEBUG_FILE_SUPPLEMENTARY) ||
			(of_debug && has_alternate(search, of_debug, found))))
		return true;
	return index_lacks_split(index) && has_role(found, DEBUG_FILE_SPLIT);
}

bool debug_search_would_help(
	const struct debug_search *search, int elf_fd, const struct index *index)
{
	autofree struct debug_names *names = calloc(2, sizeof(*names));
	struct debug_names *of_debug = NULL;
	struct debug_files found;
	bool is_of_debug, helps;

	if (!names || (!index_lacks_debug(index) && !index_lacks_shared(index) &&
			      !index_lacks_split(index)))
		return false;
	index_debug_names(index, names, &is_of_debug);
	if (is_of_debug) {
		of_debug = names + 1;
		*of_debug = *names;
		names->alternate[0] = 0;
	}
	(void)debug_search_find(search, elf_fd, names, &found);
	helps = index_is_helped(search, index, of_debug, &found);
	/* The second pass that uses .dwo files runs only for modules below our own root. */
	if (index_lacks_split(index) && !helps && debug_search_is_our_root(search->root_fd))
		helps = debug_search_add_split(search, index, &found) > 0;
	debug_files_close(&found);
	return helps;
}

struct path_by_id {
	const struct build_id *id;
	char **path;
};

static void note_path(struct search *s, const char *directory, const void *context)
{
	const struct path_by_id *by_id = context;
	char text[MODULE_ID_TEXT_BYTES];
	char *path;

	(void)s;
	build_id_format(by_id->id, text, sizeof(text));
	if (*by_id->path ||
		asprintf(&path, "%s/.build-id/%.2s/%s.debug", directory, text, text + 2) < 0)
		return;
	if (access(path, R_OK))
		free(path);
	else
		*by_id->path = path;
}

int debug_search_by_id(const char *directories, const struct build_id *id, char **ret_path)
{
	const struct debug_search options = {
		.directories = directories, .root_fd = -1, .path = ""
	};
	struct search s = { .options = &options, .roots = { -1, -1 } };
	char *path = NULL;
	const struct path_by_id by_id = { id, &path };

	if (id->size > 1)
		each_directory(&s, &by_id, note_path);
	if (!path)
		return -ENOENT;
	*ret_path = path;
	return 0;
}

struct open_by_id {
	const struct build_id *id;
	struct stat *st;
	int *fd;
};

static void try_to_open(struct search *s, const char *directory, const void *context)
{
	const struct open_by_id *by_id = context;
	char text[MODULE_ID_TEXT_BYTES];
	struct place place;
	int length;

	build_id_format(by_id->id, text, sizeof(text));
	length = snprintf(place.text, sizeof(place.text), "%s/.build-id/%.2s/%s.debug", directory,
		text, text + 2);
	if (*by_id->fd < 0 && length > 0 && (size_t)length < sizeof(place.text) &&
		foreign_open_below(s->roots[1], place.text, by_id->st, by_id->fd))
		*by_id->fd = -1;
}

int debug_search_open_by_id(
	const char *directories, const struct build_id *id, uint64_t *ret_bytes, int *ret_fd)
{
	const struct debug_search options = {
		.directories = directories, .root_fd = -1, .path = ""
	};
	autoclose int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct search s = { .options = &options, .roots = { -1, root_fd } };
	struct stat st;
	int fd = -1;
	const struct open_by_id by_id = { .id = id, .st = &st, .fd = &fd };

	if (id->size > 1 && root_fd >= 0)
		each_directory(&s, &by_id, try_to_open);
	if (fd < 0)
		return -ENOENT;
	*ret_bytes = (uint64_t)st.st_size;
	*ret_fd = fd;
	return 0;
}

/* ---- .dwo files ----------------------------------------------------------------------------- */

static bool debug_search_open_split_at(
	const struct search *s, int root, const char *path, struct stat *ret_stat, int *ret_fd)
{
	int err = foreign_open_below(root, path, ret_stat, ret_fd);

	note_late(s, err);
	return !err;
}

static bool debug_search_open_split(
	const struct search *s, const char *path, struct stat *ret_stat, int *ret_fd)
{
	const char *name = strrchr(path, '/');
	char folder[PATH_MAX];
	struct place place;
	int length;

	for (int i = 0; i < ROOTS && path[0] == '/'; i++)
		if (s->roots[i] >= 0 &&
			debug_search_open_split_at(s, s->roots[i], path, ret_stat, ret_fd))
			return true;
	if (!folder_of(s->options->path, folder))
		return false;
	length = snprintf(place.text, sizeof(place.text), "%s%s", folder, name ? name + 1 : path);
	return length > 0 && (size_t)length < sizeof(place.text) &&
	       debug_search_open_split_at(s, home_root(s), place.text, ret_stat, ret_fd);
}

size_t debug_search_add_split(const struct debug_search *search, const struct index *index,
	struct debug_files *debug_files)
{
	struct search s = { .options = search };
	size_t before = debug_files->count;

	if (!index_wanted_count(index))
		return 0;
	open_roots(&s);
	for (size_t i = 0; i < index_wanted_count(index); i++) {
		struct debug_file *c = &debug_files->items[debug_files->count];
		struct stat st;

		if (debug_files->count == DEBUG_FILES_MAX_SPLIT)
			break;
		*c = (struct debug_file){ .role = DEBUG_FILE_SPLIT };
		if (!debug_search_open_split(&s, index_wanted(index, i), &st, &c->fd))
			continue;
		c->bytes = (uint64_t)st.st_size;
		debug_files->count++;
	}
	if (s.roots[1] >= 0)
		close(s.roots[1]);
	return debug_files->count - before;
}
