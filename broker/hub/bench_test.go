package hub

import (
	"fmt"
	"sync"
	"testing"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/broker/loop"
	"switchboard/broker/work"
	"switchboard/queue"
	"switchboard/registry"
)

// maker encodes the messages of these tests.
var maker = native.New(0)

// lineForm is the form of messages on raw TCP.
var lineForm = func() *dialect.Form {
	o, err := maker.Open(dialect.Hello{})
	if err != nil {
		panic(err)
	}
	return o.Encoding.Form
}()

// sink is a subscriber whose socket always takes everything. It belongs to its loop.
type sink struct {
	messages, bytes int           // received so far
	wantMessages    int           // number of messages after which it signals done
	done            chan struct{} // one slot
}

func (s *sink) ClientID() string                            { return "bob/tab" }
func (s *sink) Backlogged() bool                            { return false }
func (s *sink) MayRead() bool                               { return true }
func (s *sink) Charge(int, int)                             {}
func (s *sink) Gap(*Subscription, int64, int64) (hold bool) { return false }
func (s *sink) Write(b *dialect.Batch) {
	s.bytes += len(b.Bytes(lineForm))
	if s.messages += len(b.Messages); s.messages == s.wantMessages {
		s.done <- struct{}{}
	}
}

// benchHub is a hub over goroutine loops and the in-memory store.
type benchHub struct {
	*Hub
	loops []*loop.Loop
	queue *queue.Memory
}

func newBenchHub(b *testing.B, loops int) *benchHub {
	pool := work.New(0)
	f := &benchHub{queue: queue.NewMemory(queue.Options{}, nil)}
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range loops {
		g := loop.NewGoroutine(i)
		f.loops = append(f.loops, g.Loop)
		running.Go(func() { g.Run(stop) })
	}
	f.Hub = New(Options{
		Loops: f.loops, Pool: pool, Queue: f.queue, Registry: registry.NewMemory(registry.Options{}),
		ServerID: func() string { return "b1" }, Messages: maker,
	})
	b.Cleanup(func() {
		pool.Wait()
		close(stop)
		running.Wait()
	})
	return f
}

// waitForLoops returns when every loop has run what was posted before.
func (f *benchHub) waitForLoops() {
	var wg sync.WaitGroup
	for _, l := range f.loops {
		wg.Add(1)
		l.Post(wg.Done)
	}
	wg.Wait()
}

// subscribe adds a subscriber. after is the last id that it has seen; nil means that it begins now.
func (f *benchHub) subscribe(b *testing.B, l *loop.Loop, s *sink, after *int64) *Subscription {
	pos, err := f.Acquire(b.Context(), "news", after)
	if err != nil {
		b.Fatal(err)
	}
	started := make(chan *Subscription)
	l.Post(func() {
		sub := new(Subscription)
		f.Subscribe(sub, l, s, pos)
		sub.Start()
		started <- sub
	})
	return <-started
}

var data = []byte(`{"type":"chat","from":"alice","text":"a message of an ordinary size, about ninety bytes"}`)

// subscribeMany subscribes the benchmark's subscribers to a channel.
func (f *benchHub) subscribeMany(b *testing.B) (*Channel, []*sink) {
	sinks := make([]*sink, benchSubscribers)
	for i := range sinks {
		sinks[i] = &sink{}
		f.subscribe(b, f.loops[i%len(f.loops)], sinks[i], nil)
	}
	return f.Channel("news"), sinks
}

const benchSubscribers = 1000

// BenchmarkHint measures one message to 1,000 subscribers of a channel. burst is how many messages
// are pushed before the benchmark waits for the loops; with more than one, messages share a write.
// A burst fits in the tail, so that no subscriber has to read the store.
func BenchmarkHint(b *testing.B) {
	for _, loops := range []int{1, 2, 4} {
		for _, burst := range []int64{1, 64} {
			b.Run(fmt.Sprintf("loops=%d/burst=%d", loops, burst), func(b *testing.B) {
				f := newBenchHub(b, loops)
				c, sinks := f.subscribeMany(b)
				id := int64(0)
				b.ReportAllocs()
				for b.Loop() {
					c.Hint(id+1, id, data)
					if id++; id%burst == 0 {
						f.waitForLoops()
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(id)/benchSubscribers, "ns/delivery")
				f.waitForLoops()
				for _, s := range sinks {
					if s.messages != int(id) {
						b.Fatalf("%d messages instead of %d", s.messages, id)
					}
				}
			})
		}
	}
}

// BenchmarkCatchUp measures one subscriber that missed 1,000 messages, which only the store has.
func BenchmarkCatchUp(b *testing.B) {
	const missed = 1000
	f := newBenchHub(b, 1)
	var first int64
	for i := range missed + 1 {
		a, err := f.queue.AppendChannel(b.Context(), queue.ChannelPush{Channel: "news", Data: data})
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			first = a.ID
		}
	}
	done := make(chan struct{}, 1)
	b.ReportAllocs()
	for b.Loop() {
		sub := f.subscribe(b, f.loops[0], &sink{wantMessages: missed, done: done}, &first)
		<-done
		f.loops[0].Post(func() { f.Unsubscribe(sub) })
	}
	f.waitForLoops()
}
