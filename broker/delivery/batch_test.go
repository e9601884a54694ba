package delivery

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/queue"
)

// errBad is the error of a push with the data "bad".
var errBad = errors.New("bad")

// checkResult checks the error of a push to a channel, and that the push has an id unless the error
// is errBad.
func checkResult(t *testing.T, push Push, want error) {
	t.Helper()
	stored, wantStored := push.Channel.ID != 0, want != errBad
	if !errors.Is(push.Err, want) || stored != wantStored {
		t.Errorf("push of %s to %s: id %d, %v; want %v", push.Data, push.Name, push.Channel.ID, push.Err, want)
	}
}

// recordingQueue stores every push except "bad" and records the waves. No replica confirms a
// durable push.
type recordingQueue struct {
	Queue
	t     *testing.T
	last  int64
	waves []string
}

func (q *recordingQueue) outcome(data []byte, durable bool) (id int64, err error) {
	q.last++
	if string(data) == "bad" {
		return 0, errBad
	}
	if durable {
		err = fmt.Errorf("append: %w", queue.ErrNotReplicated)
	}
	return q.last, err
}

func (q *recordingQueue) AppendChannels(_ context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	out := make([]queue.Outcome[queue.Appended], len(pushes))
	for i, p := range pushes {
		out[i].Value.ID, out[i].Err = q.outcome(p.Data, p.Durable)
		q.waves = append(q.waves, fmt.Sprintf("%d %s %s %v", len(pushes), p.Channel, p.Data, p.Durable))
	}
	return out
}

func (q *recordingQueue) AppendClients(context.Context, []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	q.t.Error("unexpected push to a client")
	return nil
}

func (q *recordingQueue) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	o := q.AppendChannels(ctx, []queue.ChannelPush{push})[0]
	return o.Value, o.Err
}

// TestPushBatch checks the waves of a batch. A push that fails does not delay the others. After a
// durable push that was not confirmed, later pushes to its target do not wait for a replica.
func TestPushBatch(t *testing.T) {
	q := &recordingQueue{t: t}
	p := New(Options{
		Queue: q, Self: func() string { return "me" }, Live: func(string) bool { return true },
		Local: func(peer.Hint, state.Message) {}, Remote: func(string, peer.Hint) {},
		Stored: func(string, time.Duration) {}, Epoch: func(string) uint64 { return 1 }, Lost: func() {},
	})
	push := func(name, data string, durable bool) Push {
		return Push{Kind: Channel, Name: name, Payload: Payload{Data: []byte(data), Durable: durable}}
	}
	pushes := []Push{
		push("a", "1", true), push("a", "2", true), push("b", "bad", true), push("a", "3", false), push("b", "2", true), push("c", "1", false),
	}
	p.PushBatch(t.Context(), pushes)
	want := []string{
		"3 a 1 true", "3 b bad true", "3 c 1 false", // "bad" was refused, so "b 2" still waits for a replica
		"2 a 2 false", "2 b 2 true",
		"1 a 3 false",
	}
	if !slices.Equal(q.waves, want) {
		t.Errorf("stored %q, want %q", q.waves, want)
	}
	unconfirmed := queue.ErrNotReplicated
	for i, want := range []error{unconfirmed, unconfirmed, errBad, nil, unconfirmed, nil} {
		checkResult(t, pushes[i], want)
	}
}

// TestWaves checks that the pushes to one target are in consecutive waves, in order, and that a
// wave has each target at most once.
func TestWaves(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 200 {
		pushes := make([]Push, n)
		for i := range pushes {
			pushes[i] = Push{Kind: Kind(random.IntN(3)), Name: fmt.Sprint(random.IntN(1 + n/4)), Payload: Payload{Data: fmt.Append(nil, i)}}
		}
		type target struct {
			kind Kind
			name string
		}
		pushesTo := map[target]int{}
		want := make([][]string, n)
		for _, p := range pushes {
			at := target{p.Kind, p.Name}
			wave := pushesTo[at]
			want[wave] = append(want[wave], string(p.Data))
			pushesTo[at]++
		}
		want = slices.DeleteFunc(want, func(wave []string) bool { return wave == nil })
		var got [][]string
		chains := map[*chain]target{}
		for _, wave := range waves(pushes) {
			var list []string
			for _, p := range wave {
				list = append(list, string(p.Data))
				at := target{p.Kind, p.Name}
				if other, known := chains[p.chain]; known && other != at {
					t.Fatalf("%v and %v are one chain", at, other)
				}
				chains[p.chain] = at
			}
			got = append(got, list)
		}
		if !reflect.DeepEqual(got, want) && n > 0 || len(chains) != len(pushesTo) {
			t.Fatalf("got %v in %d chains, want %v in %d", got, len(chains), want, len(pushesTo))
		}
	}
}

// TestSinglePush checks that a single push has the same result as in a batch.
func TestSinglePush(t *testing.T) {
	q := &recordingQueue{t: t}
	p := New(Options{
		Queue: q, Self: func() string { return "me" }, Live: func(string) bool { return true },
		Local: func(peer.Hint, state.Message) {}, Remote: func(string, peer.Hint) {},
		Stored: func(string, time.Duration) {}, Epoch: func(string) uint64 { return 1 }, Lost: func() {},
	})
	for _, c := range []struct {
		data    string
		durable bool
		want    error
	}{{"1", false, nil}, {"bad", false, errBad}, {"2", true, queue.ErrNotReplicated}} {
		push := Push{Kind: Channel, Name: "a", Payload: Payload{Data: []byte(c.data), Durable: c.durable}}
		single := []Push{push}
		batch := []Push{push, {Kind: Channel, Name: "b", Payload: Payload{Data: []byte("x")}}}
		p.PushBatch(t.Context(), single)
		p.PushBatch(t.Context(), batch)
		checkResult(t, single[0], c.want)
		checkResult(t, batch[0], c.want)
	}
}

// TestChunks checks that a large batch is stored in chunks, in order, and that a target whose push
// was not confirmed is still remembered in later chunks.
func TestChunks(t *testing.T) {
	q := &recordingQueue{t: t}
	p := New(Options{
		Queue: q, Self: func() string { return "me" }, Live: func(string) bool { return true },
		Local: func(peer.Hint, state.Message) {}, Remote: func(string, peer.Hint) {},
		Stored: func(string, time.Duration) {}, Epoch: func(string) uint64 { return 1 }, Lost: func() {},
	})
	const channels = 2*chunkSize + 5
	var pushes []Push
	var want []string
	for round := range 2 {
		for n := range channels {
			pushes = append(pushes, Push{Kind: Channel, Name: fmt.Sprint(n), Payload: Payload{Data: fmt.Append(nil, round), Durable: true}})
			size := min(chunkSize, channels-n/chunkSize*chunkSize)
			want = append(want, fmt.Sprintf("%d %d %d %v", size, n, round, round == 0))
		}
	}
	p.PushBatch(t.Context(), pushes)
	if !slices.Equal(q.waves, want) {
		t.Errorf("%d pushes were stored, want %d in order: %.500q", len(q.waves), len(want), q.waves)
	}
	for i, push := range pushes {
		if push.Channel.ID != int64(i+1) || !errors.Is(push.Err, queue.ErrNotReplicated) {
			t.Fatalf("push %d: %+v, %v", i, push.Channel, push.Err)
		}
	}
}

// TestWavesMemory checks the memory of a batch with one target. When each wave had room for all
// remaining pushes, 10,000 pushes took 400 MB.
func TestWavesMemory(t *testing.T) {
	pushes := make([]Push, 10_000)
	for i := range pushes {
		pushes[i].Name = "news"
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	list := waves(pushes)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(200*len(pushes)) || len(list) != len(pushes) {
		t.Errorf("%d bytes for %d pushes in %d waves", took, len(pushes), len(list))
	}
}
