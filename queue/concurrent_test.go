package queue

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"switchboard/internal/redispipe"
)

// TestRedisConcurrentCalls makes calls that share runs of their scripts, and checks that each has
// its own result.
func TestRedisConcurrentCalls(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	const n = 60
	name := func(i int) string { return fmt.Sprint("x", i) }
	last := make([]int64, n)
	for i := range n {
		last[i] = push(t, f, name(i), 2)[1]
	}
	must(f.Bind(t.Context(), Claim{Client: name(3), Server: "b0", Secret: HashSecret("the client's own")}))(t)
	ok(t, client.Set(t.Context(), f.keys.record(name(5)), "not a hash", 0).Err())
	ok(t, client.Del(t.Context(), f.keys.channel(name(7))).Err())
	ok(t, client.Set(t.Context(), f.keys.channel(name(7)), "not a zset", 0).Err())
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			user := name(i)
			if i%3 == 0 {
				user = ""
			}
			b, err := f.Bind(t.Context(), Claim{Client: name(i), User: user, Server: "b1", Instance: "run", Attempt: int64(i)})
			switch i {
			case 3:
				fails(t, "another secret", err, ErrSecret)
			case 5:
				if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
					t.Errorf("bind of a malformed record: %v", err)
				}
			default:
				if c, _, e := f.Client(t.Context(), name(i)); err != nil || e != nil || c.User != user || c.Generation != b.Generation {
					t.Errorf("%s is %+v after %+v, %v, %v", name(i), c, b, err, e)
				}
			}
		})
		all.Go(func() {
			p, err := f.ReadChannel(t.Context(), name(i), 0, 10)
			switch {
			case i == 7 && (err == nil || !strings.Contains(err.Error(), "WRONGTYPE")):
				t.Errorf("read of a malformed channel: %v", err)
			case i != 7 && (err != nil || len(p.Messages) != 2 || p.Last != last[i]):
				t.Errorf("%s is %+v, %v", name(i), p, err)
			}
		})
	}
	all.Wait()
}

// TestRedisReadsManyLargePages checks that one run of the script reads two large pages, and that
// later runs read the others.
func TestRedisReadsManyLargePages(t *testing.T) {
	f := overRedis(server.Client(t), Options{})
	r := f.contract.(*Redis)
	const n = 8
	name := func(i int) string { return fmt.Sprint("x", i) }
	data := []byte(`"` + strings.Repeat("a", 60<<10) + `"`)
	var targets []redispipe.Target
	for i := range n {
		for range 20 {
			must(f.AppendChannel(t.Context(), ChannelPush{Channel: name(i), Data: data}))(t)
		}
		targets = append(targets, redispipe.Target{
			Script: r.read, Keys: []string{f.keys.channel(name(i)), f.keys.channelMeta(name(i))}, Args: []any{"0", 100, MaxPageBytes, 0},
		})
	}
	omitted := 0
	for _, a := range r.pipe.EvalEach(t.Context(), targets...) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
		if a.Value == "" {
			omitted++
		}
	}
	equal(t, "omitted", omitted, n-2)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			p, err := f.ReadChannel(t.Context(), name(i), 0, 100)
			if err != nil || len(p.Messages) != 17 || !p.More {
				t.Errorf("%d messages, more %v, %v", len(p.Messages), p.More, err)
			}
		})
	}
	all.Wait()
}
