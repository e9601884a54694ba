package queue

import (
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
)

// testNewChannel checks that a push with ExistingOnly stores nothing in a new channel.
func testNewChannel(t *testing.T, open opener) {
	f := open(t, Options{})
	push := ChannelPush{Channel: "news", Data: []byte("1"), ExistingOnly: true}
	_, err := f.AppendChannel(t.Context(), push)
	fails(t, "new", err, ErrNewChannel)
	equal(t, "held", must(f.ChannelSize(t.Context(), "news"))(t), 0)
	if f.rdb != nil {
		equal(t, "keys", must(f.rdb.Exists(t.Context(), f.keys.channelMeta("news")).Result())(t), 0)
	}
	equal(t, "prev of the first", must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: []byte("1")}))(t).Prev, 0)
	push.Cap = 5 // uses another BatchScript
	if a := must(f.AppendChannel(t.Context(), push))(t); a.Prev == 0 || a.ID <= a.Prev {
		t.Errorf("the second is %+v", a)
	}
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("news"))
	if a := must(f.AppendChannel(t.Context(), push))(t); a.Prev == 0 {
		t.Errorf("with a position and no messages: %+v", a)
	}
	outs := f.AppendChannels(t.Context(), []ChannelPush{push, {Channel: "other", Data: []byte("1"), ExistingOnly: true}})
	ok(t, outs[0].Err)
	fails(t, "new, among others", outs[1].Err, ErrNewChannel)
	if f.rdb == nil {
		return // Memory refuses durable pushes
	}
	update := &state.Update{Ops: []state.Op{set("a", "1")}}
	for channel, want := range map[string]error{"other": ErrNewChannel, "news": ErrNotReplicated} {
		_, err := f.AppendChannel(t.Context(), ChannelPush{Channel: channel, Data: []byte("1"), ExistingOnly: true, Durable: true})
		fails(t, "durable, to "+channel, err, want)
		_, err = f.AppendChannel(t.Context(), ChannelPush{Channel: channel, Update: update, ExistingOnly: true, Durable: true})
		fails(t, "durable update of "+channel, err, want)
	}
}

// testForgottenChannel checks that pages are not Complete after the position expired, and that ids
// keep growing.
func testForgottenChannel(t *testing.T, open opener) {
	f := open(t, Options{MetaTTL: 2 * time.Hour})
	ids := push(t, f, "news", 3)
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("news"))
	p := must(f.ReadChannel(t.Context(), "news", ids[2], 10))(t)
	equal(t, "complete while it is known", p.Complete, true)
	if f.rdb != nil {
		lives := must(f.rdb.PTTL(t.Context(), f.keys.channelMeta("news")).Result())(t)
		if lives < 3*time.Hour-time.Minute || lives > 3*time.Hour+time.Hour/8 {
			t.Errorf("the position lives %v after a push", lives)
		}
	}
	f.expire(t, f.opts.ChannelTTL/8+f.opts.MetaTTL, f.keys.channelMeta("news"))
	for _, after := range ids {
		p := must(f.ReadChannel(t.Context(), "news", after, 10))(t)
		if p.Complete || p.From != 0 || p.Last != 0 || len(p.Messages) > 0 {
			t.Errorf("after %d: %+v", after, p)
		}
	}
	next := push(t, f, "news", 2)
	if next[0] <= ids[2] {
		t.Errorf("the next id is %d, the last was %d", next[0], ids[2])
	}
	for _, after := range ids {
		p := must(f.ReadChannel(t.Context(), "news", after, 10))(t)
		wantIDs(t, "what is held", p, next)
		equal(t, "complete", p.Complete, false)
	}
}

// testKeptChannel checks that KeepPositions keeps a position, and that a trim does not shorten its
// life.
func testKeptChannel(t *testing.T, open opener) {
	f := open(t, Options{MetaTTL: 2 * time.Hour})
	last := push(t, f, "news", 1)[0]
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("news"))
	if f.rdb != nil {
		ok(t, f.rdb.PExpire(t.Context(), f.keys.channelMeta("news"), time.Minute).Err())
	} else {
		f.expire(t, f.opts.MetaTTL-time.Minute)
	}
	ok(t, f.KeepPositions(t.Context(), []string{"news", "never"}))
	if f.rdb != nil {
		lives := must(f.rdb.PTTL(t.Context(), f.keys.channelMeta("news")).Result())(t)
		if lives < f.opts.MetaTTL-time.Minute {
			t.Errorf("the position lives %v", lives)
		}
		equal(t, "position of a new channel", must(f.rdb.Exists(t.Context(), f.keys.channelMeta("never")).Result())(t), 0)
	} else {
		f.expire(t, f.opts.MetaTTL-time.Minute)
	}
	equal(t, "complete", must(f.ReadChannel(t.Context(), "news", last, 10))(t).Complete, true)

	push(t, f, "trimmed", 3)
	equal(t, "trimmed", must(f.TrimChannel(t.Context(), "trimmed", -time.Hour, 10, false))(t), 3)
	if f.rdb != nil {
		lives := must(f.rdb.PTTL(t.Context(), f.keys.channelMeta("trimmed")).Result())(t)
		if lives < 3*time.Hour-time.Minute {
			t.Errorf("the position lives %v after the trim", lives)
		}
	}
}

func testChannelReadBytes(t *testing.T, open opener) {
	f := open(t, Options{})
	payload := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	var ids []int64
	for range 40 {
		ids = append(ids, must(f.AppendChannel(t.Context(), ChannelPush{Channel: "news", Data: payload}))(t).ID)
	}
	for _, c := range []struct{ bytes, limit, want int }{{1, 40, 1}, {5200, 40, 5}, {5200, 3, 3}, {25_000, 40, 24}, {0, 40, 40}, {4 * MaxPageBytes, 40, 40}} {
		o := f.ReadChannels(t.Context(), []ChannelRead{{Channel: "news", After: ids[0] - 1, Limit: c.limit, Bytes: c.bytes}})[0]
		ok(t, o.Err)
		wantIDs(t, "from the beginning", o.Value, ids[:c.want])
		equal(t, "more", o.Value.More, c.want < len(ids))
	}
	o := f.ReadChannels(t.Context(), []ChannelRead{{Channel: "news", After: ids[37], Limit: 40, Bytes: 5200}})[0]
	wantIDs(t, "the last", o.Value, ids[38:])
	equal(t, "more", o.Value.More, false)
}
