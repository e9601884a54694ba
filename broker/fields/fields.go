package fields

import (
	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Writer is the client or the backend that makes a change.
type Writer struct {
	namespace.Subject
	// Client is the client's id, "" for a call over HTTP. Generation is that of its binding, and
	// Server the server that holds its connection.
	Client     string
	Generation int64
	Server     string
	// HasState means that this connection of the client is subscribed to the channel with its state,
	// so that the client may own fields.
	HasState bool
}

// holder returns the writer as holder of fields.
func (w *Writer) holder() string {
	switch {
	case w.Backend:
		return state.BackendHolder
	case w.User != "":
		return state.UserHolder(w.User)
	}
	return state.ClientHolder(w.Client)
}

// StateLimits bounds changes and states. Zero means no limit.
type StateLimits struct {
	Fields      int `setting:"limits.fields" default:"1024" help:"fields in the state of a channel"`
	StateBytes  int `setting:"limits.state_bytes" default:"1048576" help:"bytes of the names and values of those fields"`
	FieldBytes  int `setting:"limits.field_bytes" default:"16384" help:"bytes of one value"`
	Operations  int `setting:"limits.operations" default:"64" help:"fields that one publish changes, and conditions of one publish"`
	OwnedFields int `setting:"limits.owned_fields" default:"16" help:"fields of a channel that one client owns"`
}

// Build returns the update that a change makes. data is the data of the message, compact JSON or
// nil; whether the writer may publish it, the caller checks. message is the most bytes of the data,
// names and values; 0 means no limit. The error is a *wire.Error whose message names the field. The
// update shares no memory with the change.
func Build(set *namespace.Set, w *Writer, channel string, change *wire.Change, data []byte, limits StateLimits, message int) (*state.Update, error) {
	b := builder{set: set, rule: set.For(channel), w: w, channel: channel, Change: change, limits: limits, message: message}
	if b.rule == nil {
		_, why := set.Decide(w.Subject, namespace.State, channel)
		return nil, wire.Errorf(wire.Forbidden, "channel %s: not allowed to change fields: %s", channel, why)
	}
	if err := b.checkCounts(len(data)); err != nil {
		return nil, err
	}
	b.update = &state.Update{
		Data: data, Writer: w.holder(), Client: w.Client, Generation: w.Generation, Server: w.Server,
		Limits: state.Limits{Fields: limits.Fields, Bytes: limits.StateBytes, Owned: limits.OwnedFields, Keep: b.rule.Keep()},
	}
	if !w.Backend {
		b.update.ByField = b.rule.ByField(w.User)
	}
	if err := b.addOperations(); err != nil {
		return nil, err
	}
	if err := b.addParents(); err != nil {
		return nil, err
	}
	if err := b.addConditions(); err != nil {
		return nil, err
	}
	b.addNeeded()
	return b.update, b.checkSize()
}

// addNeeded adds the condition that the rule makes for all changes of clients.
func (b *builder) addNeeded() {
	if needed := b.rule.NeededField(b.w.User); needed != "" && !b.w.Backend {
		b.update.If = append(b.update.If, state.Condition{Field: needed, Kind: state.Exists})
	}
}

// builder is a call of Build.
type builder struct {
	*wire.Change
	set     *namespace.Set
	rule    *namespace.Rule
	w       *Writer
	channel string
	limits  StateLimits
	message int
	ttl     lease
	update  *state.Update
}

// operations returns how many operations the change has.
func (b *builder) operations() int { return len(b.Set) + len(b.Del) + len(b.Add) + len(b.Touch) }

func (b *builder) checkCounts(data int) (err error) {
	n := b.operations()
	switch most := b.limits.Operations; {
	case n == 0 && data == 0:
		return wire.Errorf(wire.BadRequest, "neither data nor a field (set, del, add, touch) is given")
	case most > 0 && n > most:
		return wire.Errorf(wire.TooLarge, "%d fields are changed, at most %d are allowed", n, most)
	case most > 0 && len(b.If) > most:
		return wire.Errorf(wire.TooLarge, "if: %d conditions, at most %d are allowed", len(b.If), most)
	}
	b.ttl, err = parseLease(b.TTL)
	return err
}

// checkSize checks the size of the whole publish.
func (b *builder) checkSize() error {
	if b.message == 0 {
		return nil
	}
	if size := b.update.Size(); size > b.message {
		return wire.Errorf(wire.TooLarge, "data and fields: %d bytes, at most %d are allowed", size, b.message)
	}
	return nil
}
