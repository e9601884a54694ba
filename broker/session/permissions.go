package session

import (
	"strings"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// resumeWindow is how far back a client without the history right can resume. It covers a tunnel or
// a deploy, but does not let the client read messages from before it was admitted.
const resumeWindow = 5 * time.Minute

// permissions holds the access rules and the client to which they apply. It is made for one message
// and not kept, because the rules and the client's grants change. It is a value, so any goroutine
// may use it.
type permissions struct {
	rules   *namespace.Set
	subject namespace.Subject
	refused func(what string) // Metrics.Refused
}

// newPermissions returns the permissions of a client under the current rules.
func newPermissions(o *Options, subject namespace.Subject) permissions {
	return permissions{o.Access.Namespaces(), subject, o.Metrics.Refused}
}

// check returns nil if the client may do the action on the channel. Otherwise it counts the refusal
// and returns a *wire.Error with the reason.
func (p permissions) check(action namespace.Action, channel string) error {
	if p.rules.Allows(p.subject, action, channel) {
		return nil
	}
	_, why := p.rules.Decide(p.subject, action, channel)
	p.refused(action.String())
	return wire.Errorf(wire.Forbidden, "channel %s: not allowed to %s: %s", channel, verbs[action], why)
}

var verbs = map[namespace.Action]string{
	namespace.Subscribe: "subscribe", namespace.Publish: "publish",
	namespace.Presence: "see who is there", namespace.History: "see its history", namespace.State: "read its state",
	namespace.Durable: "wait for a replica",
}

// checkSubscribe checks whether the client may subscribe and, if the message asks for that, watch
// the presence and read the state.
func (p permissions) checkSubscribe(req wire.Request) error {
	if err := checkChannel(req); err != nil {
		return err
	}
	if err := p.check(namespace.Subscribe, req.Channel); err != nil {
		return err
	}
	if req.Presence {
		if err := p.check(namespace.Presence, req.Channel); err != nil {
			return err
		}
	}
	if selector := selectorOf(req); selector != nil {
		return p.checkState(req.Channel, selector.Prefix)
	}
	return nil
}

// seesAuthors returns whether the client sees who has published the messages of a channel. A client
// that may see the presence does. In a channel that shows aliases, all readers of the state do.
func (p permissions) seesAuthors(channel string) bool {
	if p.rules.Allows(p.subject, namespace.Presence, channel) {
		return true
	}
	rule := p.rules.For(channel)
	return rule != nil && rule.By != "" && p.rules.Allows(p.subject, namespace.State, channel)
}

// authorFilter returns what the client sees of the messages of a channel without the state.
func (p permissions) authorFilter(channel string) state.Filter {
	return state.Filter{By: p.seesAuthors(channel)}
}

// checkWatchUser checks whether the client may watch a user's presence. channel is the user's
// system channel.
func (p permissions) checkWatchUser(channel, user string) error {
	if err := wire.CheckName("user", user); err != nil {
		return err
	}
	if !p.rules.MayFollow(p.subject, user) {
		return notWatchable(channel)
	}
	return nil
}

// notWatchable returns the refusal to watch the presence of a user.
func notWatchable(channel string) *wire.Error {
	return wire.Errorf(wire.Forbidden, "channel %s: not allowed to subscribe", channel)
}

// recentOnly returns whether a subscription that resumes at the id `after` may only show recent
// messages: the id is older than resumeWindow, and the client does not have the history right.
func (p permissions) recentOnly(channel string, after *int64) bool {
	if after == nil || *after >= oldestRecent() {
		return false
	}
	return !p.rules.Allows(p.subject, namespace.History, channel)
}

// oldestRecent returns the id of the oldest message that is within resumeWindow.
func oldestRecent() int64 { return queue.IDAt(time.Now().Add(-resumeWindow)) }

// checkChannel checks the name of a channel that a client may use.
func checkChannel(req wire.Request) error {
	if err := wire.CheckName("channel", req.Channel); err != nil {
		return err
	}
	if wire.IsSystem(req.Channel) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is a system channel", req.Channel)
	}
	return nil
}

// selectorOf returns which part of the state a subscribe or a history asks for, nil for none.
func selectorOf(req wire.Request) *wire.Selector {
	if req.StateRequest == nil {
		return nil
	}
	return req.State
}

// checkState checks whether the client may read the fields of a channel that begin with a prefix.
func (p permissions) checkState(channel, prefix string) error {
	if err := p.check(namespace.State, channel); err != nil {
		return err
	}
	if state.CheckPrefix(prefix) != nil {
		return wire.Errorf(wire.BadRequest, "%.40q is not the beginning of a field's name", prefix)
	}
	if strings.HasPrefix(prefix, "$$") {
		return wire.Errorf(wire.Forbidden, "prefix %.40s: only the backend may see these fields", prefix)
	}
	return nil
}

// filter returns what the client sees of the fields of a channel that begin with a prefix, and of
// its messages, if it may read the state.
func (p permissions) filter(channel, prefix string) state.Filter {
	return state.Filter{State: true, Prefix: prefix, By: p.seesAuthors(channel)}
}
