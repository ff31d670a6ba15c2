// SPDX-License-Identifier: Apache-2.0

// The calls that an introduction to tracing Go programs shows: add calls add1, add1 add2, and add2 add3, each
// after a pause; another goroutine calls add1 directly. Usage: goftrace ROUNDS. Each round is a line of output.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

type student struct {
	name string
	age  int
}

//go:noinline
func (s *student) String() string {
	return s.name + " is " + strconv.Itoa(s.age)
}

//go:noinline
func add(a, b int) int {
	fmt.Fprintf(os.Stderr, "add: %d + %d\n", a, b)
	return add1(a, b) + 1
}

//go:noinline
func add1(a, b int) int {
	time.Sleep(10 * time.Millisecond)
	return add2(a, b) + 1
}

//go:noinline
func add2(a, b int) int {
	time.Sleep(20 * time.Millisecond)
	return add3(a, b) + 1
}

//go:noinline
func add3(a, b int) int {
	time.Sleep(30 * time.Millisecond)
	return a + b
}

//go:noinline
func doSomething(round int) {
	s := &student{"tracer", round}
	fmt.Println(add(round, 2), s.String())
}

func main() {
	rounds, _ := strconv.Atoi(os.Args[1])
	other := make(chan int)
	go func() { other <- add1(100, 100) }()
	for i := 0; i < rounds; i++ {
		doSomething(i)
	}
	fmt.Println(<-other)
}
