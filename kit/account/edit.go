package account

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// edit is a change of an account that is being made. It is accepted only if the account has not
// changed since it was read.
type edit struct {
	*snapshot
	next   record // the record after the change
	stored int64  // its id, once it is stored
	update *state.Update
	// disconnect are the clients whose connections the change ends; all means every connection.
	disconnect []string
	all        bool
}

// begin returns an edit without changes.
func begin(s *snapshot) *edit {
	e := &edit{snapshot: s, next: s.record.Value, update: new(state.Update)}
	e.expect(recordField, s.record.ID)
	return e
}

// edit runs change on the account and writes its result. If the account has changed in between, it
// runs change again on the new snapshot.
func (a *Accounts) edit(ctx context.Context, id string, change func(*edit) error) (e *edit, err error) {
	_, err = a.documents.Edit(ctx, id, func(s *snapshot) error {
		e = begin(s)
		if err := change(e); err != nil {
			return err
		}
		return kit.IfChanged(a.commit(ctx, e))
	})
	return e, err
}

// commit writes the edit, shows it in the list, and ends the connections that it ends. Before, it
// notes the account in the due list: if this process stops, another one shows the change.
func (a *Accounts) commit(ctx context.Context, e *edit) error {
	if err := a.documents.Note(ctx, e.id); err != nil {
		return fmt.Errorf("account %s: %w", e.id, err)
	}
	e.next.Edited = 0
	if before := &e.record.Value; e.Exists() && !before.edited(&e.next) {
		e.next.Edited = before.version(e.record.ID)
	}
	e.set(recordField, e.next, 0)
	e.update.Keep = a.life(&e.next)
	done, err := a.store.Change(ctx, accountPrefix+e.id, e.update, a.opts.Durable)
	if err != nil {
		return err
	}
	e.stored = done.ID
	a.documents.Show(ctx, a.card(e.id, done.ID, &e.next))
	return a.disconnect(ctx, e)
}

// account returns the account after the change.
func (e *edit) account() Account { return e.next.account(e.id, e.stored) }

// disconnect ends the connections that an edit ends.
func (a *Accounts) disconnect(ctx context.Context, e *edit) (err error) {
	if e.all {
		err = a.host.Disconnect(ctx, e.id)
	} else {
		for _, client := range e.disconnect {
			err = errors.Join(err, a.host.DisconnectClient(ctx, wire.ClientID(e.id, client)))
		}
	}
	if err != nil {
		return fmt.Errorf("account %s: disconnect: %w", e.id, err)
	}
	return nil
}

// expect requires that a field has an id; 0 means that it is absent.
func (e *edit) expect(field string, id int64) { e.update.If = append(e.update.If, kit.Same(field, id)) }

// set sets a field. A ttl of 0 means that it has no lease.
func (e *edit) set(field string, v any, ttl time.Duration) {
	e.update.Ops = append(e.update.Ops, setOp(field, v, ttl))
}

func (e *edit) remove(field string) { e.update.Ops = append(e.update.Ops, kit.Delete(field)) }

// endLogins ends all logins that can be renewed, and all connections.
func (e *edit) endLogins() {
	for slot := range e.grants {
		if e.grants[slot].ID != 0 {
			e.remove(tokenField(slot))
		}
	}
	e.all = true
}

func setOp(field string, v any, ttl time.Duration) state.Op {
	op := kit.Set(field, v)
	op.TTL = min(ttl, namespace.MaxLease)
	return op
}

// Errors with which the change of an edit ends it.
var (
	errNothing = errors.New("nothing to change")
	errReused  = errors.New("the renewal token was used before")
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
