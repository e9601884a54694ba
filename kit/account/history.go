package account

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/queue"
)

// Event is an entry of the history of an account.
type Event struct {
	N       int64     `json:"n"`  // from 1, without gaps
	At      int64     `json:"at"` // Unix ms
	Type    EventType `json:"type"`
	Address string    `json:"address,omitempty"` // "" for the backend
	Name    string    `json:"name,omitempty"`    // of renamed: the former name
}

// EventType is what happened to an account.
type EventType string

// The types of events.
const (
	Registered  EventType = "registered"
	LoggedIn    EventType = "login"
	LoggedOut   EventType = "logout"
	Renamed     EventType = "renamed"
	NewPassword EventType = "password"
	NewNickname EventType = "nickname"
	WasLocked   EventType = "locked"
	WasUnlocked EventType = "unlocked"
	WasDeleted  EventType = "deleted"
	WasRestored EventType = "restored"
	TokenReused EventType = "token_reused" // an old renewal token was used: the login has ended
)

// log adds an event to the history. It replaces the event HistorySize before it, so that the
// history is bounded, and does not end with the messages of the channel. Changes of the nickname in
// a row are one event: they need no password, and would otherwise remove the logins from the
// history.
func (e *edit) log(event Event) {
	if event.Type != NewNickname || e.next.Last != NewNickname {
		e.next.Events++
	}
	e.next.Last = event.Type
	event.N, event.At = e.next.Events, now()
	e.set(eventPrefix+strconv.FormatInt(event.N%HistorySize, 10), event, 0)
}

// History returns the last HistorySize events of an account, the newest first.
func (a *Accounts) History(ctx context.Context, id string) ([]Event, error) {
	if _, err := a.Get(ctx, id); err != nil {
		return nil, err
	}
	var list []Event
	read := queue.StateRead{Channel: accountPrefix + id, Prefix: eventPrefix, Bytes: state.PageBytes}
	for page, err := range kit.StatePages(ctx, a.store, read) {
		if err != nil {
			return nil, fmt.Errorf("history of account %s: %w", id, err)
		}
		for _, f := range page.Fields {
			var event Event
			if err := json.Unmarshal(f.Value, &event); err != nil {
				return nil, fmt.Errorf("history of account %s: %s: %w", id, f.Name, err)
			}
			list = append(list, event)
		}
	}
	slices.SortFunc(list, func(x, y Event) int { return cmp.Compare(y.N, x.N) })
	return list, nil
}
