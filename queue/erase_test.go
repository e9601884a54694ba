package queue

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/state"
)

// logOf returns the data of all messages of a channel, in order.
func (f fixture) logOf(t *testing.T, channel string) (log []string) {
	t.Helper()
	for _, m := range must(f.ReadChannel(t.Context(), channel, 0, 1000))(t).Messages {
		log = append(log, string(m.Data))
	}
	return log
}

// wantLog checks the data of all messages of a channel. <at> stands for a time.
func (f fixture) wantLog(t *testing.T, what string, at int64, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "<at>", fmt.Sprint(at))
	}
	equal(t, what, fmt.Sprintf("%q", f.logOf(t, room)), fmt.Sprintf("%q", want))
}

// wantBytes checks that a store in Redis knows the bytes of the channel.
func (f fixture) wantBytes(t *testing.T) {
	t.Helper()
	if f.rdb == nil {
		return
	}
	sum := 0
	for _, member := range must(f.rdb.ZRange(t.Context(), f.keys.channel(room), 0, -1).Result())(t) {
		sum += len(member)
	}
	equal(t, "bytes", must(f.rdb.HGet(t.Context(), f.keys.channelMeta(room), "bytes").Result())(t), fmt.Sprint(sum))
}

func (f fixture) erase(t *testing.T, id int64) Erased {
	t.Helper()
	return must(f.EraseMessage(t.Context(), Erase{Channel: room, ID: id}))(t)
}

func testErase(t *testing.T, open opener) {
	f := open(t, Options{})
	f.setServers(t, room, "s1")
	ids := push(t, f, room, 2)
	message := (&state.Entry{By: "amy/tab", From: "amy/tab", Exclude: "bob/tab", Data: []byte(`"secret"`)}).Encode()
	ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: message}))(t).ID)
	u := state.Update{Ops: []state.Op{set("x", `"stays"`)}, Data: []byte(`"gone"`), Client: "amy/tab"}
	change := must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &u}))(t)
	at := map[int64]int64{}
	last := change.ID
	for n, id := range []int64{ids[0], ids[2], change.ID} {
		erased := f.erase(t, id)
		if !erased.Found || erased.Duplicate || erased.Prev != last || erased.ID <= last {
			t.Errorf("erasure %d is %+v, want one after %d", n, erased, last)
		}
		equal(t, "entry", string(erased.Data), fmt.Sprintf(`~{"erase":%d}`, id))
		equal(t, "servers", fmt.Sprint(erased.Servers), "[s1]")
		at[id], last = erased.At, erased.ID
		f.wantBytes(t)
	}
	erasedAt := func(id int64) string { return fmt.Sprintf(`~{"erased":%d`, at[id]) }
	want := []string{
		erasedAt(ids[0]) + "}", "2", erasedAt(ids[2]) + "}", erasedAt(change.ID) + `,"set":{"x":"stays"}}`,
		fmt.Sprintf(`~{"erase":%d}`, ids[0]), fmt.Sprintf(`~{"erase":%d}`, ids[2]), fmt.Sprintf(`~{"erase":%d}`, change.ID),
	}
	f.wantLog(t, "log", 0, want...)
	for _, id := range []int64{ids[0], ids[2], change.ID} {
		again := f.erase(t, id)
		if !again.Duplicate || !again.Found || again.At != at[id] || again.Data != nil || fmt.Sprint(again.Servers) != "[s1]" {
			t.Errorf("a repetition is %+v, want the time %d", again, at[id])
		}
	}
	f.wantLog(t, "log after repetitions", 0, want...)
	f.wantState(t, "the fields stay", map[string]string{"x": `"stays"`})
	page := must(f.ReadChannel(t.Context(), room, ids[0], 10))(t)
	if !page.Complete || page.Messages[0].ID != ids[1] {
		t.Errorf("a reader at the erased message reads %+v", page)
	}
}

// testEraseDropped erases a message that the channel has dropped: readers may still show it.
func testEraseDropped(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 2})
	ids := push(t, f, room, 4)
	erased := f.erase(t, ids[0])
	if erased.Found || erased.Duplicate || string(erased.Data) != fmt.Sprintf(`~{"erase":%d}`, ids[0]) || erased.At == 0 {
		t.Errorf("a dropped message: %+v", erased)
	}
	again := f.erase(t, ids[0])
	if again.Found || !again.Duplicate || again.ID != erased.ID || again.Data != nil {
		t.Errorf("a repetition: %+v, want the entry %d", again, erased.ID)
	}
	f.wantLog(t, "log", 0, "4", fmt.Sprintf(`~{"erase":%d}`, ids[0]))
	f.expire(t, f.opts.KeyTTL, f.keys.channelKey(room, fmt.Sprint("erase ", ids[0])))
	if later := f.erase(t, ids[0]); later.Duplicate || later.ID <= erased.ID {
		t.Errorf("a later repetition: %+v, want another entry", later)
	}
}

// testEraseNothing checks what cannot be erased.
func testEraseNothing(t *testing.T, open opener) {
	f := open(t, Options{})
	refused := func(what string, e Erase, want error) {
		t.Helper()
		if erased, err := f.EraseMessage(t.Context(), e); !errors.Is(err, want) || erased.ID != 0 {
			t.Errorf("%s: %+v, %v, want %v", what, erased, err, want)
		}
	}
	refused("a channel that does not exist", Erase{Channel: room, ID: 1}, ErrNoMessage)
	id := push(t, f, room, 1)[0]
	refused("no id", Erase{Channel: room}, ErrNoMessage)
	refused("an id above the last one", Erase{Channel: room, ID: id + 1}, ErrNoMessage)
	report := f.erase(t, id)
	refused("the report of an erasure", Erase{Channel: room, ID: report.ID}, ErrNoMessage)
	marker := must(f.ConfirmChannel(t.Context(), room, report.ID+1000))(t)
	refused("a loss marker", Erase{Channel: room, ID: marker.ID}, ErrNoMessage)
	again := must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: []byte("2")}))(t)
	want := ErrNotReplicated
	if f.rdb == nil {
		want = ErrNoReplicas
	}
	_, err := f.EraseMessage(t.Context(), Erase{Channel: room, ID: again.ID, Durable: true})
	if !errors.Is(err, want) {
		t.Errorf("durable: %v, want %v", err, want)
	}
	for _, data := range f.logOf(t, room) {
		if data == "2" && want == ErrNotReplicated {
			t.Error("the message of a durable erasure that no replica has is still there")
		}
	}
}

// testEraseBounds checks that the entry has the bounds of its channel, and makes room like a
// message.
func testEraseBounds(t *testing.T, open opener) {
	f := open(t, Options{})
	var ids []int64
	for n := range 3 {
		ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: fmt.Append(nil, n), Cap: 3, TTL: time.Minute}))(t).ID)
	}
	erased := must(f.EraseMessage(t.Context(), Erase{Channel: room, ID: ids[1], Cap: 3, TTL: time.Minute}))(t)
	f.wantLog(t, "log", erased.At, `~{"erased":<at>}`, "2", fmt.Sprintf(`~{"erase":%d}`, ids[1]))
	f.wantBytes(t)
	f.expire(t, time.Minute+time.Minute/8, f.keys.channel(room))
	equal(t, "size", must(f.ChannelSize(t.Context(), room))(t), 0)
}

// testEraseRace erases the same messages several times at once, while others are stored and
// dropped. Each message is reported once, and none of them is left.
func testEraseRace(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 64})
	ids := push(t, f, room, 20)
	var calls sync.WaitGroup
	for _, id := range ids {
		for range 3 {
			calls.Go(func() { _ = must(f.EraseMessage(t.Context(), Erase{Channel: room, ID: id}))(t) })
		}
		calls.Go(func() {
			_ = must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: []byte(`"new"`)}))(t)
		})
	}
	calls.Wait()
	reports, others := map[string]int{}, 0
	for _, data := range f.logOf(t, room) {
		switch {
		case strings.HasPrefix(data, `~{"erase":`):
			reports[data]++
		case state.IsErased([]byte(data)), data == `"new"`:
		default:
			others++
		}
	}
	for report, n := range reports {
		if n != 1 {
			t.Errorf("%s: %d times", report, n)
		}
	}
	if others > 0 || len(reports) != len(ids) {
		t.Errorf("%d messages are left, %d are reported, want 0 and %d", others, len(reports), len(ids))
	}
	f.wantBytes(t)
}
