package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
)

// TestEntriesOfOneChange checks that a change with several entries appends all of them, under
// different ids.
func TestEntriesOfOneChange(t *testing.T) {
	now := time.UnixMilli(1_800_000_000_000)
	m := NewMemory(Options{Now: func() time.Time { return now }}, nil)
	u := &state.Update{Writer: state.BackendHolder}
	for i := range 1024 {
		name := fmt.Sprintf("%s%04d", strings.Repeat("x", 120), i)
		u.Ops = append(u.Ops, state.Op{Field: name, Kind: state.Set, Value: []byte("1"), TTL: time.Second})
	}
	set, err := m.AppendChannel(t.Context(), ChannelPush{Channel: "room", Update: u})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	swept := m.StepStates(t.Context(), []StateStep{{Channel: "room", Kind: Sweep}})[0]
	if swept.Err != nil {
		t.Fatal(swept.Err)
	}
	page, err := m.ReadChannel(t.Context(), "room", set.ID, 100)
	if err != nil {
		t.Fatal(err)
	}
	gone, last := 0, set.ID
	for _, message := range page.Messages {
		e, err := state.DecodeEntry(message.Data)
		if err != nil {
			t.Fatal(err)
		}
		if message.ID <= last {
			t.Errorf("id %d follows %d", message.ID, last)
		}
		gone, last = gone+len(e.Gone), message.ID
	}
	if n := len(page.Messages); n < 2 || gone != len(u.Ops) || last != swept.Value.ID {
		t.Errorf("%d entries with %d fields, the last id is %d, want %d fields and the id %d", n, gone, last, len(u.Ops), swept.Value.ID)
	}
}
