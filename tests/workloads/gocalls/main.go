// SPDX-License-Identifier: Apache-2.0

// Calls functions when it is told to. A line `NAME COUNT` on standard input makes COUNT calls of NAME, by ten
// goroutines; the answer is `NAME TOTAL NS`: its calls so far, and the time that they took as the callers saw it.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const goroutines = 10

type cart struct{ items []int }

//go:noinline
func (c *cart) add(n int) { c.items = append(c.items[:0], n) }

//go:noinline
func (c *cart) pay(n int) { time.Sleep(time.Duration(n+1) * time.Microsecond) }

//go:noinline
func deep(n int) int {
	var room [512]byte
	if n == 0 {
		return int(room[0])
	}
	return deep(n-1) + int(room[n%len(room)])
}

type counted struct {
	call      func(c *cart, n int)
	calls, ns atomic.Int64
}

//go:noinline
func other(n int) int {
	for i := 0; i < 100; i++ {
		n = n*5 + i
	}
	return n
}

var functions = map[string]*counted{
	"add":   {call: (*cart).add},
	"pay":   {call: (*cart).pay},
	"other": {call: func(_ *cart, n int) { other(n) }},
	"deep":  {call: func(_ *cart, n int) { deep(n % 50) }},
}

func run(f *counted, count int) {
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			c := &cart{}
			for n := g; n < count; n += goroutines {
				begin := time.Now()
				f.call(c, n)
				f.ns.Add(int64(time.Since(begin)))
				f.calls.Add(1)
			}
		}(g)
	}
	group.Wait()
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		var name string
		var count int
		if _, err := fmt.Sscan(in.Text(), &name, &count); err != nil || functions[name] == nil {
			os.Exit(2)
		}
		f := functions[name]
		run(f, count)
		fmt.Println(name, f.calls.Load(), f.ns.Load())
	}
}
