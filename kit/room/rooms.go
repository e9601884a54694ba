package room

import (
	"strings"

	"switchboard/broker/extension"
	"switchboard/internal/wire"
	"switchboard/kit/budget"
	"switchboard/kit/index"
)

// Rooms is the rooms of a broker.
type Rooms struct {
	host   *extension.Host
	opts   Options // with all values set
	index  index.Index
	budget *budget.Budget

	pending pending
	makers  makers
	known   known
}

// New returns the rooms of a broker.
func New(host *extension.Host, o Options) (*Rooms, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &Rooms{host: host, opts: o, index: o.Index, pending: newPending(), known: newKnown()}
	r.budget = r.newBudget()
	return r, nil
}

// maxID leaves place for the prefix of the channel.
const maxID = wire.MaxName - len(channelPrefix)

// checkID returns an error if an id of a room is not valid.
func checkID(id string) error {
	if err := wire.CheckName("room", id); err != nil {
		return err
	}
	if len(id) > maxID || strings.ContainsAny(id, "*/") {
		return wire.Errorf(wire.BadRequest, "room: an id has at most %d bytes and neither * nor /", maxID)
	}
	return nil
}
