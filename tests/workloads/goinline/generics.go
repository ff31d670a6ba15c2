// SPDX-License-Identifier: Apache-2.0

//go:build go1.18
// +build go1.18

package main

type number interface{ ~int | ~float64 }

type stack[T any] struct{ items []T }

func (s *stack[T]) push(item T) { s.items = append(s.items, item); sink += record(len(s.items)) }

func sum[T number](items []T, f func(T) int) (total T) {
	for _, item := range items {
		total += item + T(f(item))
	}
	return total
}

func apply[K comparable, V number](m map[K]V) int {
	n := 0
	for _, v := range m {
		n += inner(int(v))
	}
	return n
}

type tag string

//go:noinline
func genericCaller(n int) int {
	ints := &stack[int]{}
	ints.push(n)
	names := &stack[tag]{}
	names.push("a")
	n += sum(ints.items, func(k int) int { return middle(k) })
	n += int(sum([]float64{1, 2}, func(k float64) int { return inner(int(k)) }))
	return n + apply(map[tag]int{"x": 1}) + apply(map[[2]int]float64{{1, 2}: 3})
}

func init() { calls = append(calls, genericCaller) }
