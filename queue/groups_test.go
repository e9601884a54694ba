package queue

import (
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
)

// devices are clients of alice that are online, with their generations.
func devices(t *testing.T, f fixture, clients ...string) map[string]int64 {
	t.Helper()
	generations := map[string]int64{}
	for _, client := range clients {
		generations[client] = bound(t, f, client)
	}
	f.own(t, "alice", clients...)
	return generations
}

// sendFirst puts a message of a group into the queue of each client.
func sendFirst(t *testing.T, f fixture, group string, clients ...string) map[string]int64 {
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

// waiting demands that these are in a client's queue, all that is above after, and that nothing is
// missing.
func waiting(t *testing.T, f fixture, what, client string, generation, after int64, want ...int64) {
	t.Helper()
	p := must(f.Window(t.Context(), client, generation, after, 100))(t)
	if got := idsOf(p.Messages); !slices.Equal(got, want) {
		t.Errorf("%s: %s has %v, want %v", what, client, got, want)
	}
	if !p.Complete {
		t.Errorf("%s: %s is told of a gap up to %d", what, client, p.Floor)
	}
}

func testFirst(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop", "tablet")
	before := send(t, f, "laptop", 2)
	one := sendFirst(t, f, "g1", "phone", "laptop", "tablet")
	between := send(t, f, "laptop", 1)
	two := sendFirst(t, f, "g2", "phone", "laptop", "tablet")
	behind := send(t, f, "laptop", 1)

	must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]-1))(t)
	waiting(t, f, "before any acknowledgement", "tablet", g["tablet"], 0, one["tablet"], two["tablet"])
	equal(t, "acknowledged", must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t), 1)
	waiting(t, f, "the first is withdrawn", "laptop", g["laptop"], 0, before[0], before[1], between[0], two["laptop"], behind[0])
	waiting(t, f, "the first is withdrawn", "tablet", g["tablet"], 0, two["tablet"])
	waiting(t, f, "what is not acknowledged", "phone", g["phone"], one["phone"], two["phone"])
	equal(t, "again", must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t), 0)

	for _, id := range []int64{one["laptop"], two["laptop"]} {
		if m := must(f.ConfirmClient(t.Context(), "laptop", id))(t); m != nil {
			t.Errorf("%d of laptop is taken for lost: %s", id, m.Data)
		}
	}
	// The tablet loses its only message, and what comes next is behind that.
	must(f.Ack(t.Context(), "laptop", g["laptop"], behind[0]))(t)
	waiting(t, f, "the second is withdrawn", "tablet", g["tablet"], 0)
	waiting(t, f, "the second is withdrawn", "phone", g["phone"], one["phone"])
	if m := must(f.ConfirmClient(t.Context(), "tablet", two["tablet"]))(t); m != nil {
		t.Errorf("%d of tablet is taken for lost: %s", two["tablet"], m.Data)
	}
	next := must(f.AppendClient(t.Context(), ClientPush{Client: "tablet", Data: []byte("1")}))(t)
	equal(t, "the one before", next.Prev, two["tablet"])
	waiting(t, f, "the next one", "tablet", g["tablet"], 0, next.ID)
	equal(t, "late", must(f.Ack(t.Context(), "tablet", g["tablet"], two["tablet"]))(t), 0)
	waiting(t, f, "after a late acknowledgement", "tablet", g["tablet"], two["tablet"], next.ID)
	b := must(f.Bind(t.Context(), Claim{Client: "tablet", User: "alice", Server: "b2"}))(t)
	equal(t, "acknowledged or withdrawn", b.Acked, two["tablet"])
	equal(t, "owes", b.WithdrawalDue, false)
}

// Those that were appended one after the other, under keys, are one group as well; and another
// user's are not concerned.
func testFirstByKey(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	ids := map[string]int64{}
	for _, client := range []string{"phone", "laptop", "phone"} {
		a := must(f.AppendClient(t.Context(), ClientPush{Client: client, User: "alice", Data: []byte("1"), Key: "k", AckGroup: "g"}))(t)
		equal(t, "duplicate", a.Duplicate, ids[client] != 0)
		ids[client] = a.ID
	}
	bob := must(f.Bind(t.Context(), Claim{Client: "bobs", User: "bob", Server: "b1"}))(t).Generation
	f.own(t, "bob", "bobs")
	other := must(f.AppendClient(t.Context(), ClientPush{Client: "bobs", Data: []byte("1"), AckGroup: "other"}))(t)
	must(f.Ack(t.Context(), "laptop", g["laptop"], maxID))(t)
	waiting(t, f, "withdrawn", "phone", g["phone"], 0)
	waiting(t, f, "another user's", "bobs", bob, 0, other.ID)
}

// A push that failed half-way is repeated when the first device has acknowledged already.
func testFirstRepeated(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	push := func(client string) int64 {
		t.Helper()
		p := ClientPush{Client: client, User: "alice", Data: []byte("1"), Key: "k", AckGroup: "g"}
		return must(f.AppendClient(t.Context(), p))(t).ID
	}
	owes := func(want bool) (acked int64) {
		t.Helper()
		b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
		equal(t, "owes", b.WithdrawalDue, want)
		g["phone"] = b.Generation
		return b.Acked
	}
	id := push("phone")
	push("phone")
	owes(false)
	must(f.Ack(t.Context(), "phone", g["phone"], id))(t)
	owes(false)
	equal(t, "the same", push("phone"), id)
	late := push("laptop")
	waiting(t, f, "too late", "laptop", g["laptop"], 0, late)
	acked := owes(true)
	must(f.Ack(t.Context(), "phone", g["phone"], acked))(t)
	waiting(t, f, "withdrawn after all", "laptop", g["laptop"], 0)
	owes(false)
}

// Both acknowledge before either knows of the other.
func testFirstTwice(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	for i := range 20 {
		ids := sendFirst(t, f, fmt.Sprint("g", i), "phone", "laptop")
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
			waiting(t, f, "acknowledged by both", client, g[client], id)
			if m := must(f.ConfirmClient(t.Context(), client, id))(t); m != nil {
				t.Errorf("%d of %s is taken for lost: %s", id, client, m.Data)
			}
		}
	}
}

// What the cap dropped is a gap as ever, and a group whose message is gone has no effect.
func testFirstBeyondTheCap(t *testing.T, open opener) {
	f := open(t, Options{ClientCap: 3})
	g := devices(t, f, "phone", "laptop")
	var ids []map[string]int64
	for i := range 5 {
		ids = append(ids, sendFirst(t, f, fmt.Sprint("g", i), "phone", "laptop"))
	}
	must(f.Ack(t.Context(), "phone", g["phone"], ids[3]["phone"]))(t)
	p := must(f.Window(t.Context(), "laptop", g["laptop"], 0, 10))(t)
	wantIDs(t, "the last one", p, []int64{ids[4]["laptop"]})
	equal(t, "floor", p.Floor, ids[1]["laptop"])
	must(f.Ack(t.Context(), "phone", g["phone"], ids[4]["phone"]))(t)
	b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t)
	p = must(f.Window(t.Context(), "laptop", b.Generation, b.Acked, 10))(t)
	wantIDs(t, "none", p, nil)
	equal(t, "no gap", p.Complete, false)
}

// Who acknowledges what is behind a gap has not received what the gap is of: the others keep
// theirs.
func testFirstUnreceived(t *testing.T, open opener) {
	for what, lose := range map[string]func(f fixture) int64{
		"cap": func(f fixture) int64 { return send(t, f, "laptop", 4)[3] },
		"expiry": func(f fixture) int64 {
			f.lapse(t, f.opts.ClientTTL, f.keys.list("laptop"))
			return send(t, f, "laptop", 1)[0]
		},
		"expiry of all": func(f fixture) int64 {
			f.lapse(t, f.opts.ClientTTL, f.keys.list("laptop"))
			return maxID
		},
	} {
		t.Run(what, func(t *testing.T) {
			f := open(t, Options{ClientCap: 3})
			g := devices(t, f, "phone", "laptop")
			long := ClientPush{Client: "phone", Data: []byte("1"), TTL: 2 * f.opts.ClientTTL}
			for range 2 { // as the only one that the laptop missed, and behind one that it had
				must(f.AppendClient(t.Context(), long))(t)
				one := sendFirst(t, f, "g1", "phone", "laptop")
				must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]-1))(t)
				must(f.Ack(t.Context(), "laptop", g["laptop"], lose(f)))(t)
				waiting(t, f, "not received elsewhere", "phone", g["phone"], one["phone"]-1, one["phone"])
				two := sendFirst(t, f, "g2", "phone", "laptop")
				must(f.Ack(t.Context(), "laptop", g["laptop"], two["laptop"]))(t)
				waiting(t, f, "received elsewhere", "phone", g["phone"], one["phone"]-1, one["phone"])
				must(f.Ack(t.Context(), "phone", g["phone"], one["phone"]))(t)
			}
		})
	}
}

// A list that ends with what was withdrawn, or had nothing else, has not expired.
func testFirstAtTheEnd(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	var acked int64
	for _, n := range []int{1, 0} {
		waits := send(t, f, "laptop", n)
		ids := sendFirst(t, f, fmt.Sprint("g", n), "phone", "laptop")
		must(f.Ack(t.Context(), "phone", g["phone"], ids["phone"]))(t)
		waiting(t, f, "the one before", "laptop", g["laptop"], acked, waits...)
		if n > 0 {
			must(f.Ack(t.Context(), "laptop", g["laptop"], waits[0]))(t)
		}
		waiting(t, f, "none", "laptop", g["laptop"], acked)
		b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t)
		equal(t, "acknowledged or withdrawn", b.Acked, ids["laptop"])
		g["laptop"] = b.Generation
		next := send(t, f, "laptop", 1)[0]
		waiting(t, f, "the next one", "laptop", b.Generation, acked, next)
		must(f.Ack(t.Context(), "laptop", g["laptop"], next))(t)
		acked = next
	}
}

// A device that changed hands acknowledges nothing in its former user's name.
func testFirstOfAFormerUser(t *testing.T, open opener) {
	f := open(t, Options{})
	g := devices(t, f, "phone", "laptop")
	must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), TTL: 2 * f.opts.ClientTTL}))(t)
	ids := sendFirst(t, f, "g", "phone", "laptop")
	must(f.Ack(t.Context(), "phone", g["phone"], ids["phone"]-1))(t)
	ok(t, f.Unbind(t.Context(), "laptop", g["laptop"]))
	f.lapse(t, f.opts.ClientTTL, f.keys.list("laptop"))
	for _, user := range []string{"bob", "alice"} {
		b := must(f.Bind(t.Context(), Claim{Client: "laptop", User: user, Server: "b1"}))(t)
		equal(t, "owes", b.WithdrawalDue, false)
		ok(t, f.Unbind(t.Context(), "laptop", b.Generation))
	}
	g["laptop"] = must(f.Bind(t.Context(), Claim{Client: "laptop", User: "alice", Server: "b1"}))(t).Generation
	two := sendFirst(t, f, "g2", "phone", "laptop")
	must(f.Ack(t.Context(), "laptop", g["laptop"], two["laptop"]))(t)
	waiting(t, f, "not received elsewhere", "phone", g["phone"], ids["phone"]-1, ids["phone"])
}

// TestFirstIsWithdrawnLater: whoever acknowledges and cannot withdraw leaves that to the next
// acknowledgement, or bind.
func TestFirstIsWithdrawnLater(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{"redis": server.Client(t), "cluster": cluster.Client(t)} {
		t.Run(name, func(t *testing.T) {
			f := overRedis(client, Options{})
			g := devices(t, f, "phone", "laptop")
			ids := sendFirst(t, f, "g", "phone", "laptop")
			f.breaks(t, "laptop", func() {
				if _, err := f.Ack(t.Context(), "phone", g["phone"], ids["phone"]); err == nil {
					t.Error("an acknowledgement that withdraws nothing says that all is well")
				}
			})
			waiting(t, f, "acknowledged all the same", "phone", g["phone"], ids["phone"])
			waiting(t, f, "not withdrawn yet", "laptop", g["laptop"], 0, ids["laptop"])

			b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
			equal(t, "owes", b.WithdrawalDue, true)
			equal(t, "acked", b.Acked, ids["phone"])
			must(f.Ack(t.Context(), "phone", b.Generation, b.Acked))(t)
			waiting(t, f, "withdrawn", "laptop", g["laptop"], 0)
			b = must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
			equal(t, "owes no more", b.WithdrawalDue, false)
			g["phone"] = b.Generation

			for _, client := range []string{"phone", "laptop"} {
				acked := sendFirst(t, f, "h", client)[client]
				id := sendFirst(t, f, "i", client)[client]
				must(f.Ack(t.Context(), client, g[client], acked))(t)
				first := must(f.rdb.HGet(t.Context(), f.keys.record(client), "first").Result())(t)
				equal(t, "from where on acknowledgements look for groups", first, decimal(id))
				if left := must(f.rdb.PTTL(t.Context(), f.keys.groups(client)).Result())(t); left < f.opts.RecordTTL/2 {
					t.Errorf("%s lives %v", f.keys.groups(client), left)
				}
			}
		})
	}
}

// breaks makes every look at a client's list fail for the length of a call.
func (f fixture) breaks(t *testing.T, client string, during func()) {
	t.Helper()
	list, aside := f.keys.list(client), f.keys.list(client)+":aside"
	ok(t, f.rdb.Rename(t.Context(), list, aside).Err())
	ok(t, f.rdb.Set(t.Context(), list, "no list", 0).Err())
	during()
	ok(t, f.rdb.Del(t.Context(), list).Err())
	ok(t, f.rdb.Rename(t.Context(), aside, list).Err())
}
