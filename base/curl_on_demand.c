/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads libcurl when the first remote store is created, or in the child that queries debuginfod.
 * Linking it directly would load 19 more libraries into every process of this program: 3 ms of CPU
 * per start (each sandboxed child is a start, too) and 2 MB of resident memory in a sampler that
 * sends nothing (12.6 MB instead of 10.6).
 *
 * The functions here have the names of libcurl's and forward to them. Without the library they fail
 * as libcurl does when it is out of memory.
 */
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdarg.h>

/* curl.h checks the arguments' types in macros of these names. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

static const char library_name[] = "libcurl.so.4";

/* The dynamic linker searches the loaded library after this program. */
static void *symbol(const char *name)
{
	return dlsym(RTLD_NEXT, name);
}

CURLcode curl_global_init(long flags)
{
	CURLcode (*real)(long) = NULL;

	if (dlopen(library_name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE))
		real = symbol("curl_global_init");
	return real ? real(flags) : CURLE_FAILED_INIT;
}

/* Every option and info takes one argument: a pointer, or an integer of the same size. */
CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...)
{
	CURLcode (*real)(CURL *, CURLoption, ...) = symbol("curl_easy_setopt");
	void *value;
	va_list list;

	va_start(list, option);
	value = va_arg(list, void *);
	va_end(list);
	return real ? real(handle, option, value) : CURLE_FAILED_INIT;
}

CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...)
{
	CURLcode (*real)(CURL *, CURLINFO, ...) = symbol("curl_easy_getinfo");
	void *value;
	va_list list;

	va_start(list, info);
	value = va_arg(list, void *);
	va_end(list);
	return real ? real(handle, info, value) : CURLE_FAILED_INIT;
}

CURLMcode curl_multi_setopt(CURLM *multi, CURLMoption option, ...)
{
	CURLMcode (*real)(CURLM *, CURLMoption, ...) = symbol("curl_multi_setopt");
	void *value;
	va_list list;

	va_start(list, option);
	value = va_arg(list, void *);
	va_end(list);
	return real ? real(multi, option, value) : CURLM_BAD_HANDLE;
}

#define FORWARD(type, otherwise, name, parameters, arguments) \
	type name parameters                                  \
	{                                                     \
		type(*real) parameters = symbol(#name);       \
                                                              \
		return real ? real arguments : otherwise;     \
	}

#define FORWARD_VOID(name, parameters, arguments)       \
	void name parameters                            \
	{                                               \
		void(*real) parameters = symbol(#name); \
                                                        \
		if (real)                               \
			real arguments;                 \
	}

/* The handle's type in curl_url_get() became const in a later version of libcurl. */
typedef CURLUcode url_get_of_const(const CURLU *, CURLUPart, char **, unsigned int);
typedef typeof(*__builtin_choose_expr(
	__builtin_types_compatible_p(typeof(curl_url_get), url_get_of_const), (const CURLU *)NULL,
	(CURLU *)NULL)) url_to_read;

/* clang-format off */
FORWARD(CURL *, NULL, curl_easy_init, (void), ())
FORWARD(CURLcode, CURLE_FAILED_INIT, curl_easy_perform, (CURL *handle), (handle))
FORWARD(char *, NULL, curl_easy_escape, (CURL *handle, const char *text, int length),
	(handle, text, length))
FORWARD(const char *, "libcurl is not installed", curl_easy_strerror, (CURLcode code), (code))
FORWARD_VOID(curl_easy_cleanup, (CURL *handle), (handle))

FORWARD(CURLM *, NULL, curl_multi_init, (void), ())
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_cleanup, (CURLM *multi), (multi))
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_add_handle, (CURLM *multi, CURL *handle),
	(multi, handle))
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_remove_handle, (CURLM *multi, CURL *handle),
	(multi, handle))
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_perform, (CURLM *multi, int *running),
	(multi, running))
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_poll,
	(CURLM *multi, struct curl_waitfd extra[], unsigned int count, int timeout_ms, int *ready),
	(multi, extra, count, timeout_ms, ready))
FORWARD(CURLMcode, CURLM_BAD_HANDLE, curl_multi_wakeup, (CURLM *multi), (multi))
FORWARD(CURLMsg *, NULL, curl_multi_info_read, (CURLM *multi, int *left), (multi, left))

FORWARD(struct curl_slist *, NULL, curl_slist_append, (struct curl_slist *list, const char *text),
	(list, text))
FORWARD_VOID(curl_slist_free_all, (struct curl_slist *list), (list))
FORWARD_VOID(curl_free, (void *memory), (memory))

FORWARD(CURLU *, NULL, curl_url, (void), ())
FORWARD(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_get,
	(url_to_read *url, CURLUPart what, char **part, unsigned int flags),
	(url, what, part, flags))
FORWARD(CURLUcode, CURLUE_OUT_OF_MEMORY, curl_url_set,
	(CURLU *url, CURLUPart what, const char *part, unsigned int flags),
	(url, what, part, flags))
FORWARD_VOID(curl_url_cleanup, (CURLU *url), (url))
/* clang-format on */
