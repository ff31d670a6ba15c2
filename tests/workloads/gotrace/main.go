// SPDX-License-Identifier: Apache-2.0

// Calls that fathom traces, and their truth: each worker is a goroutine that notes its own calls. At the end
// one line is written for each worker: `level:name` of its calls in the order of their entries, with `!` for
// those that do not return. The first worker ends with a recursion of DEPTH.
// Usage: gotrace WORKERS ROUNDS FILE [DEPTH]
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

type truth struct {
	calls []string
	open  []int // indices into calls
}

func (t *truth) enter(name string) {
	t.calls = append(t.calls, fmt.Sprintf("%d:%s!", len(t.open), name))
	t.open = append(t.open, len(t.calls)-1)
}

func (t *truth) leave() {
	last := t.open[len(t.open)-1]
	t.calls[last] = strings.TrimSuffix(t.calls[last], "!")
	t.open = t.open[:len(t.open)-1]
}

//go:noinline
func work(t *truth, n, rounds int) {
	t.enter("main.work")
	for i := 0; i < rounds; i++ {
		left(t, n%5)
		catch(t, i%4)
		through(t, i%3)
		runtime.Gosched()
		grow(t, 30+n%40)
	}
	if n == 0 && len(os.Args) > 4 {
		depth, _ := strconv.Atoi(os.Args[4])
		grow(t, depth)
	}
	if n%7 == 3 {
		exits(t)
	}
	t.leave()
}

//go:noinline
func left(t *truth, n int) {
	t.enter("main.left")
	if n > 0 {
		right(t, n-1)
	}
	leaf(t)
	t.leave()
}

//go:noinline
func right(t *truth, n int) {
	t.enter("main.right")
	left(t, n)
	t.leave()
}

//go:noinline
func leaf(t *truth) {
	t.enter("main.leaf")
	t.leave()
}

// The stack moves while these are open.
//
//go:noinline
func grow(t *truth, n int) byte {
	var room [300]byte
	t.enter("main.grow")
	room[n%300] = 1
	if n > 0 {
		room[n%300] += grow(t, n-1)
	}
	t.leave()
	return room[n%300]
}

//go:noinline
func throw(t *truth, n int) {
	t.enter("main.throw")
	if n == 0 {
		panic("thrown")
	}
	throw(t, n-1)
	t.leave()
}

// The calls below a recovered panic have ended when the last deferred call runs.
//
//go:noinline
func catch(t *truth, n int) {
	t.enter("main.catch")
	open := len(t.open)
	defer last(t)
	defer func() {
		recover()
		t.open = t.open[:open]
	}()
	throw(t, n)
}

//go:noinline
func last(t *truth) {
	t.enter("main.last")
	t.leave()
	t.leave() // main.catch
}

// As catch(), but what throws is below functions that are not traced.
//
//go:noinline
func through(t *truth, n int) {
	t.enter("main.through")
	quiet(t, n)
	leaf(t)
	other(t)
	t.leave()
}

//go:noinline
func quiet(t *truth, n int) {
	open := len(t.open)
	defer leaf(t)
	defer func() {
		recover()
		t.open = t.open[:open]
	}()
	quieter(t, n)
}

//go:noinline
func quieter(t *truth, n int) {
	var room [200]byte
	room[n] = 1
	throw(t, n)
	room[n] = 2
}

//go:noinline
func other(t *truth) {
	leaf(t)
	runtime.KeepAlive(t)
}

//go:noinline
func exits(t *truth) {
	t.enter("main.exits")
	runtime.Goexit()
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	truths := make([]truth, workers)
	var done sync.WaitGroup
	for i := range truths {
		done.Add(1)
		go func(i int) {
			defer done.Done()
			work(&truths[i], i, rounds)
		}(i)
	}
	done.Wait()
	file, _ := os.Create(os.Args[3])
	for _, t := range truths {
		fmt.Fprintln(file, strings.Join(t.calls, " "))
	}
	file.Close()
}
