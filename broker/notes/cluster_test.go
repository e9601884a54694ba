package notes

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
	"switchboard/internal/slots"
)

// nameOn returns a name whose key is in a slot of a master of a new Cluster.
func (w *world) nameOn(c *redistest.Cluster, master *redistest.Server) string {
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		of, _, err := c.Of(w.Context(), w.prefix+name)
		ok(w.T, err)
		if of == master {
			return name
		}
	}
	w.Fatal("no name for a master")
	return ""
}

// noteOn reports whether a note of a channel is on a master.
func (w *world) noteOn(master *redistest.Server, name string) bool {
	w.Helper()
	node := master.Client(w.T)
	keys, err := node.Keys(w.Context(), w.prefix+"nt_*").Result()
	ok(w.T, err)
	for _, k := range keys {
		list, err := node.ZRange(w.Context(), k, 0, -1).Result()
		ok(w.T, err)
		for _, text := range list {
			if e, err := Decode(text); err == nil && text != floorMember && strings.Contains(texts(e.Names), "c"+name) {
				return true
			}
		}
	}
	return false
}

// TestMovedSlot checks that a write that is redirected to another master is noted there, too.
func TestMovedSlot(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	w := newWorld(t, own.Client(t))
	name := w.nameOn(own, own.Masters[0])
	key := w.prefix + name
	if errs := w.write(w.incr, name); errs[0] != nil {
		t.Fatal(errs)
	}
	settled := w.journal.Settled()
	if w.noteOn(own.Masters[1], name) {
		t.Error("the note is on the wrong master")
	}
	ok(t, own.MoveSlot(t.Context(), key, own.Masters[0], own.Masters[1], func() {
		if errs := w.write(w.incr, name); errs[0] != nil { // ASK
			t.Error(errs)
		}
	}))
	if !w.noteOn(own.Masters[1], name) {
		t.Error("the note of a redirected write is not on its master")
	}
	w.wantSince(settled, "c"+name, true)
	settled = w.journal.Settled()
	if errs := w.write(w.durable, name); errs[0] == nil { // MOVED; no replica confirms it
		t.Error("a write is durable without a replica")
	}
	w.wantSince(settled, "c"+name, true)
	if n, err := own.Masters[1].Client(t).Get(t.Context(), key).Int(); n != 3 || err != nil {
		t.Errorf("%d writes, %v; want 3", n, err)
	}
}

// TestMovedTag checks that the notes do not count as complete after the slot of a key has moved
// away from a master, and that they do after the next beat has listed another one.
func TestMovedTag(t *testing.T) {
	own := redistest.StartCluster(t, 2)
	w := newWorld(t, own.Client(t))
	tag := key("", w.journal.tags[0], "")
	from, _, err := own.Of(t.Context(), tag)
	ok(t, err)
	to := own.Masters[0]
	if from == to {
		to = own.Masters[1]
	}
	settled := w.journal.Settled()
	ok(t, own.MoveSlot(t.Context(), tag, from, to, func() {}))
	w.wantSince(settled, "", false)
	name := w.nameOn(own, from)
	if errs := w.write(w.incr, name); errs[0] != nil {
		t.Error(errs)
	}
	w.wantSince(settled, "", false) // a refused note
	w.client.(*redis.ClusterClient).ReloadState(context.Background())
	for covers := false; !covers; {
		w.beat()
		_, _, covers = w.since(w.journal.Settled())
	}
	settled = w.journal.Settled()
	if errs := w.write(w.incr, name); errs[0] != nil {
		t.Error(errs)
	}
	w.wantSince(settled, "c"+name, true)
	if !w.noteOn(from, name) {
		t.Error("the note is not on the master of the write")
	}
}

// TestFailover checks that the notes go on under the same key when a replica takes over, and that
// those which it has are complete.
func TestFailover(t *testing.T) {
	own := redistest.StartReplicatedCluster(t, 3)
	w := newWorld(t, own.Client(t))
	name := w.nameOn(own, own.Masters[1])
	if errs := w.write(w.durable, name); errs[0] != nil && !strings.Contains(errs[0].Error(), "replica") {
		t.Fatal(errs)
	}
	if n := own.Masters[1].Client(t).Do(t.Context(), "wait", 1, 10000); n.Err() != nil {
		t.Fatal(n)
	}
	own.Masters[1].Kill()
	for w.write(w.incr, name)[0] != nil { // until the replica has taken over
	}
	w.wantSince(0, "c"+name, true)
	if !w.noteOn(own.Replicas[1], name) || len(w.journal.tags) != 3 {
		t.Errorf("the note is not on the new master; tags %v", w.journal.tags)
	}
}

func TestTags(t *testing.T) {
	one, two := shard{master: "1"}, shard{master: "2"}
	one.slots.Add(0, slots.Count/2)
	two.slots.Add(slots.Count/2+1, slots.Count)
	first, second := 0, 0 // a number on each master
	for one.slots.HasName(strconv.Itoa(second)) {
		second++
	}
	for two.slots.HasName(strconv.Itoa(first)) {
		first++
	}
	both, tags := []shard{one, two}, []int{first, second}
	if covered(both, tags[:1]) || covered(both, tags[1:]) || covered(both, nil) || !covered(both, tags) {
		t.Errorf("%v cover %v", tags, both)
	}
	if !two.slots.HasKey(key("p:", second, "server{x}")) {
		t.Errorf("the key of %d is in another slot", second)
	}
	if got, server, ok := parse(describe(tags, "a:b")); !ok || server != "a:b" || len(got) != 2 {
		t.Errorf("%v, %q, %v", got, server, ok)
	}
}
