package kittest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Cost counts what operations ask of a store. Over Redis, each read of a state, change of a state
// and call of an index is one script, or the part of one that other callers share.
type Cost struct {
	reads, changes, lists atomic.Int64
}

// String returns the counts since the last call, as columns of a table: reads and changes of
// states, and calls of indexes.
func (c *Cost) String() string {
	return fmt.Sprintf("%d | %d | %d", c.reads.Swap(0), c.changes.Swap(0), c.lists.Swap(0))
}

// Documented returns a function that fails the test unless a table of the page has the row of an
// operation: its name and its cost since the last row.
func (c *Cost) Documented(t testing.TB, page string) func(operation string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return func(operation string) {
		t.Helper()
		if row := fmt.Sprintf("| %s | %s |", operation, c); !strings.Contains(string(text), row+"\n") {
			t.Errorf("%s does not have the row %s", page, row)
		}
	}
}

// Queue returns a queue whose calls are counted.
func (c *Cost) Queue(q broker.Queue) broker.Queue { return countedQueue{q, c} }

// Index returns an index whose calls are counted.
func (c *Cost) Index(i index.Index) index.Index { return countedIndex{i, c} }

type countedQueue struct {
	broker.Queue
	cost *Cost
}

// AppendChannel implements broker.Queue. Messages without a change of a state are not counted.
func (q countedQueue) AppendChannel(ctx context.Context, p queue.ChannelPush) (queue.Appended, error) {
	if p.Update != nil {
		q.cost.changes.Add(1)
	}
	return q.Queue.AppendChannel(ctx, p)
}

// ReadStates implements broker.Queue.
func (q countedQueue) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	q.cost.reads.Add(int64(len(reads)))
	return q.Queue.ReadStates(ctx, reads)
}

type countedIndex struct {
	index.Index
	cost *Cost
}

// Put implements index.Index.
func (i countedIndex) Put(ctx context.Context, cards ...index.Card) error {
	i.cost.lists.Add(1)
	return i.Index.Put(ctx, cards...)
}

// Get implements index.Index.
func (i countedIndex) Get(ctx context.Context, ids ...string) ([]index.Card, error) {
	i.cost.lists.Add(1)
	return i.Index.Get(ctx, ids...)
}

// Versions implements index.Index.
func (i countedIndex) Versions(ctx context.Context, ids ...string) ([]int64, error) {
	i.cost.lists.Add(1)
	return i.Index.Versions(ctx, ids...)
}

// List implements index.Index.
func (i countedIndex) List(ctx context.Context, q index.Query) (index.Page, error) {
	i.cost.lists.Add(1)
	return i.Index.List(ctx, q)
}

// Count implements index.Index.
func (i countedIndex) Count(ctx context.Context, lists ...string) ([]int, error) {
	i.cost.lists.Add(1)
	return i.Index.Count(ctx, lists...)
}

// Find implements index.Index.
func (i countedIndex) Find(ctx context.Context, s index.Search) (index.Found, error) {
	i.cost.lists.Add(1)
	return i.Index.Find(ctx, s)
}

// Schedule implements index.Index.
func (i countedIndex) Schedule(ctx context.Context, in time.Duration, ids ...string) error {
	i.cost.lists.Add(1)
	return i.Index.Schedule(ctx, in, ids...)
}

// Take implements index.Index.
func (i countedIndex) Take(ctx context.Context, n int, lease time.Duration) ([]index.Task, error) {
	i.cost.lists.Add(1)
	return i.Index.Take(ctx, n, lease)
}

// Done implements index.Index.
func (i countedIndex) Done(ctx context.Context, next map[index.Task]time.Duration) error {
	i.cost.lists.Add(1)
	return i.Index.Done(ctx, next)
}
