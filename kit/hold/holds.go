package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// Holds has the operations on resources, holds and sales. The errors of all operations are a
// *wire.Error, a *wire.DetailedError with the facts, or an error of the store:
//
//   - BadRequest, TooLarge: the arguments are invalid
//   - NotFound: there is no such resource, seat or hold
//   - Conflict: the places are not free, the user has a hold, or the version differs
//   - Full: fewer units are free than asked for
//   - Expired: the hold has ended; the facts are a *Hold
//   - OutOfRange: the hold has reached its longest life
//   - Unavailable: others changed the resource all the time; try again
//
// With queue.ErrNotReplicated, the result is valid and stored, but no replica has confirmed it.
type Holds struct {
	host    *extension.Host
	store   kit.Store
	opts    Options
	results kit.Results
	cards   *kit.Cards // of the list of all resources
}

// New returns the holds of a broker.
func New(host *extension.Host, opts Options) (*Holds, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	h := &Holds{
		host: host, store: kit.HostStore(host), opts: opts,
		results: kit.NewResults("switchboard_holds_total", "Operations on holds and sales"),
	}
	h.cards = &kit.Cards{Index: opts.Index, Lease: opts.Rounds, All: allList, Compute: h.computeCards}
	return h, nil
}

// view is what an operation has read.
type view struct {
	name, channel string
	clock         int64 // the store's clock, Unix ms
	resource      *Resource
	version       int64 // id of $resource; 0 without a resource
	records       map[string]*storedRecord
	read          queue.Outcome[queue.StatePage] // the second read
}

// storedRecord is a record with its field.
type storedRecord struct {
	record
	id    string
	field *state.Field
}

// live reports whether the record is of a hold that has not ended.
func (v *view) live(r *storedRecord) bool { return r.State == Held && r.until(r.field) > v.clock }

// show returns the hold of a record.
func (v *view) show(r *storedRecord) *Hold { return r.show(r.id, v.name, r.field, v.clock) }

// read reads a resource and the records with the ids. more are further reads of the channel in the
// same round trip; the result of the first of them is in the view. It does not fail if the resource
// does not exist.
func (h *Holds) read(ctx context.Context, resource string, ids []string, more ...queue.StateRead) (*view, error) {
	channel, err := channelOf(resource)
	if err != nil {
		return nil, err
	}
	names := make([]string, 1, 1+len(ids))
	names[0] = resourceField
	for _, id := range ids {
		names = append(names, recordField(id))
	}
	reads := append([]queue.StateRead{{Channel: channel, Fields: names}}, more...)
	for i := range reads {
		reads[i].Channel = channel
	}
	pages := h.host.ReadStates(ctx, reads)
	for _, p := range pages {
		if p.Err != nil {
			return nil, fmt.Errorf("read %s: %w", channel, p.Err)
		}
	}
	v := &view{name: resource, channel: channel}
	if len(pages) > 1 {
		v.read = pages[1]
	}
	return v, v.parse(&pages[0].Value)
}

// parse parses the resource and the records of a page.
func (v *view) parse(page *queue.StatePage) (err error) {
	v.clock, v.records = page.Clock, make(map[string]*storedRecord)
	for _, f := range page.Fields {
		if f.Name == resourceField {
			v.version = f.ID
			if v.resource, err = parseResource(f.Field); err != nil {
				return fmt.Errorf("%s of %s: %w", f.Name, v.channel, err)
			}
			continue
		}
		r, err := parseRecord(f.Field)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", f.Name, v.channel, err)
		}
		id := idOf(f.Name)
		v.records[id] = &storedRecord{*r, id, f.Field}
	}
	return nil
}

// readExisting is read, and NotFound if the resource does not exist.
func (h *Holds) readExisting(ctx context.Context, resource string, ids []string, more ...queue.StateRead) (*view, error) {
	v, err := h.read(ctx, resource, ids, more...)
	if err == nil && v.resource == nil {
		err = wire.Errorf(wire.NotFound, "there is no resource %s", resource)
	}
	return v, err
}

// readHold returns the record with the id. It is NotFound without one.
func (h *Holds) readHold(ctx context.Context, resource, id string) (*view, *storedRecord, error) {
	if err := checkID(id); err != nil {
		return nil, nil, err
	}
	v, err := h.readExisting(ctx, resource, []string{id})
	if err != nil {
		return nil, nil, err
	}
	if r := v.records[id]; r != nil {
		return v, r, nil
	}
	return nil, nil, wire.Errorf(wire.NotFound, "resource %s: there is no hold %s", resource, id)
}

// change writes an update of the resource that was read. If one of the conditions on $resource, on
// records or on live holds is not met, the error is kit.ErrChanged.
func (h *Holds) change(ctx context.Context, v *view, u *state.Update, durable bool) error {
	u.If = append(u.If, kit.Same(resourceField, v.version))
	u.Keep = v.resource.keep(v.clock)
	_, err := h.write(ctx, v, u, durable)
	return err
}

// write is change without the condition on $resource. It returns the id of the change. Leases count
// from the read, so that each end is the one that the answer has.
func (h *Holds) write(ctx context.Context, v *view, u *state.Update, durable bool) (int64, error) {
	u.From = v.clock
	done, err := h.store.Change(ctx, v.channel, u, durable)
	h.cards.Note(v.name) // also after an error: the change may be stored
	if refusal, ok := errors.AsType[*state.Refusal](err); ok && refusal.Err.Code == wire.Conflict {
		for name := range refusal.Fields {
			if state.IsBackend(name) {
				return 0, kit.ErrChanged
			}
		}
	}
	return done.ID, err
}

// sync waits until a replica has all earlier changes of the resource. It writes a change that has
// no effect, because only a write can be waited for.
func (h *Holds) sync(ctx context.Context, v *view, durable bool) error {
	if !durable {
		return nil
	}
	return h.change(ctx, v, &state.Update{Ops: []state.Op{{Field: resourceField, Kind: state.Touch}}}, true)
}

// stored reports whether a change with this error is stored.
func stored(err error) bool { return err == nil || errors.Is(err, queue.ErrNotReplicated) }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
