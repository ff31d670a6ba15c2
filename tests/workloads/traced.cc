// SPDX-License-Identifier: Apache-2.0
// Calls that fathom traces, and their truth: each thread notes its own calls, also in a signal handler that
// has a stack of its own. One line is written for each root: `level:name` of its calls in the order of their
// entries, with `!` for those that do not return. Usage: traced THREADS ROUNDS DEPTH FILE
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#define TRACED __attribute__((noinline))

struct truth {
	std::vector<std::string> calls;
	std::vector<size_t> open;

	void enter(const char *name)
	{
		calls.push_back(std::to_string(open.size()) + ":" + name + "!");
		open.push_back(calls.size() - 1);
	}
	void leave()
	{
		calls[open.back()].pop_back();
		open.pop_back();
	}
};

static thread_local truth *now;
static thread_local truth handled; /* by the signal handler */
static volatile int sink;

TRACED void t_leaf()
{
	now->enter("t_leaf()");
	sink++;
	now->leave();
}

TRACED void t_throw(int n)
{
	now->enter("t_throw(int)");
	if (!n)
		throw std::runtime_error("thrown");
	t_throw(n - 1);
	now->leave();
}

/* Not traced: what is below it has larger frames than what comes next. */
TRACED void quiet(int n)
{
	volatile char room[500];

	room[n] = 1;
	t_throw(n);
	sink += room[n];
}

TRACED void quiet_leaf()
{
	t_leaf();
	sink++;
}

TRACED void t_catch(int n)
{
	now->enter("t_catch(int)");
	size_t open = now->open.size();

	try {
		quiet(n);
	} catch (const std::exception &) {
		now->open.resize(open);
		t_leaf();
	}
	quiet_leaf();
	now->leave();
}

TRACED void t_jump(jmp_buf *where, int n)
{
	now->enter("t_jump(__jmp_buf_tag (*) [1], int)");
	if (!n)
		longjmp(*where, 1);
	t_jump(where, n - 1);
	sink++;
	now->leave();
}

TRACED void t_land(int n)
{
	jmp_buf where;
	volatile size_t open;

	now->enter("t_land(int)");
	open = now->open.size();
	if (!setjmp(where))
		t_jump(&where, n);
	now->open.resize(open);
	t_leaf();
	now->leave();
}

TRACED void t_recurse(int n)
{
	now->enter("t_recurse(int)");
	if (n)
		t_recurse(n - 1);
	sink++;
	now->leave();
}

TRACED void t_handler(int)
{
	truth *interrupted = now;

	now = &handled;
	now->enter("t_handler(int)");
	t_leaf();
	now->leave();
	now = interrupted;
}

TRACED void t_raise()
{
	now->enter("t_raise()");
	raise(SIGUSR1);
	t_leaf();
	now->leave();
}

TRACED void t_root(int rounds, int depth)
{
	now->enter("t_root(int, int)");
	for (int i = 0; i < rounds; i++) {
		t_catch(i % 3);
		t_land(i % 3);
		t_raise();
	}
	t_recurse(depth);
	now->leave();
}

static std::string line(const truth &t, size_t from, size_t to)
{
	std::string text;

	for (size_t i = from; i < to; i++)
		text += (i > from ? " " : "") + t.calls[i];
	return text + "\n";
}

static std::string worked(int rounds, int depth)
{
	truth t;
	stack_t stack = {};
	std::string text;

	stack.ss_size = 65536;
	stack.ss_sp = malloc(stack.ss_size);
	sigaltstack(&stack, nullptr);
	now = &t;
	t_root(rounds, depth);
	text = line(t, 0, t.calls.size());
	for (size_t i = 0; i < handled.calls.size(); i += 2)
		text += line(handled, i, i + 2);
	return text;
}

int main(int, char **argv)
{
	std::vector<std::thread> threads;
	std::vector<std::string> texts(atoi(argv[1]));
	struct sigaction action = {};

	action.sa_handler = t_handler;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, nullptr);
	for (std::string &text : texts)
		threads.emplace_back([&text, argv] { text = worked(atoi(argv[2]), atoi(argv[3])); });
	for (std::thread &thread : threads)
		thread.join();
	FILE *file = fopen(argv[4], "w");

	for (const std::string &text : texts)
		fputs(text.c_str(), file);
	fclose(file);
	return 3;
}
