package delivery

import (
	"context"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/allocs"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// fakeQueue answers at once.
type fakeQueue struct {
	Queue
	servers []string
	last    int64
}

func (s *fakeQueue) AppendChannel(context.Context, queue.ChannelPush) (queue.Appended, error) {
	s.last++
	return queue.Appended{ID: s.last, Prev: s.last - 1, Servers: s.servers}, nil
}

func (s *fakeQueue) AppendClient(context.Context, queue.ClientPush) (queue.ClientAppended, error) {
	s.last++
	return queue.ClientAppended{ID: s.last, Prev: s.last - 1, Server: s.servers[0]}, nil
}

func allocCases() []allocs.Case {
	p := New(Options{
		Queue: &fakeQueue{servers: []string{"me", "other"}},
		Self:  func() string { return "me" }, Live: func(string) bool { return true },
		Local: func(peer.Hint, state.Message) {}, Remote: func(string, peer.Hint) {},
		Stored: func(string, time.Duration) {}, Epoch: func(string) uint64 { return 1 }, Lost: func() {},
	})
	payload := Payload{Data: []byte(`{"text":"hi"}`)}
	reg := registry.NewMemory(registry.Options{})
	if err := reg.BindChannel(context.Background(), "me", "news"); err != nil {
		panic(err)
	}
	inMemory := New(Options{
		Queue: queue.NewMemory(queue.Options{}, func(channel string) []string {
			servers, _ := reg.ChannelServers(context.Background(), channel)
			return servers
		}),
		Self: func() string { return "me" }, Live: func(string) bool { return true }, Local: func(peer.Hint, state.Message) {},
		Stored: func(string, time.Duration) {},
	})
	return []allocs.Case{
		allocs.Of("push to a channel in memory", 1, func() { _, _ = inMemory.ToChannel(context.Background(), "news", payload) }),
		allocs.Of("push to a channel", 0, func() { _, _ = p.ToChannel(context.Background(), "news", payload) }),
		allocs.Of("push to a client", 0, func() { _, _ = p.ToClient(context.Background(), "phone", "", payload) }),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, allocCases()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, allocCases()) }
