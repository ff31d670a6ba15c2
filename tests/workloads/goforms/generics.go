// SPDX-License-Identifier: Apache-2.0

//go:build go1.21
// +build go1.21

package main

type box[T any] struct{ items []T }

//go:noinline
func (b *box[T]) put(t *truth, item T) int {
	began := now()
	b.items = append(b.items[:0], item)
	t.saw(began)
	return len(b.items)
}

//go:noinline
func generic[K comparable, V any](t *truth, m map[K]V, key K) V {
	began := now()
	v := m[key]
	t.saw(began)
	return v
}

func init() {
	boxes := form("main.(*box[...]).put")
	generics := form("main.generic[...]")
	forms = append(forms, func(n int) {
		ints, texts := &box[int]{}, &box[string]{}
		boxes.timed(func() { ints.put(boxes, n) })
		boxes.timed(func() { texts.put(boxes, "x") })
		m := map[string]int{"x": n}
		generics.timed(func() { generic(generics, m, "x") })
	})
}
