package queue

import (
	"context"
	"fmt"
	"testing"

	"switchboard/internal/allocs"
	"switchboard/internal/redispipe"
)

// hot compares 128 queues in each call: what it allocates does not depend on their number, but for
// the commands of each run of 64.
func hot(t testing.TB) []allocs.Case {
	q := NewRedis(redispipe.New(server.Client(t), redispipe.Options{}), Options{Prefix: fmt.Sprintf("a%d:", prefixes.Add(1))})
	channels, clients := comparedQueues(t, q)
	return []allocs.Case{
		allocs.Of("compare 128 channels", 40, func() {
			for i, o := range q.ChannelHeads(context.Background(), channels) {
				if o.Err != nil || o.Value.ID != channels[i].ID {
					panic(fmt.Sprint(o, channels[i]))
				}
			}
		}),
		allocs.Of("compare 128 clients", 40, func() {
			for i, o := range q.ClientHeads(context.Background(), clients) {
				if o.Err != nil || o.Value.ID != clients[i].ID {
					panic(fmt.Sprint(o, clients[i]))
				}
			}
		}),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot(t)) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot(b)) }
