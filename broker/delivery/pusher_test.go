package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
	"switchboard/registry"
)

// twoClients is a registry in which every user has two clients.
type twoClients struct{ Registry }

func (twoClients) User(context.Context, string) ([]registry.Binding, error) {
	return []registry.Binding{{Client: "phone", Server: "me"}, {Client: "laptop", Server: "other"}}, nil
}

// failingQueue stores everything and returns the given errors.
type failingQueue struct {
	Queue
	channel, phone, laptop error
}

func (f failingQueue) AppendChannel(context.Context, queue.ChannelPush) (queue.Appended, error) {
	return queue.Appended{ID: 2, Prev: 1, Servers: []string{"me", "other"}}, f.channel
}

func (f failingQueue) AppendClients(_ context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	out := make([]queue.Outcome[queue.ClientAppended], len(pushes))
	for i, p := range pushes {
		out[i] = queue.Outcome[queue.ClientAppended]{Value: queue.ClientAppended{ID: 3, Prev: 2, Server: "other"}, Err: f.laptop}
		if p.Client == "phone" {
			out[i] = queue.Outcome[queue.ClientAppended]{Value: queue.ClientAppended{ID: 2, Prev: 1, Server: "me"}, Err: f.phone}
		}
	}
	return out
}

// TestUnconfirmedMessageCausesHints checks that the owners receive hints for a message that no
// replica confirmed, because it is stored.
func TestUnconfirmedMessageCausesHints(t *testing.T) {
	unconfirmed, broken := fmt.Errorf("append: %w", queue.ErrNotReplicated), errors.New("broken")
	for _, test := range []struct {
		name  string
		queue failingQueue
		want  error
		hints []string
	}{
		{"no error", failingQueue{}, nil, []string{"me news", "me phone", "other laptop", "other news"}},
		{"not confirmed", failingQueue{channel: unconfirmed, phone: unconfirmed}, queue.ErrNotReplicated,
			[]string{"me news", "me phone", "other laptop", "other news"}},
		{"one is not stored", failingQueue{channel: broken, phone: unconfirmed, laptop: broken}, broken, []string{"me phone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			hints := make(chan string, 4)
			p := New(Options{
				Registry: twoClients{}, Queue: test.queue,
				Self: func() string { return "me" }, Live: func(string) bool { return true },
				Local:  func(h peer.Hint, _ state.Message) { hints <- "me " + h.Name },
				Remote: func(server string, h peer.Hint) { hints <- server + " " + h.Name },
				Stored: func(string, time.Duration) {}, Epoch: func(string) uint64 { return 1 }, Lost: func() {},
			})
			if _, err := p.ToChannel(t.Context(), "news", Payload{Durable: true}); !errors.Is(err, test.want) {
				t.Errorf("to the channel: %v, want %v", err, test.want)
			}
			if _, err := p.ToUser(t.Context(), "alice", Payload{Durable: true}); !errors.Is(err, test.want) {
				t.Errorf("to the user: %v, want %v", err, test.want)
			}
			close(hints)
			var got []string
			for h := range hints {
				got = append(got, h)
			}
			if slices.Sort(got); !slices.Equal(got, test.hints) {
				t.Errorf("hints to %v, want %v", got, test.hints)
			}
		})
	}
}
