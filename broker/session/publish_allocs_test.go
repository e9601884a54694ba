package session_test

import (
	"testing"

	"switchboard/broker/session"
	"switchboard/broker/work"
	"switchboard/internal/allocs"
	"switchboard/internal/wire"
)

// publishBench is a client that publishes to a channel with subscribers, which receive its
// messages. The benchmark is the loop.
type publishBench struct {
	*harness
	request wire.Request
	runLoop func()
}

func newPublishBench(t testing.TB, opts session.Options, subscribers int) *publishBench {
	speakJSON(t)
	opts.Pool = residentPool(t)
	b := &publishBench{harness: newHarness(t, opts), request: wire.Request{
		Type: wire.TypePublish, Ref: wire.RefOf(7), Channel: "news", Data: []byte(`{"text":"hello"}`),
	}}
	b.hints, b.sock.discard = true, true
	for range subscribers {
		b.onLoop(func() {
			sock := newSocket()
			sock.discard = true
			receiver := b.Accept(b.loop, sock, nil)
			receive(receiver, `{"type":"connect"}`)
			receive(receiver, `{"type":"subscribe","channel":"news"}`)
		})
	}
	b.settle()
	b.loop.Attach(func(run func()) { b.runLoop = run })
	return b
}

// residentPool returns a pool of one worker that keeps its stack, as the workers of a busy broker
// do. New workers would mostly grow their stacks.
func residentPool(t testing.TB) *work.Pool {
	workers := make(chan func())
	t.Cleanup(func() { close(workers) })
	go func() {
		for worker := range workers {
			worker()
		}
	}()
	return work.NewOn(1, func(worker func()) { workers <- worker })
}

// publish publishes a message. It returns after the message is delivered and answered.
func (b *publishBench) publish() {
	b.receiver.Receive(b.request, 80)
	b.pool.Wait()
	for b.runLoop != nil {
		run := b.runLoop
		b.runLoop = nil
		run()
	}
}

func publishCases(t testing.TB) []allocs.Case {
	of := func(subscribers int) *publishBench { return newPublishBench(t, session.Options{}, subscribers) }
	none, ten, thousand := of(0), of(10), of(1000)
	return []allocs.Case{
		// The entry, and the copy of the store in memory; the functions for the pool and the loop, and
		// their places in the lists; the id in the answer.
		allocs.Of("a client's publish", 9, none.publish),
		// The two of a delivery, see package hub.
		allocs.Of("a client's publish to 10", 11, ten.publish),
		allocs.Of("a client's publish to 1000", 11, thousand.publish),
	}
}

func TestPublishAllocs(t *testing.T) { allocs.Test(t, publishCases(t)) }
func BenchmarkPublish(b *testing.B)  { allocs.Bench(b, publishCases(b)) }
