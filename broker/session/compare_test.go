package session_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// comparedQueue counts the reads of clients' queues, and records the comparisons and can fail them.
type comparedQueue struct {
	Queue
	mu                      sync.Mutex
	reads                   []string // the clients
	compared                []queue.ClientKnown
	fail                    error // of the comparisons of the client phone
	afterBind               func()
	afterWindow             func() // runs once
	beforeHeads, afterHeads func() // run once
}

func (q *comparedQueue) Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error) {
	q.mu.Lock()
	q.reads = append(q.reads, client)
	then := q.afterWindow
	q.afterWindow = nil
	q.mu.Unlock()
	page, err := q.Queue.Window(ctx, client, generation, after, limit)
	if then != nil {
		then()
	}
	return page, err
}

func (q *comparedQueue) ClientHeads(ctx context.Context, known []queue.ClientKnown) []queue.Outcome[queue.ClientHead] {
	q.mu.Lock()
	q.compared = append(q.compared, known...)
	fail, first, then := q.fail, q.beforeHeads, q.afterHeads
	q.beforeHeads, q.afterHeads = nil, nil
	q.mu.Unlock()
	if first != nil {
		first()
	}
	if then != nil {
		defer then()
	}
	out := q.Queue.ClientHeads(ctx, known)
	if i := slices.IndexFunc(known, func(k queue.ClientKnown) bool { return k.Client == "phone" }); i >= 0 && fail != nil {
		out[i].Err = fail
	}
	return out
}

// BindClients calls afterBind after the store has bound the clients.
func (q *comparedQueue) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	defer q.afterBind()
	return q.Queue.BindClients(ctx, claims)
}

// take returns the clients whose queues were read, and what was compared, since the last call.
func (q *comparedQueue) take() (reads []string, compared []queue.ClientKnown) {
	q.mu.Lock()
	defer q.mu.Unlock()
	reads, compared = q.reads, q.compared
	q.reads, q.compared = nil, nil
	return reads, compared
}

// comparing is a harness with a comparedQueue.
type comparing struct {
	*harness
	q *comparedQueue
}

func newComparing(t *testing.T) comparing {
	q := &comparedQueue{afterBind: func() {}}
	h := newHarnessOn(t, session.Options{}, func(inner Queue) Queue { q.Queue = inner; return q })
	q.take()
	return comparing{h, q}
}

// push stores a message for the client phone, without a hint.
func (h comparing) push() queue.ClientAppended {
	h.t.Helper()
	a, err := h.queue.AppendClient(context.Background(), queue.ClientPush{Client: "phone", Data: []byte("1")})
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// compare compares everything, and checks how many queues that reads.
func (h comparing) compare(what string, reads int) {
	h.t.Helper()
	if err := h.Compare(h.t.Context(), 0); err != nil {
		h.t.Fatal(err)
	}
	h.settle()
	if got, _ := h.q.take(); len(got) != reads {
		h.t.Errorf("%s: the queues of %q were read, want %d", what, got, reads)
	}
}

// wantMessages checks the ids of the messages received since the last call.
func (h comparing) wantMessages(what string, want ...int64) {
	h.t.Helper()
	var ids []int64
	for _, e := range h.received() {
		if e.Type == wire.TypeMessage {
			ids = append(ids, *e.ID)
		}
	}
	if !slices.Equal(ids, want) {
		h.t.Errorf("%s: received %v, want %v", what, ids, want)
	}
}

// TestCompareQueues checks that only queues are read that differ from what their sessions have
// sent.
func TestCompareQueues(t *testing.T) {
	h := newComparing(t)
	h.connectDevice("tablet")
	h.q.take()
	h.compare("without messages", 0)
	silent := h.push()
	h.compare("a lost hint", 1)
	h.wantMessages("a lost hint", silent.ID)
	h.compare("a message that is not acknowledged", 0)
	h.send(`{"type":"ack","id":%d}`, silent.ID)
	h.compare("an acknowledged message", 0)
	a := h.push()
	h.Hint("phone", a.ID, a.Prev, []byte("1"))
	h.settle()
	h.compare("without a lost hint", 0)
	h.wantMessages("without a lost hint", a.ID)
}

// TestCompareExpectsEmptyLists checks which lists are expected to be empty, since that saves a
// command.
func TestCompareExpectsEmptyLists(t *testing.T) {
	h := newComparing(t)
	for _, want := range []bool{true, false} {
		if err := h.Compare(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		h.settle()
		if _, compared := h.q.take(); len(compared) != 1 || compared[0].Client != "phone" || compared[0].Empty != want {
			t.Errorf("compared %+v, want phone with an empty list: %v", compared, want)
		}
		a := h.push()
		h.Hint("phone", a.ID, a.Prev, []byte("1"))
		h.settle()
	}
}

// TestCompareWithdrawn checks that a message which was withdrawn before it was sent causes one
// read, and not one in each comparison.
func TestCompareWithdrawn(t *testing.T) {
	h := newComparing(t)
	claims := []queue.Claim{{Client: "amy/a", User: "amy", Server: "me"}, {Client: "amy/b", User: "amy", Server: "me"}}
	other := h.queue.BindClients(t.Context(), claims)[1].Value.Generation
	d := &device{h: h.harness, client: "amy/a", sock: newSocket()}
	h.onLoop(func() {
		d.receiver = h.Accept(h.loop, d.sock, []wire.Request{{Type: wire.TypeConnect, Client: "a", User: "amy"}})
	})
	h.settle()
	h.q.take()
	var last int64
	for _, client := range []string{"amy/a", "amy/b"} {
		a, err := h.queue.AppendClient(t.Context(), queue.ClientPush{Client: client, User: "amy", Data: []byte("1"), AckGroup: "g"})
		if err != nil {
			t.Fatal(err)
		}
		last = a.ID
	}
	if _, err := h.queue.Ack(t.Context(), "amy/b", other, last); err != nil {
		t.Fatal(err)
	}
	h.compare("after the withdrawal", 1)
	h.compare("once more", 0)
}

// TestCompareFindsSuperseded checks that a session whose client is bound elsewhere is closed, also
// if the hint was lost.
func TestCompareFindsSuperseded(t *testing.T) {
	h := newComparing(t)
	d := h.connectDevice("tablet")
	secret := queue.HashSecret("the secret of tablet")
	if err := h.queue.BindClients(t.Context(), []queue.Claim{{Client: "tablet", Server: "other", Secret: secret}})[0].Err; err != nil {
		t.Fatal(err)
	}
	h.compare("bound elsewhere", 1)
	h.onLoop(func() {
		if d.sock.closed != wire.CloseSuperseded {
			t.Errorf("the session that lost its client is closed as %q", d.sock.closed)
		}
	})
}

// TestCompareQueueAfterFailover checks that a store that is behind is asked for what it has lost.
func TestCompareQueueAfterFailover(t *testing.T) {
	var lost []int64
	q := &comparedQueue{afterBind: func() {}}
	o := session.Options{Notify: session.Notify{Lost: func(_ string, id int64) { lost = append(lost, id) }}}
	h := comparing{newHarnessOn(t, o, func(inner Queue) Queue { q.Queue = inner; return q }), q}
	h.Hint("phone", 7, 0, []byte("1")) // the store does not have it
	h.settle()
	h.q.take()
	h.compare("the store is behind", 1)
	h.onLoop(func() {
		if !slices.Equal(lost, []int64{7}) {
			t.Errorf("lost %v, want message 7", lost)
		}
	})
}

// TestCompareQueueRaces checks a comparison at the same time as a hint, a read, or a connect.
func TestCompareQueueRaces(t *testing.T) {
	h := newComparing(t)
	var sent []int64
	another := func() {
		a := h.push()
		h.Hint("phone", a.ID, a.Prev, []byte("1"))
		h.onLoop(func() {})
		sent = append(sent, a.ID)
	}
	h.q.beforeHeads, h.q.afterHeads = another, another
	h.compare("hints during the comparison", 0)
	h.wantMessages("hints during the comparison", sent...)

	var silent queue.ClientAppended
	h.q.afterWindow = func() { // this read does not see the message, whose hint is lost
		silent = h.push()
		if err := h.Compare(context.Background(), 0); err != nil {
			t.Error(err)
		}
	}
	missed := h.push()
	next := h.push()
	h.Hint("phone", next.ID, next.Prev, []byte("1")) // it shows that another one is missing
	h.settle()
	h.wantMessages("compared during a read", missed.ID, next.ID, silent.ID)

	h.q.afterBind = func() { // the bind has counted the messages
		h.q.afterBind = func() {}
		a, err := h.queue.AppendClient(context.Background(), queue.ClientPush{Client: "tablet", Data: []byte("1")})
		if err = errors.Join(err, h.Compare(context.Background(), 0)); err != nil {
			t.Error(err)
		}
		silent = a
	}
	d := &device{h: h.harness, client: "tablet", sock: newSocket()}
	h.onLoop(func() {
		d.receiver = h.Accept(h.loop, d.sock, []wire.Request{{Type: wire.TypeConnect, Client: "tablet"}})
	})
	h.settle()
	if got := d.received(); types(got) != "connected message" || *got[1].ID != silent.ID {
		t.Errorf("compared during a connect: received %+v, want message %d", got, silent.ID)
	}
}

// TestFailedComparisonsAreRepeated checks that only what failed is compared again, with growing
// pauses.
func TestFailedComparisonsAreRepeated(t *testing.T) {
	h := newComparing(t)
	h.connectDevice("tablet")
	errUnavailable := errors.New("unavailable")
	for range 2 {
		h.q.fail = errUnavailable
		if err := h.Compare(t.Context(), 0); !errors.Is(err, errUnavailable) {
			t.Errorf("the comparison returned %v", err)
		}
		h.q.take()
		h.tick(7)
		if _, compared := h.q.take(); len(compared) != 3 {
			t.Errorf("%d comparisons in 7 ticks, want 3, after 1, 3 and 7", len(compared))
		}
		h.q.mu.Lock()
		h.q.fail = nil
		h.q.mu.Unlock()
		silent := h.push()
		h.tick(4)
		h.wantMessages("after the failures", silent.ID)
		if _, compared := h.q.take(); len(compared) != 1 || compared[0].Client != "phone" {
			t.Errorf("compared %+v, want phone", compared)
		}
	}
}
