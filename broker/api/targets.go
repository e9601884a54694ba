package api

import (
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// target is one receiver of a push.
type target struct{ kind, name string }

// checkExclude checks the client that does not receive a push to targets of a kind.
func checkExclude(client, kind string) error {
	switch {
	case client == "":
		return nil
	case kind == "client":
		return wire.Errorf(wire.BadRequest, "exclude: a push to clients has none, since it names all its receivers")
	}
	if err := wire.CheckClientID(client); err != nil {
		return errorAt("exclude", err)
	}
	return nil
}

// targets returns the targets of req. It is an error unless req names exactly one kind.
func (a api) targets(req pushRequest) ([]target, error) {
	var lists [][]target
	for _, field := range []struct {
		kind, one string
		many      []string
	}{{"channel", req.Channel, req.Channels}, {"user", req.User, req.Users}, {"client", req.Client, req.Clients}} {
		if field.one != "" {
			lists = append(lists, []target{{field.kind, field.one}})
		}
		if field.many != nil {
			list := make([]target, len(field.many))
			for i, name := range field.many {
				list[i] = target{field.kind, name}
			}
			lists = append(lists, list)
		}
	}
	if req.All {
		lists = append(lists, []target{{"all", wire.AllChannel}})
	}
	switch {
	case len(lists) != 1:
		return nil, wire.Errorf(wire.BadRequest,
			"exactly one of channel, channels, user, users, client, clients and all is needed, not %d", len(lists))
	case len(lists[0]) == 0:
		return nil, wire.Errorf(wire.BadRequest, "the list of targets is empty")
	case len(lists[0]) > min(a.Batch, a.Targets):
		return nil, wire.Errorf(wire.TooLarge, "%d targets, at most %d are allowed", len(lists[0]), min(a.Batch, a.Targets))
	}
	return lists[0], nil
}

// checkTarget returns an error if a payload of size bytes cannot be pushed to t. The other targets
// of the push are not affected.
func (a api) checkTarget(t target, size int) error {
	if t.kind == "all" {
		return nil
	}
	if t.kind == "client" {
		return wire.CheckClientID(t.name)
	}
	if err := wire.CheckName(t.kind, t.name); err != nil {
		return err
	}
	if t.kind == "channel" && wire.IsSystem(t.name) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is a system channel", t.name)
	}
	if t.kind != "channel" {
		return nil
	}
	if err := a.checkAllowed(namespace.Publish, t.name); err != nil {
		return err
	}
	if r := a.Namespaces().For(t.name); r != nil && r.Message > 0 && size > r.Message {
		return wire.Errorf(wire.TooLarge, "data: %d bytes, at most %d are allowed to channel %s", size, r.Message, t.name)
	}
	return nil
}

// checkAllowed returns an error if the backend may not do the action on the channel. If namespaces
// are configured, one of them must match the channel. A channel that none matches is closed to
// clients, so a push to it would reach no client.
func (a api) checkAllowed(action namespace.Action, channel string) error {
	set := a.Namespaces()
	if !set.Configured() {
		return nil
	}
	backend := namespace.Subject{Backend: true}
	if !set.Allows(backend, action, channel) {
		_, why := set.Decide(backend, action, channel)
		return wire.Errorf(wire.Forbidden, "channel %s: %s", channel, why)
	}
	return nil
}
