package notes

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/note"
	"switchboard/internal/redispipe"
	"switchboard/internal/redistest"
)

var (
	single   *redistest.Server
	cluster  *redistest.Cluster
	prefixes atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m, &single, &cluster)) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clock is a clock that a test moves.
type clock struct{ at time.Time }

func newClock() *clock                { return &clock{time.Unix(1000, 0)} }
func (c *clock) now() time.Time       { return c.at }
func (c *clock) pass(d time.Duration) { c.at = c.at.Add(d) }

func channels(names ...string) (list []note.Name) {
	for _, name := range names {
		list = append(list, note.Name{Kind: note.Channel, Name: name})
	}
	return list
}

func texts(names []note.Name) string {
	var list []string
	for _, n := range names {
		list = append(list, string(n.Kind)+n.Name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// world is a server with a Journal over a store, and a Reader of another server.
type world struct {
	*testing.T
	client  redis.UniversalClient
	prefix  string
	journal *Journal
	pipe    *redispipe.Pipe
	reader  *Reader
	incr    *redispipe.BatchScript
	durable *redispipe.BatchScript
	listed  string
}

// newWorld returns a world whose server has listed its keys. options may change the Options of its
// Pipe.
func newWorld(t *testing.T, client redis.UniversalClient, options ...func(*redispipe.Options)) *world {
	w := &world{T: t, client: client, prefix: fmt.Sprintf("t%d:", prefixes.Add(1))}
	w.journal = NewJournal(client, w.prefix)
	o := redispipe.Options{Journal: w.journal, ReplicaTimeout: time.Millisecond}
	for _, change := range options {
		change(&o)
	}
	w.pipe = redispipe.New(client, o)
	w.reader = NewReader(NewRedis(client, redispipe.New(client, redispipe.Options{}), w.prefix))
	source := fmt.Sprintf("#!lua\n-- %s\nlocal n = {} for i, k in ipairs(KEYS) do n[i] = redis.call('INCR', k) end return n", w.prefix)
	script := redispipe.MustScript(fstest.MapFS{"lua/x.lua": {Data: []byte(source)}}, "x")
	w.incr = &redispipe.BatchScript{Script: script}
	w.durable = &redispipe.BatchScript{Script: script, Durable: true}
	w.beat()
	return w
}

// beat is a beat of the server.
func (w *world) beat() {
	w.Helper()
	w.listed = w.journal.Describe("server")
	ok(w.T, w.journal.Beat(w.Context(), w.listed))
}

// write writes each of the channels under its name, and returns the errors.
func (w *world) write(script *redispipe.BatchScript, names ...string) (errs []error) {
	targets := make([]redispipe.Target, len(names))
	for i, n := range channels(names...) {
		targets[i] = redispipe.Target{Script: script, Keys: []string{w.prefix + n.Name}, Note: n}
	}
	for _, a := range w.pipe.EvalEach(context.Background(), targets...) {
		errs = append(errs, a.Err)
	}
	return errs
}

// since reads the notes since settled.
func (w *world) since(settled uint64) (names string, position uint64, complete bool) {
	w.Helper()
	list, position, complete, err := w.reader.Since(w.Context(), "server", w.listed, settled)
	ok(w.T, err)
	return texts(list), position, complete
}

// wantSince checks since.
func (w *world) wantSince(settled uint64, want string, complete bool) {
	w.Helper()
	if names, position, got := w.since(settled); names != want || got != complete {
		w.Errorf("since %d: %q, position %d, complete %v; want %q, %v", settled, names, position, got, want, complete)
	}
}

// keys returns the stored keys of notes.
func (w *world) keys() (keys []string) {
	w.Helper()
	for k, err := range w.pipe.Keys(w.Context(), redispipe.EscapeGlob(w.prefix+"nt_")+"*") {
		ok(w.T, err)
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
