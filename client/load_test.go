package client

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/internal/wire"
)

// database is the application's data. Its answers wait until the test gives them.
type database struct {
	s     *scenario
	reads chan *read
}

// read is one call of load.
type read struct {
	db     *database
	ctx    context.Context
	answer chan func() (Loaded, error)
}

func (db *database) load(ctx context.Context) (Loaded, error) {
	r := &read{db: db, ctx: ctx, answer: make(chan func() (Loaded, error))}
	db.reads <- r
	return (<-r.answer)()
}

// give ends the read with rows and their position; -1 is none.
func (r *read) give(rows string, after int64) {
	loaded := Loaded{Apply: func() { r.db.s.record("%s", rows) }}
	if after != -1 {
		loaded.After = &after
	}
	r.answer <- func() (Loaded, error) { return loaded, nil }
	synctest.Wait()
}

func (r *read) fail(err error) {
	r.answer <- func() (Loaded, error) { return Loaded{}, err }
	synctest.Wait()
}

// wantNoRead fails the test if load was called again.
func (db *database) wantNoRead() {
	db.s.Helper()
	synctest.Wait()
	if len(db.reads) > 0 {
		db.s.Fatal("load was called")
	}
}

// startLoad subscribes to news with load, at position id.
func (s *scenario) startLoad(p *peer, id int64) *database {
	s.Helper()
	db := &database{s: s, reads: make(chan *read, 16)}
	s.goSubscribe(db)
	req := p.expect(wire.TypeSubscribe)
	db.wantNoRead() // what is published before the subscription must be in the data
	if req.After != nil {
		s.Fatalf("subscribed after %d, want no position", *req.After)
	}
	p.answer(req, `{"type":"subscribed","channel":"news","id":%d}`, id)
	return db
}

func (s *scenario) goSubscribe(db *database) {
	go func() {
		if _, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{Load: db.load}); err != nil {
			s.record("subscribe: %v", err)
		}
	}()
}

func (p *peer) message(id int) {
	p.sendf(`{"type":"message","channel":"news","id":%d,"data":1}`, id)
}

// resume answers the subscribe of a connection, which must be after a position.
func (p *peer) resume(after int64, members string) {
	p.t.Helper()
	req := p.expect(wire.TypeSubscribe)
	if req.After == nil || *req.After != after {
		p.t.Fatalf("subscribed with %+v, want after %d", req, after)
	}
	p.answer(req, `{"type":"subscribed","channel":"news",%s}`, members)
}

func recordLoadErrors(s *scenario, o *Options) {
	o.OnLoadError = func(channel string, err error) { s.record("%s: %v", channel, err) }
}

func TestLoadHoldsMessagesBack(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		for id := 11; id <= 13; id++ {
			p.message(id)
		}
		p.sendf(`{"type":"message","channel":"$all","id":1,"data":1}`)
		s.wantCallbacks("[$all:1]") // other channels do not wait
		(<-db.reads).give("rows", 12)
		p.message(14)
		s.wantCallbacks("[rows news:13 news:14]")
	})
}

func TestLoadAheadOfTheMessages(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", 12)
		for id := 11; id <= 13; id++ {
			p.message(id)
		}
		s.wantCallbacks("[rows news:13]")
	})
}

func TestLoadWithoutAPosition(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		p.message(11)
		(<-db.reads).give("rows", -1)
		s.wantCallbacks("[rows news:11]")
	})
}

func TestLoadFromBeforeTheSubscription(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		p.message(11)
		(<-db.reads).give("rows", 7)
		p.message(12) // of the subscription that ends
		p.expect(wire.TypeUnsubscribe)
		p.resume(7, `"id":12,"recovered":true`)
		for id := 8; id <= 12; id++ {
			p.message(id)
		}
		s.wantCallbacks("[rows news:8 news:9 news:10 news:11 news:12]")
		db.wantNoRead()
	})
}

// TestLoadAfterAGap checks that a reconnect loads only if messages are gone.
func TestLoadAfterAGap(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", 10)
		p.drop()
		p, _ = s.accept()
		p.resume(10, `"id":12,"recovered":true`)
		p.message(11)
		p.message(12)
		s.wantCallbacks("[rows news:11 news:12]")
		p.drop()
		p, _ = s.accept()
		p.resume(12, `"id":20,"recovered":false`)
		p.message(21)
		p.message(22)
		(<-db.reads).give("new rows", 21)
		s.wantCallbacks("[gap news:12-20 new rows news:22]")
		db.wantNoRead()
	})
}

// TestGapDuringLoad checks that a gap ends a running Load, and that the next one waits until it has
// returned.
func TestGapDuringLoad(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		p.message(11)
		p.sendf(`{"type":"gap","channel":"news","after":11,"id":20}`)
		p.message(21)
		<-first.ctx.Done()
		db.wantNoRead() // never twice at once
		first.give("old rows", 10)
		(<-db.reads).give("rows", 20)
		s.wantCallbacks("[gap news:11-20 rows news:21]")
	})
}

// TestLateGapDuringLoad checks that a gap before the subscription does not move its begin.
func TestLateGapDuringLoad(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		p.sendf(`{"type":"gap","channel":"news","after":3,"id":8}`)
		<-first.ctx.Done()
		first.fail(context.Canceled)
		(<-db.reads).give("rows", 9)
		p.expect(wire.TypeUnsubscribe)
		p.resume(9, `"id":10,"recovered":true`)
		p.message(10)
		s.wantCallbacks("[gap news:3-8 rows news:10]")
	})
}

// TestResetDuringLoad checks that messages with ids from before a reset are dropped.
func TestResetDuringLoad(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		p.message(11)
		p.sendf(`{"type":"gap","channel":"news","after":11,"id":3}`)
		p.message(4)
		<-first.ctx.Done()
		first.fail(context.Canceled)
		(<-db.reads).give("rows", 3)
		s.wantCallbacks("[gap news:11-3 rows news:4]")
	})
}

// TestLoadAfterALaterMessage checks that a message above the gap, which was shown before the data,
// is shown again after data that does not have it.
func TestLoadAfterALaterMessage(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", 10)
		p.message(25)
		p.sendf(`{"type":"gap","channel":"news","after":10,"id":20}`)
		s.wantCallbacks("[rows news:25 gap news:10-20]")
		(<-db.reads).give("new rows", 22)
		p.expect(wire.TypeUnsubscribe)
		p.resume(22, `"id":25,"recovered":true`)
		p.message(25)
		s.wantCallbacks("[new rows news:25]")
	})
}

func TestLoadFromBeforeTheGapIsRepeated(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", 10)
		p.sendf(`{"type":"gap","channel":"news","after":10,"id":20}`)
		p.message(21)
		(<-db.reads).give("a replica that is late", 15)
		s.wantCallbacks("[rows gap news:10-20 news: load: the position 15 is before the oldest message, 20]")
		p.expect(wire.TypeUnsubscribe)
		req := p.expect(wire.TypeSubscribe)
		if req.After != nil {
			s.Fatalf("subscribed after %d, want no position", *req.After)
		}
		p.answer(req, `{"type":"subscribed","channel":"news","id":30}`)
		(<-db.reads).give("new rows", 30)
		p.message(31)
		s.wantCallbacks("[new rows news:31]")
	})
}

func TestLoadFromTheBeginning(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", 0)
		p.expect(wire.TypeUnsubscribe)
		p.resume(0, `"id":5,"recovered":false`)
		p.message(6)
		(<-db.reads).give("rows again", 0)
		s.wantCallbacks("[rows gap news:0-5 rows again news:6]")
	})
}

// TestLoadThatFails checks that the subscription ends while Load waits for its next try.
func TestLoadThatFails(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		var longest time.Duration
		for range 40 {
			p.message(11)
			(<-db.reads).fail(errors.New("down"))
			s.wantCallbacks("[news: down]")
			p.expect(wire.TypeUnsubscribe)
			failed := time.Now()
			req := p.expect(wire.TypeSubscribe)
			longest = max(longest, time.Since(failed))
			p.answer(req, `{"type":"subscribed","channel":"news","id":20}`)
		}
		if longest < 5*time.Second || longest > 20*time.Second {
			s.Errorf("the longest delay is %s", longest)
		}
		p.message(21)
		(<-db.reads).give("rows", 20)
		s.wantCallbacks("[rows news:21]")
	})
}

func TestLoadReturnsAWrongPosition(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).give("rows", math.MinInt64)
		s.wantCallbacks(fmt.Sprintf("[news: after: %d is no position]", math.MinInt64))
	})
}

// TestFailedLoadAndReconnect checks that the subscribe of a reconnect replaces the one that waits.
func TestFailedLoadAndReconnect(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		(<-db.reads).fail(errors.New("down"))
		s.wantCallbacks("[news: down]")
		p.expect(wire.TypeUnsubscribe)
		p.drop()
		p, _ = s.accept()
		req := p.expect(wire.TypeSubscribe)
		p.answer(req, `{"type":"subscribed","channel":"news","id":30}`)
		(<-db.reads).give("rows", 30)
		pause(s.Context(), 30*time.Second)
		p.expectNothing()
		s.wantCallbacks("[rows]")
	})
}

func TestLostConnectionDuringLoad(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		p.message(11)
		synctest.Wait()
		p.drop()
		p, _ = s.accept()
		p.resume(11, `"id":12,"recovered":true`)
		p.message(12)
		(<-db.reads).give("rows", 10)
		s.wantCallbacks("[rows news:11 news:12]")
		db.wantNoRead()
	})
}

func TestUnsubscribeDuringLoad(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		p.message(11)
		synctest.Wait()
		ended := make(chan error, 1)
		go func() { ended <- s.client.Unsubscribe(s.Context(), "news") }()
		p.answer(p.expect(wire.TypeUnsubscribe), `{"type":"unsubscribed","channel":"news"}`)
		if err := <-ended; err != nil {
			s.Fatal(err)
		}
		<-first.ctx.Done()
		s.goSubscribe(db)
		req := p.expect(wire.TypeSubscribe)
		p.answer(req, `{"type":"subscribed","channel":"news","id":30}`)
		p.message(31)
		db.wantNoRead()
		first.give("of the first subscription", 20)
		(<-db.reads).give("rows", 30)
		s.wantCallbacks("[rows news:31]")
	})
}

// TestStopDuringLoad checks that Run ends the context of Load, and waits until it has returned.
func TestStopDuringLoad(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		s.end()
		<-first.ctx.Done()
		synctest.Wait()
		if len(s.result) > 0 {
			s.Fatal("Run has returned before Load")
		}
		first.fail(context.Canceled)
		if err := <-s.result; err != nil {
			s.Fatal(err)
		}
		s.wantCallbacks("[]")
	})
}

func TestContextOfLoadEnds(t *testing.T) {
	forEachTransport(t, recordLoadErrors, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		first := <-db.reads
		began := time.Now()
		<-first.ctx.Done()
		if waited := time.Since(began); waited != loadTimeout {
			s.Errorf("the context ended after %s", waited)
		}
		first.give("rows", 10) // the result counts
		s.wantCallbacks("[rows]")
	})
}

// TestManyMessagesDuringLoad checks that the subscription ends if too much waits, also over a
// reconnect, and continues after the data.
func TestManyMessagesDuringLoad(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		db := s.startLoad(p, 10)
		data := strings.Repeat("x", 1<<15)
		send := func(from, to int) {
			for id := from; id <= to; id++ {
				p.sendf(`{"type":"message","channel":"news","id":%d,"data":%q}`, id, data)
			}
		}
		send(11, 60)
		p.expect(wire.TypeUnsubscribe)
		p.sendf(`{"type":"message","channel":"$all","id":1,"data":1}`)
		s.wantCallbacks("[$all:1]")
		if held := s.heldBytes(); held != 0 {
			s.Errorf("%d bytes wait", held)
		}
		p.drop()
		p, _ = s.accept()
		p.expectNothing()
		(<-db.reads).give("rows", 58)
		p.resume(58, `"id":60,"recovered":true`)
		send(59, 61)
		s.wantCallbacks("[rows news:59 news:60 news:61]")
	})
}

func (s *scenario) heldBytes() int {
	s.client.mu.Lock()
	defer s.client.mu.Unlock()
	if run := s.client.subs["news"].loader.run; run != nil {
		return run.bytes
	}
	return -1
}

// TestLoadIsAddedAndRemoved checks what Subscribe does with an existing subscription.
func TestLoadIsAddedAndRemoved(t *testing.T) {
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		s.subscribe(p, 10)
		p.message(11)
		db := &database{s: s, reads: make(chan *read, 16)}
		s.wantCallbacks("[news:11]")
		s.goSubscribe(db)
		p.resume(11, `"id":11`)
		p.message(12)
		first := <-db.reads
		s.goSubscribe(db) // subscribed already
		db.wantNoRead()
		p.expectNothing()
		s.wantCallbacks("[]")
		s.subscribeAgain(p)
		<-first.ctx.Done()
		first.give("rows", 11)
		p.message(13)
		s.wantCallbacks("[news:12 news:13]")
	})
}

// subscribeAgain subscribes to news without options.
func (s *scenario) subscribeAgain(p *peer) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{}); err != nil {
			s.record("subscribe: %v", err)
		}
	}()
	p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news"}`)
	<-done
}

func TestLoadRefusesAPosition(t *testing.T) {
	load := func(context.Context) (Loaded, error) { return Loaded{}, nil }
	forEachTransport(t, nil, func(s *scenario) {
		p, _ := s.accept()
		_, err := s.client.Subscribe(s.Context(), "news", SubscribeOptions{After: new(int64(7)), Load: load})
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Code != BadRequest {
			s.Errorf("got %v", err)
		}
		p.expectNothing()
	})
}

// TestLoadWithFields checks that messages that the data has still change the fields.
func TestLoadWithFields(t *testing.T) {
	var mu sync.Mutex
	fields := map[int64]bool{}
	change := func(s *scenario, o *Options) {
		o.OnMessage = func(m Message) {
			mu.Lock()
			defer mu.Unlock()
			fields[m.ID] = m.Changes != nil
			s.record("%d %s", m.ID, m.Data)
		}
		o.OnFields = func(snapshot Snapshot) { s.record("fields %d", snapshot.ID) }
	}
	forEachTransport(t, change, func(s *scenario) {
		p, _ := s.accept()
		db := &database{s: s, reads: make(chan *read, 16)}
		go func() {
			_, _ = s.client.Subscribe(s.Context(), "news", SubscribeOptions{State: true, Load: db.load})
		}()
		p.answer(p.expect(wire.TypeSubscribe), `{"type":"subscribed","channel":"news","id":10}`)
		p.send(`{"type":"state","channel":"news","id":10,"first":true,"fields":{}}`)
		for id := 11; id <= 12; id++ {
			p.sendf(`{"type":"message","channel":"news","id":%d,"data":1,"set":{"n":%d}}`, id, id)
		}
		s.wantCallbacks("[]")
		(<-db.reads).give("rows", 11)
		s.wantCallbacks("[rows fields 10 11  12 1]")
		if got, _ := s.client.Field("news", "n"); string(got.Value) != "12" {
			s.Errorf("the field is %s", got.Value)
		}
		mu.Lock()
		defer mu.Unlock()
		if !fields[11] || !fields[12] {
			s.Errorf("changes: %v", fields)
		}
	})
}
