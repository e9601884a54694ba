package queue

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

// forStores runs a benchmark over Memory and over one redis-server.
func forStores(b *testing.B, bench func(b *testing.B, q contract)) {
	b.Run("memory", func(b *testing.B) { bench(b, NewMemory(Options{}, nil)) })
	b.Run("redis", func(b *testing.B) {
		prefix := fmt.Sprintf("b%d:", prefixes.Add(1))
		bench(b, NewRedis(redispipe.New(server.Client(b), redispipe.Options{}), Options{Prefix: prefix}))
	})
}

var payload = []byte(`{"type":"chat","from":"alice","text":"a message of an ordinary size, about one hundred and twenty bytes long","n":1}`)

func BenchmarkAppendChannel(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		b.ReportAllocs()
		for b.Loop() {
			must(q.AppendChannel(b.Context(), ChannelPush{Channel: "news", Data: payload}))(b)
		}
	})
}

func BenchmarkAppendChannelParallel(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := q.AppendChannel(b.Context(), ChannelPush{Channel: "news", Data: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkAppendChannels appends to a batch of 100 channels in each op.
func BenchmarkAppendChannels(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		var caller atomic.Int64
		b.ReportAllocs()
		b.SetParallelism(8)
		b.RunParallel(func(pb *testing.PB) {
			pushes := make([]ChannelPush, 100)
			for i := range pushes {
				pushes[i] = ChannelPush{Channel: fmt.Sprint("c", caller.Add(1)), Data: payload}
			}
			for pb.Next() {
				for _, o := range q.AppendChannels(b.Context(), pushes) {
					if o.Err != nil {
						b.Error(o.Err)
						return
					}
				}
			}
		})
	})
}

// BenchmarkState compares changes of a state of 64 fields with an append. With Redis it reports the
// time that the scripts took there.
func BenchmarkState(b *testing.B) {
	const fields = 64
	set := func(names ...string) *state.Update {
		u := &state.Update{Writer: state.BackendHolder, Limits: state.Limits{Fields: 1024, Bytes: 1 << 20, Owned: 16, Keep: 24 * time.Hour}}
		for _, name := range names {
			u.Ops = append(u.Ops, state.Op{Field: name, Kind: state.Set, Value: payload})
		}
		return u
	}
	guarded := set("seat/7")
	guarded.If = []state.Condition{{Field: "seat/7", Kind: state.Exists}}
	guarded.Ops[0].Claim, guarded.Ops[0].GroupMax = true, 100
	leased := set("seat/7")
	leased.Ops[0].TTL = time.Hour
	client := set("seat/7")
	client.Client, client.Generation, client.Server = "amy/phone", 1, "s1"
	owned := set("seat/7")
	owned.Client, owned.Generation, owned.Server, owned.Ops[0].Own = "amy/phone", 1, "s1", state.Own
	numbered := set("seat/7")
	numbered.Counter, numbered.Ops[0].Numbered = "next", true
	plain := ChannelPush{Channel: "news", Data: payload}
	for _, c := range []struct {
		name string
		push *ChannelPush
	}{
		{"append", &plain},
		{"update", &ChannelPush{Channel: "news", Update: set("seat/7")}},
		{"client", &ChannelPush{Channel: "news", Update: client}},
		{"guarded", &ChannelPush{Channel: "news", Update: guarded}},
		{"leased", &ChannelPush{Channel: "news", Update: leased}},
		{"owned", &ChannelPush{Channel: "news", Update: owned}},
		{"numbered", &ChannelPush{Channel: "news", Update: numbered}},
		{"page", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			forStores(b, func(b *testing.B, q contract) {
				names := make([]string, fields)
				for i := range names {
					names[i] = fmt.Sprint("seat/", i)
				}
				must(q.AppendChannel(b.Context(), ChannelPush{Channel: "news", Update: set(names...)}))(b)
				done := scriptTime(b, q)
				for b.Loop() {
					if c.push != nil {
						must(q.AppendChannel(b.Context(), *c.push))(b)
					} else if o := q.ReadStates(b.Context(), []StateRead{{Channel: "news", Limit: fields}})[0]; o.Err != nil || len(o.Value.Fields) != fields {
						b.Fatal(o)
					}
				}
				done()
			})
		})
	}
}

// scriptTime starts to measure the time that Redis spends in scripts. The function that it returns
// reports it.
func scriptTime(b *testing.B, q contract) func() {
	if _, isRedis := q.(*Redis); !isRedis {
		return func() {}
	}
	client := server.Client(b)
	before := scriptMicros(b, client)
	return func() { b.ReportMetric((scriptMicros(b, client)-before)/float64(b.N), "redis-µs/op") }
}

// scriptMicros returns the time that Redis has spent in EVALSHA.
func scriptMicros(t testing.TB, client *redis.Client) float64 {
	t.Helper()
	info := must(client.InfoMap(t.Context(), "commandstats").Result())(t)
	var calls, usec float64
	_, _ = fmt.Sscanf(info["Commandstats"]["cmdstat_evalsha"], "calls=%f,usec=%f", &calls, &usec)
	return usec
}

func BenchmarkAppendClient(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		b.ReportAllocs()
		for b.Loop() {
			must(q.AppendClient(b.Context(), ClientPush{Client: "phone", Data: payload}))(b)
		}
	})
}

func BenchmarkAppendClientParallel(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		b.ReportAllocs()
		b.SetParallelism(64)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := q.AppendClient(b.Context(), ClientPush{Client: "phone", Data: payload}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkReadChannel reads a page of 256 messages in each op.
func BenchmarkReadChannel(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		first := must(q.AppendChannel(b.Context(), ChannelPush{Channel: "news", Data: payload}))(b).ID
		for range 1000 {
			must(q.AppendChannel(b.Context(), ChannelPush{Channel: "news", Data: payload}))(b)
		}
		b.ReportAllocs()
		for b.Loop() {
			if p := must(q.ReadChannel(b.Context(), "news", first, 256))(b); len(p.Messages) != 256 {
				b.Fatal(len(p.Messages))
			}
		}
	})
}

// BenchmarkWindow reads a full window in each op.
func BenchmarkWindow(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		generation := must(bind(b.Context(), q, Claim{Client: "phone", User: "alice", Server: "b1"}))(b).Generation
		for range MaxWindow {
			must(q.AppendClient(b.Context(), ClientPush{Client: "phone", Data: payload}))(b)
		}
		b.ReportAllocs()
		for b.Loop() {
			if p := must(q.Window(b.Context(), "phone", generation, 0, MaxWindow))(b); len(p.Messages) != MaxWindow {
				b.Fatal(len(p.Messages))
			}
		}
	})
}

// BenchmarkAppendWindowAck stores, reads and acknowledges one message in each op.
func BenchmarkAppendWindowAck(b *testing.B) {
	forStores(b, func(b *testing.B, q contract) {
		generation := must(bind(b.Context(), q, Claim{Client: "phone", User: "alice", Server: "b1"}))(b).Generation
		var acked int64
		b.ReportAllocs()
		for b.Loop() {
			must(q.AppendClient(b.Context(), ClientPush{Client: "phone", Data: payload}))(b)
			p := must(q.Window(b.Context(), "phone", generation, acked, MaxWindow))(b)
			acked = p.Messages[0].ID
			must(q.Ack(b.Context(), "phone", generation, acked))(b)
		}
	})
}

func BenchmarkDecodeMember(b *testing.B) {
	member := "735325130218700:" + string(payload)
	b.ReportAllocs()
	b.SetBytes(int64(len(member)))
	for b.Loop() {
		must(DecodeMember(member))(b)
	}
}
