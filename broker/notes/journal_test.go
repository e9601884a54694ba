package notes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
)

// each runs a test on a server and on a Cluster.
func each(t *testing.T, test func(*testing.T, redis.UniversalClient)) {
	t.Run("server", func(t *testing.T) { test(t, single.Client(t)) })
	t.Run("cluster", func(t *testing.T) { test(t, cluster.Client(t)) })
}

// TestSince checks that a Reader finds what was written above a position, and that its position
// moves with what the notes say is settled.
func TestSince(t *testing.T) {
	each(t, func(t *testing.T, client redis.UniversalClient) {
		w := newWorld(t, client)
		w.wantSince(0, "", true)
		w.write(w.incr, "a", "b", "c", "d", "e", "f", "g", "h", "i", "j")
		settled := w.journal.Settled()
		w.wantSince(0, "ca cb cc cd ce cf cg ch ci cj", true)
		w.wantSince(settled, "", true)
		open := w.journal.Open()
		w.write(w.incr, "k")
		w.write(w.incr, "l")
		if got := w.journal.Settled(); got != settled {
			t.Errorf("%d is settled, want %d", got, settled)
		}
		w.wantSince(settled, "ck cl", true)
		w.wantSince(0, "ck cl", true) // the position has moved
		open.Close()
		w.write(w.incr, "m")
		w.wantSince(settled, "ck cl cm", true)
		w.wantSince(settled, "cm", true)
		w.reader.Forget("server")
		w.wantSince(settled, "ck cl cm", true)
		want := 1
		if _, ok := client.(*redis.ClusterClient); ok {
			want = 3
		}
		if keys := w.keys(); len(keys) != want {
			t.Errorf("keys %q", keys)
		}
		for _, k := range w.keys() {
			if d := client.PTTL(t.Context(), k).Val(); d <= 0 || d > ttl {
				t.Errorf("%s expires after %v", k, d)
			}
		}
	})
}

// monitor records the commands of pipelines.
type monitor struct{ pipelines []pipeline }

// pipeline is the commands of one pipeline, and their names when it was sent.
type pipeline struct {
	cmds  []redis.Cmder
	names []string
}

func (m *monitor) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (m *monitor) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (m *monitor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if name := cmds[0].Name(); name != "hello" && name != "client" {
			p := pipeline{cmds: slices.Clone(cmds)}
			for _, cmd := range cmds {
				p.names = append(p.names, cmd.Name())
			}
			m.pipelines = append(m.pipelines, p)
		}
		return next(ctx, cmds)
	}
}

// TestNoteComesFirst checks that each pipeline with writes begins with a note of all names, also if
// the source of the script is sent in a second one, and also for durable writes.
func TestNoteComesFirst(t *testing.T) {
	client := single.Client(t)
	w := newWorld(t, client)
	seen := &monitor{}
	client.AddHook(seen)
	noted := func(want string, scripts ...string) {
		t.Helper()
		var got []string
		for _, p := range seen.pipelines {
			e, err := Decode(string(p.cmds[0].Args()[3].([]byte)))
			if p.names[0] != "zadd" || err != nil || texts(e.Names) != want {
				t.Errorf("the pipeline %v begins with %v, %v", p.names, e, err)
			}
			got = append(got, p.names[1])
		}
		if !slices.Equal(got, scripts) {
			t.Errorf("pipelines with %q, want %q", got, scripts)
		}
		seen.pipelines = nil
	}
	w.write(w.incr, "a", "b")
	noted("ca cb", "evalsha", "eval")
	w.write(w.incr, "a", "b")
	noted("ca cb", "evalsha")
	w.write(w.durable, "c")
	noted("cc", "eval")
	if n := client.ZCard(t.Context(), w.keys()[0]).Val(); n != 3+1 {
		t.Errorf("%d entries, want 3 notes and the floor", n)
	}
	if _, err := w.pipe.EvalNoted(t.Context(), channels("d")[0], w.incr.Script, []string{w.prefix + "d"}); err != nil {
		t.Error(err)
	}
	noted("cd", "evalsha")
	if _, err := w.pipe.Eval(t.Context(), w.incr.Script, []string{w.prefix + "d"}); err != nil {
		t.Error(err)
	}
	if p := seen.pipelines[0]; len(p.names) != 1 {
		t.Errorf("%v without a name", p.names)
	}
}

// TestRefusedNote checks that the floor is removed before a caller gets the answer to a write whose
// note was refused, and that a beat begins again.
func TestRefusedNote(t *testing.T) {
	each(t, func(t *testing.T, client redis.UniversalClient) {
		w := newWorld(t, client)
		w.write(w.incr, "a")
		settled := w.journal.Settled()
		keys := w.keys()
		for _, k := range keys {
			ok(t, client.Rename(t.Context(), k, k+".away").Err())
			ok(t, client.Set(t.Context(), k, "", 0).Err()) // ZADD is refused
		}
		if err := w.write(w.incr, "b")[0]; err != nil {
			t.Error(err)
		}
		for _, k := range keys {
			ok(t, client.Rename(t.Context(), k+".away", k).Err())
		}
		w.write(w.incr, "b")
		w.wantSince(settled, "", false)
		w.beat()
		w.wantSince(settled, "", false) // below the floor
		settled = w.journal.Settled()
		w.write(w.incr, "c")
		w.wantSince(settled, "cc", true)
	})
}

// TestLostKey checks that a Reader does not take the notes for complete after Redis has lost a key.
func TestLostKey(t *testing.T) {
	w := newWorld(t, single.Client(t))
	settled := w.journal.Settled()
	w.write(w.incr, "a")
	key := w.keys()[0]
	ok(t, w.client.Del(t.Context(), key).Err())
	w.wantSince(settled, "", false)
	w.write(w.incr, "b")
	w.wantSince(settled, "cb", false)
	w.journal.renewed[key] = w.journal.renewed[key].Add(-renewal)
	w.beat()
	w.wantSince(settled, "cb", false)
	settled = w.journal.Settled()
	w.write(w.incr, "c")
	w.wantSince(settled, "cc", true)
	if d := w.client.PTTL(t.Context(), key).Val(); d <= 0 {
		t.Errorf("the key expires after %v", d)
	}
}

// TestTrimInStore checks that a trim raises the floor before it removes notes.
func TestTrimInStore(t *testing.T) {
	w := newWorld(t, single.Client(t))
	c := newClock()
	w.journal.now = c.now
	w.write(w.incr, "a")
	middle := w.journal.Settled()
	c.pass(keep / 2)
	w.write(w.incr, "b")
	c.pass(keep)
	w.wantSince(0, "ca cb", true)
	w.reader.Forget("server")
	w.beat()
	w.wantSince(0, "cb", false)
	w.wantSince(middle, "cb", true)
}

// TestNewID checks that a process keeps its keys and numbers under a new id.
func TestNewID(t *testing.T) {
	w := newWorld(t, single.Client(t))
	if text := w.journal.Describe("other"); text != w.listed || text != "0:server" {
		t.Errorf("%q, then %q", w.listed, text)
	}
}

// TestManyNames checks the bound in the store.
func TestManyNames(t *testing.T) {
	w := newWorld(t, single.Client(t))
	names := make([]string, 500)
	for i := range names {
		names[i] = fmt.Sprintf("%0100d", i)
	}
	for range 150 {
		w.write(w.incr, names...)
	}
	kept := 0
	for _, text := range w.client.ZRange(t.Context(), w.keys()[0], 0, -1).Val() {
		if text != floorMember {
			e, err := Decode(text)
			ok(t, err)
			kept += len(e.Names)
		}
	}
	if kept > maxNames || kept < maxNames/2 {
		t.Errorf("%d names are kept", kept)
	}
	w.wantSince(0, strings.Join(sorted(names), " "), false)
}

func sorted(names []string) (list []string) {
	for _, name := range names {
		list = append(list, "c"+name)
	}
	slices.Sort(list)
	return list
}

// TestUnreachable checks that a Reader returns an error if Redis does not answer, and keeps its
// position.
func TestUnreachable(t *testing.T) {
	w := newWorld(t, single.Client(t))
	w.write(w.incr, "a")
	dead := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	t.Cleanup(func() { _ = dead.Close() })
	r := NewReader(NewRedis(dead, redispipe.New(dead, redispipe.Options{}), w.prefix))
	if _, position, complete, err := r.Since(t.Context(), "server", w.listed, 7); err == nil || complete || position != 7 {
		t.Errorf("position %d, complete %v, %v", position, complete, err)
	}
}
