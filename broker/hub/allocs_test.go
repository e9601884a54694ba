package hub

import (
	"context"
	"encoding/json"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/work"
	"switchboard/internal/allocs"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// deliveryBench is a hub with one loop, which the test runs step by step, and with subscribers that
// accept every write.
type deliveryBench struct {
	*Channel
	run  func() // what the loop has to run, or nil
	last int64
}

func newDeliveryBench(n int, filter state.Filter) *deliveryBench {
	c := new(deliveryBench)
	l := loop.New(0)
	l.Attach(func(run func()) { c.run = run })
	h := New(Options{
		Loops: []*loop.Loop{l}, Pool: work.New(0), Queue: queue.NewMemory(queue.Options{}, nil),
		Registry: registry.NewMemory(registry.Options{}), ServerID: func() string { return "me" }, Messages: maker,
	})
	for range n {
		pos, err := h.Acquire(context.Background(), "news", nil)
		if err != nil {
			panic(err)
		}
		sub := new(Subscription)
		h.Subscribe(sub, l, &sink{}, pos)
		if err := sub.SetFilter(filter); err != nil {
			panic(err)
		}
		sub.Start()
	}
	h.opts.Pool.Wait()
	c.Channel = h.Channel("news")
	return c
}

// subscribe adds a subscriber that sees the state.
func (c *deliveryBench) subscribe(filter state.Filter) {
	pos, err := c.hub.Acquire(context.Background(), "news", nil)
	if err != nil {
		panic(err)
	}
	sub := new(Subscription)
	if err := c.hub.SubscribeState(sub, c.hub.opts.Loops[0], &sink{}, pos, filter); err != nil {
		panic(err)
	}
	sub.Start()
}

// push sends the hints of n messages and then runs the loop.
func (c *deliveryBench) push(n int, data []byte) {
	for range n {
		c.Hint(c.last+1, c.last, data)
		c.last++
	}
	c.runLoop()
}

// pushOwn does what push does for a message that this process has encoded.
func (c *deliveryBench) pushOwn(data []byte, decoded state.Message) {
	c.HintMessage(c.last+1, c.last, data, decoded)
	c.last++
	c.runLoop()
}

func (c *deliveryBench) runLoop() {
	for c.run != nil {
		run := c.run
		c.run = nil
		run()
	}
}

func allocCases() []allocs.Case {
	few, many := newDeliveryBench(10, state.Filter{}), newDeliveryBench(1000, state.Filter{})
	full := new(tail)
	for i := range maxTailMessages {
		full = full.extend([]*dialect.Message{few.message(int64(i+1), data)})
	}
	one := []*dialect.Message{few.message(1000, data)}
	states := newDeliveryBench(1, state.Filter{})
	for range 4 {
		states.subscribe(commonFilters[firstState+1])
	}
	author10, author1000 := newDeliveryBench(10, state.Filter{By: true}), newDeliveryBench(1000, state.Filter{By: true})
	decoded := state.Message{By: "alice/phone", Data: data}
	published := decoded.Encode()
	change := (&state.Entry{Set: map[string]json.RawMessage{"p/1/pos": []byte(`{"x":1,"y":2}`)}, By: "1"}).Encode()
	deliver := func(c *deliveryBench, n int) func() { return func() { c.push(n, data) } }
	return []allocs.Case{
		allocs.Of("extend the tail", 1, func() { full = full.extend(one) }),
		allocs.Of("encode a message", 1, func() { few.message(1, data) }),
		// Deliveries allocate nothing. Each message and each new tail is one allocation. Several
		// messages to the same subscribers are joined in one more.
		allocs.Of("a message to 10", 2, deliver(few, 1)),
		allocs.Of("a message to 1000", 2, deliver(many, 1)),
		allocs.Of("16 messages to 1000", 33, deliver(many, 16)),
		// They do not fit one write. Two more allocations join them, and the new arrays of the tail
		// are some.
		allocs.Of("256 messages to 1000", 2*256+8, deliver(many, 256)),
		// The new tail; the message with its Envelope. The bytes without the author are one more. If
		// another server has stored the message, the author is one more too.
		allocs.Of("a client's message to 10", 2, func() { author10.pushOwn(published, decoded) }),
		allocs.Of("a client's message to 1000", 2, func() { author1000.pushOwn(published, decoded) }),
		allocs.Of("a client's message to 10 without the author", 3, func() { few.pushOwn(published, decoded) }),
		allocs.Of("a client's message of another server to 10", 3, func() { author10.push(1, published) }),
		// The new tail; the message, its Changes, the Entry and its writer; the list and the map of the
		// values, with a name and a value; the part, its place in the list, and its State.
		allocs.Of("a change of a field to 4", 13, func() { states.push(1, change) }),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, allocCases()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, allocCases()) }
