// SPDX-License-Identifier: Apache-2.0

// Goroutines that all wait in a call at once. Usage: goholds COUNT. Prints `returned COUNT` at its end.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

//go:noinline
func holds(waiting *sync.WaitGroup, go_ chan bool) int {
	waiting.Done()
	<-go_
	return 1
}

func main() {
	count, _ := strconv.Atoi(os.Args[1])
	var waiting sync.WaitGroup
	waiting.Add(count)
	results, go_ := make(chan int), make(chan bool)
	for i := 0; i < count; i++ {
		go func() { results <- holds(&waiting, go_) }()
	}
	waiting.Wait()
	close(go_)
	sum := 0
	for i := 0; i < count; i++ {
		sum += <-results
	}
	fmt.Fprintln(os.Stderr, "returned", sum)
}
