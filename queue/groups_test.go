package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// devices binds clients of alice and returns their generations.
func devices(t *testing.T, f fixture, clients ...string) map[string]int64 {
	t.Helper()
	generations := map[string]int64{}
	for _, client := range clients {
		generations[client] = bound(t, f, client)
	}
	f.addClients(t, "alice", clients...)
	return generations
}

// sendGroup appends a message with a group to the queue of each client.
func sendGroup(t *testing.T, f fixture, group string, clients ...string) map[string]int64 {
	t.Helper()
	pushes := make([]ClientPush, len(clients))
	for i, client := range clients {
		pushes[i] = ClientPush{Client: client, User: "alice", Data: fmt.Appendf(nil, "%q", group), AckGroup: group}
	}
	ids := map[string]int64{}
	for i, o := range f.AppendClients(t.Context(), pushes) {
		ok(t, o.Err)
		ids[clients[i]] = o.Value.ID
	}
	return ids
}

// wantQueue checks that the client's queue has exactly these ids above after, without a gap.
func wantQueue(t *testing.T, f fixture, what, client string, generation, after int64, want ...int64) {
	t.Helper()
	p := must(f.Window(t.Context(), client, generation, after, 100))(t)
	if got := idsOf(p.Messages); !slices.Equal(got, want) {
		t.Errorf("%s: %s has %v, want %v", what, client, got, want)
	}
	if !p.Complete {
		t.Errorf("%s: %s has a gap up to %d", what, client, p.Floor)
	}
}

func testGroup(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop", "tablet")
	before := send(t, f, "laptop", 2)
	one := sendGroup(t, f, "g1", "phone", "laptop", "tablet")
	between := send(t, f, "laptop", 1)
	two := sendGroup(t, f, "g2", "phone", "laptop", "tablet")
	last := send(t, f, "laptop", 1)

	must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]-1))(t)
	wantQueue(t, f, "before any acknowledgement", "tablet", g["tablet"], 0, one["tablet"], two["tablet"])
	equal(t, "acknowledged", must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t), 1)
	wantQueue(t, f, "the first is withdrawn", "laptop", g["laptop"], 0, before[0], before[1], between[0], two["laptop"], last[0])
	wantQueue(t, f, "the first is withdrawn", "tablet", g["tablet"], 0, two["tablet"])
	wantQueue(t, f, "not acknowledged", "phone", g["phone"], one["phone"], two["phone"])
	equal(t, "again", must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t), 0)

	for _, id := range []int64{one["laptop"], two["laptop"]} {
		if m := must(f.ConfirmClient(t.Context(), "laptop", id))(t); m != nil {
			t.Errorf("%d of laptop is reported lost: %s", id, m.Data)
		}
	}
	// The tablet's only message is withdrawn. The next one follows its id.
	must(f.Ack(t.Context(), "laptop", g["laptop"], last[0]))(t)
	wantQueue(t, f, "the second is withdrawn", "tablet", g["tablet"], 0)
	wantQueue(t, f, "the second is withdrawn", "phone", g["phone"], one["phone"])
	if m := must(f.ConfirmClient(t.Context(), "tablet", two["tablet"]))(t); m != nil {
		t.Errorf("%d of tablet is reported lost: %s", two["tablet"], m.Data)
	}
	next := must(f.AppendClient(t.Context(), ClientPush{Client: "tablet", Data: []byte("1")}))(t)
	equal(t, "prev", next.Prev, two["tablet"])
	wantQueue(t, f, "the next message", "tablet", g["tablet"], 0, next.ID)
	equal(t, "acknowledged late", must(f.Ack(t.Context(), "tablet", g["tablet"], two["tablet"]))(t), 0)
	wantQueue(t, f, "after a late acknowledgement", "tablet", g["tablet"], two["tablet"], next.ID)
	b := must(f.Bind(t.Context(), Claim{Client: "tablet", User: "alice", Server: "b2"}))(t)
	equal(t, "acknowledged or withdrawn", b.Acked, two["tablet"])
	equal(t, "withdrawal due", b.WithdrawalDue, false)
}

// testGroupByKey appends the messages of a group one by one, with keys. Queues of other users are
// not affected.
func testGroupByKey(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	ids := map[string]int64{}
	for _, client := range []string{"phone", "laptop", "phone"} {
		a := must(f.AppendClient(t.Context(), ClientPush{Client: client, User: "alice", Data: []byte("1"), Key: "k", AckGroup: "g"}))(t)
		equal(t, "duplicate", a.Duplicate, ids[client] != 0)
		ids[client] = a.ID
	}
	bob := must(f.Bind(t.Context(), Claim{Client: "bobs", User: "bob", Server: "b1"}))(t).Generation
	f.addClients(t, "bob", "bobs")
	other := must(f.AppendClient(t.Context(), ClientPush{Client: "bobs", Data: []byte("1"), AckGroup: "other"}))(t)
	must(f.Ack(t.Context(), "laptop", g["laptop"], maxID))(t)
	wantQueue(t, f, "withdrawn", "phone", g["phone"], 0)
	wantQueue(t, f, "another user's", "bobs", bob, 0, other.ID)
}

// testGroupRepeated repeats a partly failed push after the first client has acknowledged.
func testGroupRepeated(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	push := func(client string) int64 {
		t.Helper()
		p := ClientPush{Client: client, User: "alice", Data: []byte("1"), Key: "k", AckGroup: "g"}
		return must(f.AppendClient(t.Context(), p))(t).ID
	}
	bindAgain := func(withdrawalDue bool) (acked int64) {
		t.Helper()
		b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
		equal(t, "withdrawal due", b.WithdrawalDue, withdrawalDue)
		g["phone"] = b.Generation
		return b.Acked
	}
	id := push("phone")
	push("phone")
	bindAgain(false)
	must(f.Ack(t.Context(), "phone", g["phone"], id))(t)
	bindAgain(false)
	equal(t, "the same", push("phone"), id)
	late := push("laptop")
	wantQueue(t, f, "appended late", "laptop", g["laptop"], 0, late)
	acked := bindAgain(true)
	must(f.Ack(t.Context(), "phone", g["phone"], acked))(t)
	wantQueue(t, f, "withdrawn late", "laptop", g["laptop"], 0)
	bindAgain(false)
}

// testGroupConcurrentAcks acknowledges both copies concurrently.
func testGroupConcurrentAcks(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	for i := range 20 {
		ids := sendGroup(t, f, fmt.Sprint("g", i), "phone", "laptop")
		errs := make(chan error, 2)
		for client, id := range ids {
			go func() {
				_, err := f.Ack(t.Context(), client, g[client], id)
				errs <- err
			}()
		}
		ok(t, <-errs)
		ok(t, <-errs)
		for client, id := range ids {
			wantQueue(t, f, "acknowledged by both", client, g[client], id)
			if m := must(f.ConfirmClient(t.Context(), client, id))(t); m != nil {
				t.Errorf("%d of %s is reported lost: %s", id, client, m.Data)
			}
		}
	}
}

// testGroupBeyondCap checks that messages dropped by the cap are a gap, and that their groups have
// no effect.
func testGroupBeyondCap(t *testing.T, open opener) {
	f := open(t, Options{ClientCap: 3})
	g := devices(t, f, "phone", "laptop")
	var ids []map[string]int64
	for i := range 5 {
		ids = append(ids, sendGroup(t, f, fmt.Sprint("g", i), "phone", "laptop"))
	}
	must(f.Ack(t.Context(), "phone", g["phone"], ids[3]["phone"]))(t)
	p := must(f.Window(t.Context(), "laptop", g["laptop"], 0, 10))(t)
	wantIDs(t, "the last one", p, []int64{ids[4]["laptop"]})
	equal(t, "floor", p.Floor, ids[1]["laptop"])
	must(f.Ack(t.Context(), "phone", g["phone"], ids[4]["phone"]))(t)
	b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t)
	p = must(f.Window(t.Context(), "laptop", b.Generation, b.Acked, 10))(t)
	wantIDs(t, "none", p, nil)
	equal(t, "complete", p.Complete, false)
}

// testGroupNotReceived checks that an acknowledgement above a gap does not withdraw the copies of
// messages in the gap.
func testGroupNotReceived(t *testing.T, open opener) {
	for what, drop := range map[string]func(f fixture) int64{
		"cap": func(f fixture) int64 { return send(t, f, "laptop", 4)[3] },
		"expiry": func(f fixture) int64 {
			f.expire(t, f.opts.ClientTTL, f.keys.list("laptop"))
			return send(t, f, "laptop", 1)[0]
		},
		"expiry of all": func(f fixture) int64 {
			f.expire(t, f.opts.ClientTTL, f.keys.list("laptop"))
			return maxID
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := open(t, Options{ClientCap: 3})
			g := devices(t, f, "phone", "laptop")
			long := ClientPush{Client: "phone", Data: []byte("1"), TTL: 2 * f.opts.ClientTTL}
			for range 2 { // in the second round, laptop has received a message before
				must(f.AppendClient(t.Context(), long))(t)
				one := sendGroup(t, f, "g1", "phone", "laptop")
				must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]-1))(t)
				must(f.Ack(t.Context(), "laptop", g["laptop"], drop(f)))(t)
				wantQueue(t, f, "not received by laptop", "phone", g["phone"], one["phone"]-1, one["phone"])
				two := sendGroup(t, f, "g2", "phone", "laptop")
				must(f.Ack(t.Context(), "laptop", g["laptop"], two["laptop"]))(t)
				wantQueue(t, f, "another message received by laptop", "phone", g["phone"], one["phone"]-1, one["phone"])
				must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t)
			}
		})
	}
}

// testGroupAtEnd checks that a list whose last messages were withdrawn does not count as expired.
func testGroupAtEnd(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	var acked int64
	for _, n := range []int{1, 0} {
		waits := send(t, f, "laptop", n)
		ids := sendGroup(t, f, fmt.Sprint("g", n), "phone", "laptop")
		must(f.Ack(t.Context(), "phone", g["phone"], ids["phone"]))(t)
		wantQueue(t, f, "the message before", "laptop", g["laptop"], acked, waits...)
		if n > 0 {
			must(f.Ack(t.Context(), "laptop", g["laptop"], waits[0]))(t)
		}
		wantQueue(t, f, "none", "laptop", g["laptop"], acked)
		b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t)
		equal(t, "acknowledged or withdrawn", b.Acked, ids["laptop"])
		g["laptop"] = b.Generation
		next := send(t, f, "laptop", 1)[0]
		wantQueue(t, f, "the next message", "laptop", b.Generation, acked, next)
		must(f.Ack(t.Context(), "laptop", g["laptop"], next))(t)
		acked = next
	}
}

// testGroupOfFormerUser checks that a client bound to another user does not withdraw the former
// user's messages.
func testGroupOfFormerUser(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), TTL: 2 * f.opts.ClientTTL}))(t)
	ids := sendGroup(t, f, "g", "phone", "laptop")
	must(f.Ack(t.Context(), "phone", g["phone"], ids["phone"]-1))(t)
	ok(t, f.Unbind(t.Context(), "laptop", g["laptop"]))
	f.expire(t, f.opts.ClientTTL, f.keys.list("laptop"))
	for _, user := range []string{"bob", "alice"} {
		b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: user, Server: "b1"}))(t)
		equal(t, "withdrawal due", b.WithdrawalDue, false)
		ok(t, f.Unbind(t.Context(), "laptop", b.Generation))
	}
	g["laptop"] = must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t).Generation
	two := sendGroup(t, f, "g2", "phone", "laptop")
	must(f.Ack(t.Context(), "laptop", g["laptop"], two["laptop"]))(t)
	wantQueue(t, f, "not received by laptop", "phone", g["phone"], ids["phone"]-1, ids["phone"])
}

// TestRedisInterruptedWithdrawal checks that a failed withdrawal is completed after the next bind,
// or by the next acknowledgement.
func TestRedisInterruptedWithdrawal(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"redis": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			f := overRedis(client, Options{})
			g := devices(t, f, "phone", "laptop")
			ids := sendGroup(t, f, "g", "phone", "laptop")
			f.breakList(t, "laptop", func() {
				if _, err := f.Ack(t.Context(), "phone", g["phone"], ids["phone"]); err == nil {
					t.Error("an acknowledgement that cannot withdraw returns no error")
				}
			})
			wantQueue(t, f, "acknowledged nevertheless", "phone", g["phone"], ids["phone"])
			wantQueue(t, f, "not withdrawn yet", "laptop", g["laptop"], 0, ids["laptop"])

			b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
			equal(t, "withdrawal due", b.WithdrawalDue, true)
			equal(t, "acked", b.Acked, ids["phone"])
			must(f.Ack(t.Context(), "phone", b.Generation, b.Acked))(t)
			wantQueue(t, f, "withdrawn", "laptop", g["laptop"], 0)
			b = must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
			equal(t, "withdrawal still due", b.WithdrawalDue, false)
			g["phone"] = b.Generation

			for _, client := range []string{"phone", "laptop"} {
				acked := sendGroup(t, f, "h", client)[client]
				id := sendGroup(t, f, "i", client)[client]
				must(f.Ack(t.Context(), client, g[client], acked))(t)
				first := must(f.rdb.HGet(t.Context(), f.keys.record(client), "first").Result())(t)
				equal(t, "field first of the record", first, decimal(id))
				if left := must(f.rdb.PTTL(t.Context(), f.keys.groups(client)).Result())(t); left < f.opts.RecordTTL/2 {
					t.Errorf("%s lives %v", f.keys.groups(client), left)
				}
			}
		})
	}
}

// breakList replaces a client's list by a string while during runs.
func (f fixture) breakList(t *testing.T, client string, during func()) {
	t.Helper()
	list, aside := f.keys.list(client), f.keys.list(client)+":aside"
	ok(t, f.rdb.Rename(t.Context(), list, aside).Err())
	ok(t, f.rdb.Set(t.Context(), list, "not a list", 0).Err())
	during()
	ok(t, f.rdb.Del(t.Context(), list).Err())
	ok(t, f.rdb.Rename(t.Context(), aside, list).Err())
}
