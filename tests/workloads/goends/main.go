// SPDX-License-Identifier: Apache-2.0

// Goroutines that end in the middle of calls, one after the other, until the program is killed.
package main

import (
	"runtime"
	"time"
)

//go:noinline
func leaf(n int) int {
	return n + 1
}

//go:noinline
func quits(n int) {
	leaf(n)
	runtime.Goexit()
}

//go:noinline
func outer(n int) int {
	leaf(n)
	quits(n)
	return leaf(n)
}

func main() {
	for i := 0; ; i++ {
		ended := make(chan bool)
		go func() {
			defer close(ended)
			outer(i)
		}()
		<-ended
		time.Sleep(200 * time.Millisecond)
	}
}
