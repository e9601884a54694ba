package account

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
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
	e := &edit{snapshot: s, next: s.record.value, update: newUpdate()}
	e.expect(recordField, s.record.id)
	return e
}

// edit runs change on the account and writes its result. If the account has changed in between, it
// runs change again on the new snapshot.
func (a *Accounts) edit(ctx context.Context, id string, change func(*edit) error) (*edit, error) {
	return kit.Retry(ctx, "account "+id, func() (*edit, error) {
		s, err := a.readExisting(ctx, id)
		if err != nil {
			return nil, err
		}
		e := begin(s)
		if err := change(e); err != nil {
			return nil, err
		}
		return e, changed(a.commit(ctx, e))
	})
}

// changed returns kit.ErrChanged if a store has refused an update because of its conditions, and
// otherwise err.
func changed(err error) error {
	if isConflict(err) {
		return kit.ErrChanged
	}
	return err
}

// commit writes the edit, shows it in the list, and ends the connections that it ends. Before, it
// notes the account in the due list: if this process stops, another one shows the change.
func (a *Accounts) commit(ctx context.Context, e *edit) error {
	if err := a.index.Schedule(ctx, projectDelay, e.id); err != nil {
		return fmt.Errorf("account %s: %w", e.id, err)
	}
	e.next.Edited = 0
	if before := &e.record.value; e.exists() && !before.edited(&e.next) {
		e.next.Edited = before.version(e.record.id)
	}
	e.set(recordField, e.next, 0)
	e.update.Keep = a.life(&e.next)
	done, err := a.store.Change(ctx, accountPrefix+e.id, e.update, a.opts.Durable)
	if err != nil {
		return err
	}
	e.stored = done.ID
	if err := a.index.Put(ctx, a.card(e.id, done.ID, &e.next)); err != nil {
		a.log.Warn().Err(err).Msg("accounts: the list is shown later")
	}
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
func (e *edit) expect(field string, id int64) { e.update.If = append(e.update.If, expect(field, id)) }

// set sets a field. A ttl of 0 means that it has no lease.
func (e *edit) set(field string, v any, ttl time.Duration) {
	e.update.Ops = append(e.update.Ops, setOp(field, v, ttl))
}

func (e *edit) remove(field string) {
	e.update.Ops = append(e.update.Ops, state.Op{Field: field, Kind: state.Delete})
}

// endLogins ends all logins that can be renewed, and all connections.
func (e *edit) endLogins() {
	for slot := range e.grants {
		if e.grants[slot].id != 0 {
			e.remove(tokenField(slot))
		}
	}
	e.all = true
}

// newUpdate returns an update by the backend.
func newUpdate() *state.Update { return &state.Update{Writer: state.BackendHolder} }

// expect returns the condition that a field has an id; 0 means that it is absent.
func expect(field string, id int64) state.Condition {
	if id == 0 {
		return state.Condition{Field: field, Kind: state.IsAbsent}
	}
	return state.Condition{Field: field, Kind: state.IsID, ID: id}
}

func setOp(field string, v any, ttl time.Duration) state.Op {
	value, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values have only strings, numbers and bytes
	}
	return state.Op{Field: field, Kind: state.Set, Value: value, TTL: min(ttl, namespace.MaxLease)}
}

func isConflict(err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Code == wire.Conflict
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Code == wire.NotFound
}

// Errors with which the change of an edit ends it.
var (
	errNothing = errors.New("nothing to change")
	errReused  = errors.New("the renewal token was used before")
)
