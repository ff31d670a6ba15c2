// SPDX-License-Identifier: Apache-2.0

// A program with a vendored package.
package main

import (
	"fmt"

	"example.com/lib"
)

//go:noinline
func total(n int) int {
	return lib.Sum(n) + 1
}

func main() {
	fmt.Println(total(100))
}
