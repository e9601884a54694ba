package events

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// gone returns a message of a log in which a field has ended.
func gone(id int64, field, reason string) EndedMessage {
	return EndedMessage{ID: id, Gone: map[string]string{field: reason}}
}

// text returns an event about fields.
func (r received) text() string {
	return fmt.Sprintf("%s %s %d %v %v", r.Type, r.Channel, r.Message, r.Cleared, r.Gone)
}

// wantFields checks the events that the endpoint has accepted since the last call.
func (h *harness) wantFields(what string, want ...string) {
	h.t.Helper()
	var got []string
	for _, e := range h.endpoint.take() {
		got = append(got, e.text())
	}
	equal(h.t, what, fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
}

// testTranslate checks events of a system's own in place of fields_gone.
func testTranslate(t *testing.T, open openFunc) {
	fail := true
	translate := func(_ context.Context, channel string, messages []EndedMessage) (list []OwnEvent, ours bool, err error) {
		if channel != "hold:play" {
			return nil, false, nil
		}
		if fail {
			fail = false
			return nil, true, errors.New("the store is busy")
		}
		for _, m := range messages {
			for field := range m.Gone {
				e := fieldsEvent{Type: HoldExpired, Channel: field, Message: m.ID}
				list = append(list, OwnEvent{Kind: HoldExpired, Message: m.ID, Name: field, Body: e},
					OwnEvent{Kind: UserOnline, Message: m.ID, Name: "not wanted", Body: e})
			}
		}
		return list, true, nil
	}
	h := newHarness(t, open, func(o *Options) { o.Translate, o.Wanted = translate, []Kind{HoldExpired} })
	ok(t, h.TrackFields(t.Context(), "hold:play", "room")[0])
	now := h.storeNow(t)
	for _, channel := range []string{"hold:play", "room"} {
		h.truth.setFields(channel, func(f *fakeFields) {
			f.log, f.due = []EndedMessage{gone(firstID, "$$live:bob/1", "expired")}, now+time.Hour.Milliseconds()
		})
		ok(t, h.FieldsDue(t.Context(), FieldsDue{channel, now})[0])
	}
	if _, err := h.DueRound(t.Context()); err == nil {
		t.Error("the error of Translate is lost")
	}
	h.advance(t, time.Hour)
	h.runRounds()
	h.wantFields("own events", "hold_expired $$live:bob/1 4503599627370496 false map[]")
}

const firstID = 1 << 52 // later than the position of a newly tracked channel

func testFieldsGone(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	ok(t, h.TrackFields(t.Context(), "room", "other")[0])
	now := h.storeNow(t)
	h.truth.setFields("room", func(f *fakeFields) { f.log, f.due = []EndedMessage{{ID: firstID}}, now+time.Minute.Milliseconds() })
	ok(t, h.FieldsDue(t.Context(), FieldsDue{"room", now + time.Minute.Milliseconds()}, FieldsDue{"unknown", 1})[0])
	equal(t, "report before a field ends", h.runRounds(), Report{})

	h.advance(t, time.Minute)
	h.truth.setFields("room", func(f *fakeFields) {
		f.log = append(f.log, gone(firstID+1, "seat/1", "expired"), EndedMessage{ID: firstID + 2}, gone(firstID+3, "$$x", "left"))
		f.due = now + time.Hour.Milliseconds()
	})
	equal(t, "report", h.runRounds(), Report{Checked: 1, Created: 2, Sent: 2})
	h.wantFields("fields that have ended", "fields_gone room 4503599627370497 false map[seat/1:expired]", "fields_gone room 4503599627370499 false map[$$x:left]")
	equal(t, "report of a round without work", h.runRounds(), Report{})

	h.advance(t, time.Hour)
	h.truth.setFields("room", func(f *fakeFields) {
		f.log = append(f.log, EndedMessage{ID: firstID + 4, Cleared: true}, gone(firstID+5, "a", "expired"), gone(firstID+6, "b", "expired"))
		f.due, f.empty = 0, true
	})
	equal(t, "report", h.runRounds(), Report{Checked: 1, Created: 2, Sent: 2})
	h.advance(t, recheckDelay)
	equal(t, "report of the rest", h.runRounds(), Report{Checked: 1, Created: 1, Sent: 1})
	h.wantFields("more fields", "fields_gone room 4503599627370500 true map[]",
		"fields_gone room 4503599627370501 false map[a:expired]", "fields_gone room 4503599627370502 false map[b:expired]")
	h.advance(t, trackIdle)
	h.ageTracked(t, trackIdle)
	h.runRounds()
	channels, _, err := h.TrackedChannels(t.Context(), shardOf(channelPrefix, "room"), "", 10)
	ok(t, err)
	for _, c := range channels {
		if c.channel() == "room" {
			t.Error("an empty channel is tracked")
		}
	}
	equal(t, "repeated events", h.endpoint.repeated, 0)
}

func testFieldsSwept(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	ok(t, h.TrackFields(t.Context(), "room")[0])
	sweep := func(what string, checked int) {
		t.Helper()
		report, err := h.SweepRound(t.Context())
		ok(t, err)
		equal(t, what, report, Report{Checked: checked})
	}
	h.truth.setFields("room", func(f *fakeFields) { f.empty = true })
	sweep("a channel that is tracked and has no update", 0)

	h.truth.setFields("room", func(f *fakeFields) { f.empty, f.log = false, []EndedMessage{{ID: firstID}} })
	sweep("an update", 1)
	h.runRounds()
	sweep("fields without an end", 0)

	due := h.storeNow(t) + time.Minute.Milliseconds()
	h.truth.setFields("room", func(f *fakeFields) { f.due = due })
	sweep("a field with an end", 0)
	h.advance(t, time.Minute)
	h.truth.setFields("room", func(f *fakeFields) { f.log, f.due = append(f.log, gone(firstID+1, "a", "expired")), 0 })
	equal(t, "report", h.runRounds(), Report{Checked: 1, Created: 1, Sent: 1})

	h.truth.setFields("room", func(f *fakeFields) { f.log = append(f.log, gone(firstID+2, "b", "left")) })
	sweep("a field that has ended", 1)
	equal(t, "report", h.runRounds(), Report{Checked: 1, Created: 1, Sent: 1})
	h.truth.setFields("room", func(f *fakeFields) { f.empty = true })
	sweep("a state whose time of keeping has ended", 1)
	h.runRounds()
	sweep("an empty channel", 0)

	h.truth.setFields("room", func(f *fakeFields) { f.log = append(f.log, EndedMessage{ID: firstID + 3}) })
	h.truth.fail(fmt.Errorf("the truth fails"))
	if _, err := h.SweepRound(t.Context()); err == nil {
		t.Error("SweepRound with a failing truth: no error")
	}
	h.truth.fail(nil)
	sweep("the page after an error", 1)
}

func testFieldsUnwanted(t *testing.T, open openFunc) {
	h := newHarness(t, open, nil)
	ok(t, h.TrackFields(t.Context(), "room")[0])
	ok(t, h.FieldsDue(t.Context(), FieldsDue{"room", 1})[0])
	other := h.newDispatcher(func(o *Options) { o.Wanted = []Kind{UserOnline} })
	ok(t, other.TrackFields(t.Context(), "other")[0])
	ok(t, other.FieldsDue(t.Context(), FieldsDue{"other", 1})[0])
	_, err := other.SweepRound(t.Context())
	ok(t, err)
	report, err := other.DueRound(t.Context())
	ok(t, err)
	equal(t, "report", report, Report{Checked: 1})
	for shard := range Shards {
		channels, _, err := h.TrackedChannels(t.Context(), shard, "", 10)
		ok(t, err)
		equal(t, "tracked channels", channels, nil)
	}
}
