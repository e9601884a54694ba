package queue

import "container/heap"

// expiring is the value of a table.
type expiring interface {
	// expire drops what has expired and returns the next time to check, 0 if nothing is left.
	expire(now int64) (next int64)
}

// table is a map whose entries expire. An expired entry is not returned, and each call of sweep
// removes a few of them.
type table[V expiring] struct {
	nodes map[string]*node[V]
	due   dueHeap[V]
}

// node is one entry. It is checked at due, which is never after the value expires. Extending the
// lifetime of a value does not change due, and so costs nothing.
type node[V expiring] struct {
	key   string
	value V
	due   int64 // Unix ms
	index int   // in the heap
}

func newTable[V expiring]() table[V] { return table[V]{nodes: make(map[string]*node[V])} }

// get returns the value of key if it has not expired.
func (t *table[V]) get(key string, now int64) (value V, found bool) {
	n := t.nodes[key]
	if n == nil || n.value.expire(now) == 0 {
		return value, false
	}
	return n.value, true
}

// put stores a value. It must be called after every change that may make the value expire earlier.
func (t *table[V]) put(key string, value V, now int64) {
	due := value.expire(now)
	n := t.nodes[key]
	if n == nil {
		n = &node[V]{key: key, value: value, due: due}
		t.nodes[key] = n
		heap.Push(&t.due, n)
		return
	}
	n.value = value
	if due < n.due {
		n.due = due
		heap.Fix(&t.due, n.index)
	}
}

// sweep checks a few entries that are due. Each call of the store adds at most one entry and
// sweeps, so the table never holds many expired entries.
func (t *table[V]) sweep(now int64) {
	for range 4 {
		if len(t.due) == 0 || t.due[0].due > now {
			return
		}
		n := t.due[0]
		if n.due = n.value.expire(now); n.due > 0 {
			heap.Fix(&t.due, 0)
			continue
		}
		heap.Pop(&t.due)
		delete(t.nodes, n.key)
	}
}

// dueHeap is a heap with the entry that is due first at its head.
type dueHeap[V expiring] []*node[V]

func (h dueHeap[V]) Len() int           { return len(h) }
func (h dueHeap[V]) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap[V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *dueHeap[V]) Push(x any) {
	n := x.(*node[V])
	n.index = len(*h)
	*h = append(*h, n)
}

// Pop implements heap.Interface.
func (h *dueHeap[V]) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return n
}
