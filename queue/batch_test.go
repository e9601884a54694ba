package queue

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

// batchSize is more than one run of a script handles.
const batchSize = 150

func testBatchChannelAppends(t *testing.T, open opener) {
	f := open(t, Options{})
	f.setServers(t, "c1", "b1", "b2")
	old := must(f.AppendChannel(t.Context(), ChannelPush{Channel: "c7", Data: []byte("0"), Key: "k"}))(t)
	var last [batchSize]int64
	last[7] = old.ID
	for round := range 3 {
		pushes := make([]ChannelPush, batchSize)
		for i := range pushes {
			pushes[i] = ChannelPush{Channel: fmt.Sprint("c", i), Data: fmt.Append(nil, round), Durable: i == 9}
			if i%2 == 1 {
				pushes[i].Key = fmt.Sprint("k", i, round)
			}
		}
		pushes[7].Key = "k"
		for i, o := range f.AppendChannels(t.Context(), pushes) {
			switch {
			case i == 7:
				ok(t, o.Err)
				equal(t, "duplicate", fmt.Sprint(o.Value), fmt.Sprint(Appended{ID: old.ID, Duplicate: true}))
				continue
			case i == 9:
				if !errors.Is(o.Err, ErrNotReplicated) && !errors.Is(o.Err, ErrNoReplicas) {
					t.Errorf("durable: %v", o.Err)
				}
			default:
				ok(t, o.Err)
			}
			equal(t, "prev", o.Value.Prev, last[i])
			if o.Err == nil && o.Value.ID <= last[i] || o.Value.Duplicate {
				t.Errorf("%s: %+v after %d", pushes[i].Channel, o.Value, last[i])
			}
			last[i] = o.Value.ID
			slices.Sort(o.Value.Servers)
			if want := i == 1; want != slices.Equal(o.Value.Servers, []string{"b1", "b2"}) || !want && o.Value.Servers != nil {
				t.Errorf("%s: servers %v", pushes[i].Channel, o.Value.Servers)
			}
		}
	}
	p := must(f.ReadChannel(t.Context(), "c149", 0, 10))(t)
	equal(t, "last", p.Last, last[149])
	equal(t, "messages", fmt.Sprintf("%s %s %s", p.Messages[0].Data, p.Messages[1].Data, p.Messages[2].Data), "0 1 2")
	equal(t, "none", len(f.AppendChannels(t.Context(), nil)), 0)
}

func testBatchClientAppends(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "p1") // of alice
	old := must(f.AppendClient(t.Context(), ClientPush{Client: "p7", Data: []byte("0"), Key: "k"}))(t)
	var last [batchSize]int64
	last[7] = old.ID
	for round := range 3 {
		pushes := make([]ClientPush, batchSize)
		for i := range pushes {
			pushes[i] = ClientPush{Client: fmt.Sprint("p", i), Data: fmt.Append(nil, round)}
			if i%2 == 1 {
				pushes[i].Key = fmt.Sprint("k", i, round)
			}
		}
		pushes[1].User, pushes[3].User, pushes[7].Key = "alice", "alice", "k"
		for i, o := range f.AppendClients(t.Context(), pushes) {
			want := ClientAppended{ID: o.Value.ID, Prev: last[i]}
			switch i {
			case 1:
				want.Server, want.Generation = "b1", g
			case 3:
				fails(t, "another user's", o.Err, ErrUnknownClient)
				equal(t, "another user's", o.Value, ClientAppended{})
				continue
			case 7:
				want = ClientAppended{ID: old.ID, Duplicate: true}
			}
			ok(t, o.Err)
			equal(t, pushes[i].Client, o.Value, want)
			if o.Value.ID <= last[i] && i != 7 {
				t.Errorf("%s: %+v after %d", pushes[i].Client, o.Value, last[i])
			}
			last[i] = o.Value.ID
		}
	}
	g = bound(t, f, "p148")
	p := must(f.Window(t.Context(), "p148", g, 0, 10))(t)
	equal(t, "messages", fmt.Sprintf("%s %s %s", p.Messages[0].Data, p.Messages[1].Data, p.Messages[2].Data), "0 1 2")
	equal(t, "last", p.Last, last[148])
}

// testBatchAcks makes a batch of acknowledgements. Some are for several messages, for a part of
// them, for a message with a group, or for a generation that is not current.
func testBatchAcks(t *testing.T, open opener) {
	f := open(t, Options{})
	const staleAt, forgottenAt, twoAt, halfAt, groupAt, aboveLastAt = 3, 4, 5, 6, 7, 8
	g := devices(t, f, "p7", "laptop")
	acks, want := make([]Ack, batchSize), make([]int, batchSize)
	ids := make([][]int64, batchSize)
	for i := range acks {
		client, n := fmt.Sprint("p", i), 1
		generation := g[client]
		if i != groupAt {
			generation = bound(t, f, client)
		}
		switch i {
		case twoAt, halfAt:
			n = 2
		case groupAt:
			grouped := sendGroup(t, f, "g", client, "laptop")
			acks[i], want[i] = Ack{client, generation, grouped[client]}, 1
			continue
		}
		ids[i] = send(t, f, client, n)
		acks[i], want[i] = Ack{client, generation, ids[i][n-1]}, n
	}
	bound(t, f, acks[staleAt].Client) // has a higher generation now
	acks[forgottenAt].Generation++
	acks[halfAt].ID, want[halfAt] = ids[halfAt][0], 1
	acks[aboveLastAt].ID = maxID
	for range 2 { // the second time nothing changes
		for i, o := range f.Acks(t.Context(), acks) {
			switch i {
			case staleAt:
				fails(t, "a lower generation", o.Err, ErrStale)
			case forgottenAt:
				fails(t, "a higher generation", o.Err, ErrForgotten)
			default:
				ok(t, o.Err)
				equal(t, acks[i].Client, o.Value, want[i])
			}
		}
		clear(want)
	}
	for i, a := range acks {
		left := map[int]int{forgottenAt: 1, halfAt: 1}[i]
		if i != staleAt && i != forgottenAt {
			c, _, err := f.Client(t.Context(), a.Client)
			ok(t, err)
			equal(t, a.Client+" has left", c.Queued, left)
			equal(t, a.Client+" acknowledged", c.Acked, min(a.ID, c.Last))
		}
	}
	wantQueue(t, f, "withdrawn", "laptop", g["laptop"], 0)
	equal(t, "none", len(f.Acks(t.Context(), nil)), 0)
}

// TestRedisBatchWithMalformedKeys checks that malformed keys of one queue do not affect the other
// queues in the same run of a script.
func TestRedisBatchWithMalformedKeys(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"server": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			f := overRedis(client, Options{})
			ok(t, client.Set(t.Context(), f.keys.channel("c1"), "x", 0).Err())
			ok(t, client.HSet(t.Context(), f.keys.channelMeta("c2"), "last", "much").Err())
			ok(t, client.Set(t.Context(), f.keys.list("p1"), "x", 0).Err())
			ok(t, client.HSet(t.Context(), f.keys.record("p2"), "last", "much").Err())
			for i, o := range f.AppendChannels(t.Context(), channelPushes("c0", "c1", "c2", "c3")) {
				wantReply(t, fmt.Sprint("channel ", i), o.Err, map[int]string{1: "WRONGTYPE", 2: "ERR"}[i])
				equal(t, "stored", o.Value.ID > 0, o.Err == nil)
			}
			for i, o := range f.AppendClients(t.Context(), clientPushes("p0", "p1", "p2", "p3")) {
				wantReply(t, fmt.Sprint("client ", i), o.Err, map[int]string{1: "WRONGTYPE", 2: "ERR"}[i])
				equal(t, "stored", o.Value.ID > 0, o.Err == nil)
			}
			ok(t, client.HSet(t.Context(), f.keys.record("p1"), "generation", 1).Err())
			for i, o := range f.Acks(t.Context(), []Ack{{"p0", 0, 1}, {"p1", 1, 1}, {"p3", 0, 1}}) {
				if i == 1 {
					wantReply(t, "acknowledgement", o.Err, "WRONGTYPE")
				} else {
					fails(t, "acknowledgement", o.Err, ErrForgotten)
				}
			}
		})
	}
}

// wantReply checks an error reply of Redis. An empty want means no error.
func wantReply(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "":
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	case err == nil || !strings.Contains(err.Error(), want) || OutcomeUnknown(err):
		t.Errorf("%s: %v (outcome unknown: %v), want %s", what, err, OutcomeUnknown(err), want)
	}
}

func channelPushes(names ...string) (pushes []ChannelPush) {
	for _, name := range names {
		pushes = append(pushes, ChannelPush{Channel: name, Data: []byte("1")})
	}
	return pushes
}

func clientPushes(names ...string) (pushes []ClientPush) {
	for _, name := range names {
		pushes = append(pushes, ClientPush{Client: name, Data: []byte("1")})
	}
	return pushes
}

// TestRedisBatchInFullRedis checks that a full Redis refuses all appends of a batch.
func TestRedisBatchInFullRedis(t *testing.T) {
	client := redistest.Start(t).Client(t)
	q := NewRedis(redispipe.New(client, redispipe.Options{}), Options{})
	ok(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	for _, o := range q.AppendChannels(t.Context(), channelPushes("a", "b")) {
		wantReply(t, "channel", o.Err, "OOM")
	}
	for _, o := range q.AppendClients(t.Context(), clientPushes("a", "b")) {
		wantReply(t, "client", o.Err, "OOM")
	}
}

func testBatchBinds(t *testing.T, open opener) {
	f := open(t, Options{})
	must(f.Bind(t.Context(), Claim{Client: "c7", Server: "b0", Secret: HashSecret("the client's own")}))(t)
	claims := make([]Claim, batchSize)
	for i := range claims {
		claims[i] = Claim{Client: fmt.Sprint("c", i), User: fmt.Sprint("u", i), Server: "b1"}
		if i%7 == 0 {
			claims[i].User = ""
		}
	}
	for i, o := range f.BindClients(t.Context(), claims) {
		if i == 7 {
			fails(t, "another secret", o.Err, ErrSecret)
			continue
		}
		ok(t, o.Err)
		c, _, err := f.Client(t.Context(), claims[i].Client)
		ok(t, err)
		if c.Generation != o.Value.Generation || c.User != claims[i].User || c.Server != "b1" {
			t.Errorf("%s is %+v, bound as %+v", claims[i].Client, c, o.Value)
		}
	}
}

func testBatchReads(t *testing.T, open opener) {
	f := open(t, Options{})
	large := fmt.Sprintf("%q", strings.Repeat("a", MaxPageBytes/8)) // so that one reply cannot hold all pages
	reads := make([]ChannelRead, batchSize)
	for i := range reads {
		reads[i] = ChannelRead{Channel: fmt.Sprint("c", i), Limit: i % 4}
		for range i % 3 {
			data := []byte("1")
			if i%10 == 0 {
				data = []byte(large)
			}
			must(f.AppendChannel(t.Context(), ChannelPush{Channel: reads[i].Channel, Data: data}))(t)
		}
	}
	for i, o := range f.ReadChannels(t.Context(), reads) {
		ok(t, o.Err)
		alone := must(f.ReadChannel(t.Context(), reads[i].Channel, 0, reads[i].Limit))(t)
		o.Value.Clock, alone.Clock = 0, 0 // they were read at different moments
		equal(t, reads[i].Channel, fmt.Sprint(o.Value), fmt.Sprint(alone))
		equal(t, reads[i].Channel+": messages", len(o.Value.Messages), min(i%3, i%4))
	}
}

// testReach checks that a read with Reach has all messages of its page, or none.
func testReach(t *testing.T, open opener) {
	f := open(t, Options{})
	var ids []int64
	for range 5 {
		ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte(`1`)}))(t).ID)
	}
	for _, c := range []struct {
		what                string
		after, reach, limit int64
		messages            int
	}{
		{"all are in the page", ids[0], math.MaxInt64, 10, 4},
		{"the page ends before the last one", ids[0], math.MaxInt64, 3, 0},
		{"the page ends at the id", ids[0], ids[3], 3, 3},
		{"the page ends below the id", ids[0], ids[4], 3, 0},
		{"messages are missing", ids[0] - 1, 1, 10, 0},
		{"nothing is new", ids[4], math.MaxInt64, 10, 0},
		{"no bound", ids[0] - 1, 0, 10, 5},
	} {
		read := ChannelRead{Channel: "news", After: c.after, Limit: int(c.limit), Reach: c.reach}
		o := f.ReadChannels(t.Context(), []ChannelRead{read})[0]
		ok(t, o.Err)
		if p := o.Value; len(p.Messages) != c.messages || p.Last != ids[4] || p.Complete != (c.after >= ids[0]) {
			t.Errorf("%s: %d messages of %+v", c.what, len(p.Messages), p)
		}
	}
}
