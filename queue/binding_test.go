package queue

import (
	"fmt"
	"testing"
	"time"
)

func testBind(t *testing.T, open opener) {
	f := open(t, Options{})
	_, known, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known before", known, false)

	b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	equal(t, "bound", b, Bound{Generation: b.Generation})
	if b.Generation < 1 || b.Generation > maxID {
		t.Errorf("generation %d", b.Generation)
	}
	c, known, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known", known, true)
	equal(t, "since is set", c.Since.IsZero(), false)
	c.Since = c.Since.Truncate(0)
	equal(t, "client", c, Client{User: "alice", Server: "b1", Generation: b.Generation, Since: c.Since})

	f.expire(t, f.opts.RecordTTL, f.keys.record("phone"))
	_, known, err = f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known after RecordTTL", known, false)
}

func testBindTakesOver(t *testing.T, open opener) {
	f := open(t, Options{})
	first := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	ids := send(t, f, "phone", 3)
	must(f.Ack(t.Context(), "phone", first.Generation, ids[0]))(t)
	second := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
	if second.Generation <= first.Generation {
		t.Errorf("generation %d follows %d", second.Generation, first.Generation)
	}
	equal(t, "bound", second, Bound{
		Generation: second.Generation, PrevServer: "b1", PrevGeneration: first.Generation, Acked: ids[0], Queued: 2, Last: ids[2],
	})
}

func testBindDelayed(t *testing.T, open opener) {
	f := open(t, Options{})
	claim := func(instance string, attempt int64, server string) (Bound, error) {
		return f.Bind(t.Context(), Claim{Client: "phone", Server: server, Instance: instance, Attempt: attempt})
	}
	second := must(claim("app", 2, "b2"))(t)
	_, err := claim("app", 1, "b1")
	fails(t, "a delayed earlier attempt", err, ErrStale)
	c, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "server", c.Server, "b2")
	equal(t, "generation", c.Generation, second.Generation)
	for _, later := range []struct {
		instance string
		attempt  int64
	}{
		{"app", 2}, {"app", 3},
		{"app restarted", 1},
		{"", 0},    // the client does not send an instance
		{"app", 1}, // the earlier attempts are forgotten
	} {
		bound, err := claim(later.instance, later.attempt, "b3")
		ok(t, err)
		if bound.Generation <= second.Generation {
			t.Errorf("%+v: generation %d after %d", later, bound.Generation, second.Generation)
		}
	}
}

// testBindLate binds for claims that are older than the client's binding, or than MaxBindDelay.
func testBindLate(t *testing.T, open opener) {
	f := open(t, Options{})
	claim := func(client string, asked int64) (Bound, error) {
		return f.Bind(t.Context(), Claim{Client: client, Server: "b1", Asked: asked})
	}
	newer := must(f.Bind(t.Context(), Claim{Client: "phone", Server: "b2"}))(t)
	now := TimeOf(newer.Generation).UnixMilli()
	before, _, err := f.Client(t.Context(), "phone")
	ok(t, err)

	_, err = claim("phone", now-1)
	fails(t, "asked before the newer bind", err, ErrLate)
	ok(t, f.Unbind(t.Context(), "phone", newer.Generation))
	before.Server = ""
	late, err := claim("phone", now-1)
	fails(t, "asked before the newer bind, which has ended", err, ErrLate)
	equal(t, "late bound", late, Bound{Asked: late.Asked})
	after, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "the record", after, before)
	again := must(claim("phone", late.Asked))(t)
	equal(t, "replaced", again.PrevGeneration, newer.Generation)

	f.advance(t, MaxBindDelay/2)
	must(claim("tablet", now))(t)
	f.advance(t, MaxBindDelay)
	late, err = claim("laptop", now)
	fails(t, "older than MaxBindDelay", err, ErrLate)
	_, known, err := f.Client(t.Context(), "laptop")
	ok(t, err)
	equal(t, "a record of the late bind", known, false)
	must(claim("laptop", late.Asked))(t)

	// After a failover to a store with a slow clock, the client may have a generation of the future.
	ahead := IDAt(time.UnixMilli(late.Asked).Add(time.Hour))
	ok(t, f.Refresh(t.Context(), "b2", HeldClient{Client: "tv", Generation: ahead}))
	late, err = claim("tv", late.Asked)
	fails(t, "below a generation of the future", err, ErrLate)
	equal(t, "replaced", must(claim("tv", late.Asked))(t).PrevGeneration, ahead)
}

func testBindBySecret(t *testing.T, open opener) {
	own, other := HashSecret("the client's own"), HashSecret("a guess")
	online := func(t *testing.T, f fixture, c Claim) {
		c.Client, c.Server = "tab", "b1"
		must(f.Bind(t.Context(), c))(t)
	}
	offline := func(t *testing.T, f fixture, c Claim) {
		c.Client, c.Server = "tab", "b1"
		b := must(f.Bind(t.Context(), c))(t)
		ok(t, f.Unbind(t.Context(), "tab", b.Generation))
	}
	waiting := func(t *testing.T, f fixture, c Claim) {
		offline(t, f, c)
		send(t, f, "tab", 1)
	}
	restored := func(t *testing.T, f fixture, c Claim) { // after the store lost the record
		ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "tab", User: c.User, Generation: 1000, Secret: c.Secret}))
	}
	unknown := func(*testing.T, fixture, Claim) {}
	pushedTo := func(t *testing.T, f fixture, _ Claim) { send(t, f, "tab", 1) }
	for _, c := range []struct {
		name   string
		state  func(*testing.T, fixture, Claim)
		former Claim
		secret SecretHash
		want   error
	}{
		{"unknown", unknown, Claim{}, own, nil},
		{"pushed to before its first bind", pushedTo, Claim{}, own, nil},
		{"online, its own", online, Claim{Secret: own}, own, nil},
		{"online, another", online, Claim{Secret: own}, other, ErrSecret},
		{"offline, its own", offline, Claim{Secret: own}, own, nil},
		{"offline, another", offline, Claim{Secret: own}, other, ErrSecret},
		{"waiting, its own", waiting, Claim{Secret: own}, own, nil},
		{"waiting, another", waiting, Claim{Secret: own}, other, ErrSecret},
		{"restored, its own", restored, Claim{Secret: own}, own, nil},
		{"restored, another", restored, Claim{Secret: own}, other, ErrSecret},
		{"bound to a user by an older version", offline, Claim{User: "alice"}, SecretHash{}, ErrSecret},
	} {
		f := open(t, Options{})
		c.state(t, f, c.former)
		before, _, err := f.Client(t.Context(), "tab")
		ok(t, err)
		_, err = f.Bind(t.Context(), Claim{Client: "tab", Server: "b2", Secret: c.secret})
		fails(t, c.name, err, c.want)
		after, _, err := f.Client(t.Context(), "tab")
		ok(t, err)
		if c.want != nil {
			equal(t, c.name+": the record", after, before)
		} else {
			equal(t, c.name+": server", after.Server, "b2")
			equal(t, c.name+": queued", after.Queued, before.Queued)
		}
	}
}

// TestRedisBindWithoutHash binds a client whose record has no hash, as an older version left it.
func TestRedisBindWithoutHash(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	must(f.Bind(t.Context(), Claim{Client: "tab", Server: "b1"}))(t)
	ok(t, client.HDel(t.Context(), f.keys.record("tab"), "secret").Err())
	_, err := f.Bind(t.Context(), Claim{Client: "tab", Server: "b2", Secret: HashSecret("a guess")})
	fails(t, "no hash", err, ErrSecret)
}

// TestRedisBindWithOtherWriters checks that Bound.Last includes ids of other writers, which only
// the list has.
func TestRedisBindWithOtherWriters(t *testing.T) {
	client := server.Client(t)
	f := overRedis(client, Options{})
	ids := send(t, f, "tab", 1)
	ok(t, client.RPush(t.Context(), f.keys.list("tab"), fmt.Sprint(ids[0]+5, ":1")).Err())
	b := must(f.Bind(t.Context(), Claim{Client: "tab", Server: "b1"}))(t)
	equal(t, "last", b.Last, ids[0]+5)
	ok(t, client.RPush(t.Context(), f.keys.list("tab"), "malformed").Err())
	b = must(f.Bind(t.Context(), Claim{Client: "tab", Server: "b1"}))(t)
	equal(t, "last before a malformed element", b.Last, ids[0])
}

// testBindAfterOtherUser binds a client that an older version of the broker bound to another user.
// The messages of the former user are removed.
func testBindAfterOtherUser(t *testing.T, open opener) {
	for _, former := range []string{"bob", ""} {
		f := open(t, Options{})
		b := must(f.Bind(t.Context(), Claim{Client: "alice/phone", User: former, Server: "b1"}))(t)
		ids := send(t, f, "alice/phone", 3)
		b = must(f.Bind(t.Context(), Claim{Client: "alice/phone", User: "alice", Server: "b2"}))(t)
		equal(t, "bound", b, Bound{
			Generation: b.Generation, PrevServer: "b1", PrevGeneration: b.PrevGeneration, Acked: ids[2], Last: ids[2],
		})
		p := must(f.Window(t.Context(), "alice/phone", b.Generation, b.Acked, 10))(t)
		equal(t, "messages of the former user", len(p.Messages), 0)
		equal(t, "gap", !p.Complete, false)
		equal(t, "floor", p.Floor, 0)
		a := must(f.AppendClient(t.Context(), ClientPush{Client: "alice/phone", User: "alice", Data: []byte("1")}))(t)
		equal(t, "prev", a.Prev, ids[2])
	}
	f := open(t, Options{})
	ids := send(t, f, "alice/phone", 1) // before the first bind
	b := must(f.Bind(t.Context(), Claim{Client: "alice/phone", User: "alice", Server: "b1"}))(t)
	equal(t, "pushed to first", b, Bound{Generation: b.Generation, Queued: 1, Last: ids[0]})
}

func testRefresh(t *testing.T, open opener) {
	f := open(t, Options{})
	old := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	now := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	before, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	fails(t, "older", f.Refresh(t.Context(), "b0", HeldClient{Client: "phone", User: "alice", Generation: old.Generation}), ErrStale)
	same, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "after a stale refresh", same, before)

	ok(t, f.Refresh(t.Context(), "b2", HeldClient{Client: "phone", User: "alice", Generation: now.Generation}))
	c, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	before.Server = "b2"
	equal(t, "the server has a new id", c, before)
}

// testBatchRefreshes refreshes a batch, and checks that each client has its own outcome.
func testBatchRefreshes(t *testing.T, open opener) {
	f := open(t, Options{})
	phone := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	tablet := must(f.Bind(t.Context(), Claim{Client: "tablet", Server: "b1"}))(t)
	ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "tablet", Generation: tablet.Generation})) // the next refresh changes nothing
	old := must(f.Bind(t.Context(), Claim{Client: "watch", Server: "b1"}))(t)
	must(f.Bind(t.Context(), Claim{Client: "watch", Server: "b2"}))(t)
	errs := f.RefreshClients(t.Context(), "b1", []HeldClient{
		{Client: "phone", User: "alice", Generation: phone.Generation}, {Client: "tablet", Generation: tablet.Generation},
		{Client: "tv", User: "bob", Generation: 1000}, {Client: "watch", Generation: old.Generation},
	})
	equal(t, "answers", len(errs), 4)
	for _, err := range errs[:3] {
		ok(t, err)
	}
	fails(t, "older", errs[3], ErrStale)
	tv, _, err := f.Client(t.Context(), "tv")
	ok(t, err)
	equal(t, "a lost record", tv, Client{User: "bob", Server: "b1", Generation: 1000, Since: tv.Since})
}

func testRefreshOfLostRecord(t *testing.T, open opener) {
	for _, c := range []struct {
		name string
		then func(t *testing.T, f fixture)
	}{
		{"lost", func(*testing.T, fixture) {}},
		{"lost and pushed to", func(t *testing.T, f fixture) { send(t, f, "phone", 1) }},
	} {
		f := open(t, Options{})
		b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
		f.expire(t, f.opts.RecordTTL, f.keys.record("phone"))
		c.then(t, f)
		ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "phone", User: "alice", Generation: b.Generation}))
		got, known, err := f.Client(t.Context(), "phone")
		ok(t, err)
		equal(t, c.name+": known", known, true)
		equal(t, c.name+": since is set", got.Since.IsZero(), false)
		equal(t, c.name+": client", got, Client{
			User: "alice", Server: "b1", Generation: b.Generation, Since: got.Since, Queued: got.Queued, Last: got.Last,
		})
	}
	// A failover took the record back to the previous binding.
	f := open(t, Options{})
	ok(t, f.Refresh(t.Context(), "b1", HeldClient{Client: "phone", User: "alice", Generation: 1000}))
	ok(t, f.Refresh(t.Context(), "b2", HeldClient{Client: "phone", User: "bob", Generation: 2000}))
	got, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "older record: client", got, Client{User: "bob", Server: "b2", Generation: 2000, Since: got.Since})
}

func testUnbind(t *testing.T, open opener) {
	f := open(t, Options{})
	old := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	now := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
	send(t, f, "phone", 2)
	fails(t, "older", f.Unbind(t.Context(), "phone", old.Generation), ErrStale)
	ok(t, f.Unbind(t.Context(), "phone", now.Generation))
	ok(t, f.Unbind(t.Context(), "phone", now.Generation)) // repeating it is harmless
	c, known, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known", known, true)
	equal(t, "client", c, Client{
		User: "alice", Generation: now.Generation, Since: c.Since, Queued: 2, Last: c.Last,
	})
	fails(t, "unknown", f.Unbind(t.Context(), "tablet", 1), ErrForgotten)
}

func testRelease(t *testing.T, open opener) {
	f := open(t, Options{})
	b := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	for _, c := range []struct {
		client, server string
		released       bool
	}{
		{"phone", "b2", false},
		{"tablet", "b1", false},
		{"phone", "b1", true},
		{"phone", "b1", false}, // not bound any more
	} {
		user, generation, released, err := f.Release(t.Context(), c.client, c.server)
		ok(t, err)
		equal(t, c.client+" from "+c.server, released, c.released)
		if released {
			equal(t, "user", user, "alice")
			equal(t, "generation", generation, b.Generation)
		}
	}
	c, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "server", c.Server, "")
	equal(t, "generation", c.Generation, b.Generation)
}

func testStaleGeneration(t *testing.T, open opener) {
	f := open(t, Options{})
	old := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t)
	now := must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b2"}))(t)
	ids := send(t, f, "phone", 3)
	before, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	for _, c := range []struct {
		client     string
		generation int64
		want       error
	}{
		{"phone", old.Generation, ErrStale},
		{"phone", 0, ErrStale},
		{"phone", now.Generation + 1, ErrForgotten},
		{"tablet", now.Generation, ErrForgotten},
	} {
		_, err := f.Window(t.Context(), c.client, c.generation, 0, 10)
		fails(t, "window", err, c.want)
		_, err = f.Ack(t.Context(), c.client, c.generation, ids[2])
		fails(t, "ack", err, c.want)
		fails(t, "unbind", f.Unbind(t.Context(), c.client, c.generation), c.want)
	}
	fails(t, "refresh", f.Refresh(t.Context(), "b1", HeldClient{Client: "phone", User: "alice", Generation: old.Generation}), ErrStale)
	after, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "the record", after, before)
	equal(t, "waiting", must(f.Window(t.Context(), "phone", now.Generation, 0, 10))(t).Last, ids[2])
}
