package queue

import (
	"bytes"
	"testing"
	"time"
)

// bound binds a client and returns its generation.
func bound(t *testing.T, f fixture, client string) int64 {
	t.Helper()
	return must(f.Bind(t.Context(), Claim{Client: client, User: "alice", Server: "b1"}))(t).Generation
}

func testClientAppend(t *testing.T, open opener) {
	f := open(t, Options{})
	first := must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1")}))(t)
	equal(t, "to a client never seen", first, ClientAppended{ID: first.ID})
	c, known, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known", known, true)
	equal(t, "client", c, Client{Queued: 1, Last: first.ID})

	g := bound(t, f, "phone")
	second := must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte(`{"a":[1,2]}`)}))(t)
	equal(t, "to a client online", second, ClientAppended{ID: second.ID, Prev: first.ID, Server: "b1", Generation: g})
	p := must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	wantIDs(t, "both are found", p, []int64{first.ID, second.ID})
	equal(t, "data", string(p.Messages[1].Data), `{"a":[1,2]}`)
	equal(t, "complete", p.Complete, true)
	equal(t, "last", p.Last, second.ID)

	ok(t, f.Unbind(t.Context(), "phone", g))
	third := must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("3")}))(t)
	equal(t, "to a client offline", third, ClientAppended{ID: third.ID, Prev: second.ID, Generation: g})
}

func testConcurrentClientAppends(t *testing.T, open opener) {
	f := open(t, Options{})
	testPrev(t, func() (id, prev int64, err error) {
		a, err := f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1")})
		return a.ID, a.Prev, err
	})
}

func testClientAppendToUser(t *testing.T, open opener) {
	f := open(t, Options{})
	bound(t, f, "phone")
	send(t, f, "anonymous", 1)
	for _, c := range []struct {
		client, user string
		want         error
	}{
		{"phone", "alice", nil},
		{"phone", "bob", ErrUnknownClient},
		{"unknown", "alice", ErrUnknownClient},
		{"anonymous", "alice", ErrUnknownClient},
	} {
		_, err := f.AppendClient(t.Context(), ClientPush{Client: c.client, User: c.user, Data: []byte("1"), Key: "k-" + c.user})
		fails(t, c.user+" on "+c.client, err, c.want)
	}
	for client, want := range map[string]int{"phone": 1, "unknown": 0, "anonymous": 1} {
		c, _, err := f.Client(t.Context(), client)
		ok(t, err)
		equal(t, client+": queued", c.Queued, want)
	}
}

func testClientIdempotency(t *testing.T, open opener) {
	f := open(t, Options{})
	push := ClientPush{Client: "phone", Data: []byte("1"), Key: "k"}
	first := must(f.AppendClient(t.Context(), push))(t)
	g := bound(t, f, "phone")
	again := must(f.AppendClient(t.Context(), push))(t)
	equal(t, "again", again, ClientAppended{ID: first.ID, Duplicate: true, Server: "b1", Generation: g})
	wantIDs(t, "held", must(f.Window(t.Context(), "phone", g, 0, 10))(t), []int64{first.ID})
	// A channel with the same name has other keys.
	equal(t, "channel", must(f.AppendChannel(t.Context(), ChannelPush{Channel: "phone", Data: []byte("1"), Key: "k"}))(t).Duplicate, false)
	f.expire(t, f.opts.KeyTTL, f.keys.clientKey("phone", "k"))
	equal(t, "after KeyTTL", must(f.AppendClient(t.Context(), push))(t).Duplicate, false)
}

func testClientCap(t *testing.T, open opener) {
	f := open(t, Options{ClientCap: 3})
	g := bound(t, f, "phone")
	ids := send(t, f, "phone", 5)
	p := must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	wantIDs(t, "held", p, ids[2:])
	equal(t, "floor", p.Floor, ids[1])
	equal(t, "complete", p.Complete, false)
	equal(t, "complete at the floor", must(f.Window(t.Context(), "phone", g, ids[1], 10))(t).Complete, true)
}

func testWindow(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	p := must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	equal(t, "empty", len(p.Messages) == 0 && !p.More && p.Complete, true)
	ids := send(t, f, "phone", 40)
	for _, c := range []struct {
		name  string
		after int64
		limit int
		want  []int64
		more  bool
	}{
		{"all", 0, 100, ids, false},
		{"exactly", 0, 40, ids, false},
		{"limited", 0, 39, ids[:39], true},
		{"after an id", ids[35], 100, ids[36:], false},
		{"after an id, limited", ids[3], 2, ids[4:6], true},
		{"after an id never assigned", ids[0] - 1, 1, ids[:1], true},
		{"after the last", ids[39], 100, nil, false},
		{"limit 0", 0, 0, nil, true},
	} {
		p := must(f.Window(t.Context(), "phone", g, c.after, c.limit))(t)
		wantIDs(t, c.name, p, c.want)
		equal(t, c.name+": more", p.More, c.more)
		equal(t, c.name+": last", p.Last, ids[39])
	}
}

func testWindowByBytes(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	var ids []int64
	for _, size := range []int{MaxWindowBytes / 2, MaxWindowBytes / 3, MaxWindowBytes * 2, 10} {
		data := append(append([]byte{'"'}, bytes.Repeat([]byte("x"), size)...), '"')
		ids = append(ids, must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: data}))(t).ID)
	}
	for _, c := range []struct {
		after int64
		want  []int64
		more  bool
	}{
		{0, ids[:2], true},
		{ids[1], ids[2:3], true},
		{ids[2], ids[3:], false},
	} {
		p := must(f.Window(t.Context(), "phone", g, c.after, 100))(t)
		wantIDs(t, "page", p, c.want)
		equal(t, "more", p.More, c.more)
	}
}

func testWindowEnds(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	ids := send(t, f, "phone", MaxWindow+10)
	p := must(f.Window(t.Context(), "phone", g, 0, 1000))(t)
	wantIDs(t, "the window", p, ids[:MaxWindow])
	equal(t, "more after the window", p.More, true)
	p = must(f.Window(t.Context(), "phone", g, ids[MaxWindow-1], 1000))(t)
	wantIDs(t, "all in flight", p, nil)
	equal(t, "more after the messages in flight", p.More, true)

	equal(t, "acknowledged", must(f.Ack(t.Context(), "phone", g, ids[9]))(t), 10)
	p = must(f.Window(t.Context(), "phone", g, ids[MaxWindow-1], 1000))(t)
	wantIDs(t, "the window moved", p, ids[MaxWindow:])
	equal(t, "more at the end", p.More, false)
}

func testReadClient(t *testing.T, open opener) {
	f := open(t, Options{ClientCap: MaxWindow + 40})
	_, err := f.ReadClient(t.Context(), "phone", 0, 10)
	fails(t, "an unknown client", err, ErrForgotten)
	ids := send(t, f, "phone", MaxWindow+40) // the client was never bound
	for _, c := range []struct {
		after int64
		limit int
		want  []int64
		more  bool
	}{
		{0, 1000, ids, false},
		{0, 10, ids[:10], true},
		{ids[MaxWindow+9], 10, ids[MaxWindow+10 : MaxWindow+20], true},
		{ids[len(ids)-2], 10, ids[len(ids)-1:], false},
		{ids[len(ids)-1], 10, nil, false},
	} {
		p := must(f.ReadClient(t.Context(), "phone", c.after, c.limit))(t)
		wantIDs(t, "page", p, c.want)
		equal(t, "more", p.More, c.more)
		equal(t, "complete", p.Complete, true)
		equal(t, "last", p.Last, ids[len(ids)-1])
	}
	g := bound(t, f, "phone")
	must(f.Ack(t.Context(), "phone", g, ids[0]))(t)
	wantIDs(t, "after an acknowledgement", must(f.ReadClient(t.Context(), "phone", 0, 2))(t), ids[1:3])
	more := send(t, f, "phone", 3) // two are dropped
	p := must(f.ReadClient(t.Context(), "phone", ids[0], 1000))(t)
	wantIDs(t, "after a drop", p, append(ids[3:], more...))
	equal(t, "complete after a drop", p.Complete, false)
	equal(t, "floor", p.Floor, ids[2])
	record, _, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "the reads change nothing", record.Acked, ids[0])
}

func testAck(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	ids := send(t, f, "phone", 50)
	for _, c := range []struct {
		name string
		id   int64
		want int
	}{
		{"nothing", 0, 0},
		{"one", ids[0], 1},
		{"again", ids[0], 0},
		{"an id never assigned", ids[0] - 1, 0},
		{"many", ids[40], 40},
		{"backwards", ids[2], 0},
		{"above the last", maxID, 9},
		{"none left", ids[49], 0},
	} {
		equal(t, c.name, must(f.Ack(t.Context(), "phone", g, c.id))(t), c.want)
	}
	record, known, err := f.Client(t.Context(), "phone")
	ok(t, err)
	equal(t, "known", known, true)
	equal(t, "acked in the record", record.Acked, ids[49])
	equal(t, "acked", must(f.Bind(t.Context(), Claim{Client: "phone", User: "alice", Server: "b1"}))(t).Acked, ids[49])
	next := send(t, f, "phone", 1)
	g = bound(t, f, "phone")
	p := must(f.Window(t.Context(), "phone", g, ids[49], 10))(t)
	wantIDs(t, "the next one is found", p, next)
	equal(t, "complete", p.Complete, true)
}

func testClientListExpiry(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	ids := send(t, f, "phone", 3)
	must(f.Ack(t.Context(), "phone", g, ids[0]))(t)
	f.expire(t, f.opts.ClientTTL, f.keys.list("phone"))

	p := must(f.Window(t.Context(), "phone", g, ids[0], 10))(t)
	wantIDs(t, "expired", p, nil)
	equal(t, "floor", p.Floor, ids[2])
	equal(t, "complete", p.Complete, false)
	next := must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1")}))(t)
	equal(t, "prev", next.Prev, ids[2])
	p = must(f.Window(t.Context(), "phone", g, ids[0], 10))(t)
	wantIDs(t, "after the next append", p, []int64{next.ID})
	equal(t, "floor after the next append", p.Floor, ids[2])
	equal(t, "complete after the next append", p.Complete, false)
}

func testClientListTTL(t *testing.T, open opener) {
	f := open(t, Options{})
	g := bound(t, f, "phone")
	must(f.AppendClient(t.Context(), ClientPush{Client: "phone", Data: []byte("1"), TTL: 24 * time.Hour}))(t)
	send(t, f, "phone", 1) // a shorter TTL changes nothing
	f.expire(t, f.opts.RecordTTL)
	p := must(f.Window(t.Context(), "phone", g, 0, 10))(t)
	equal(t, "held by list and record", len(p.Messages), 2)
}
