package sim

import (
	"slices"
)

// checkOwners checks, when nothing is in progress, that a field is away if and only if no owner has
// a connection that is subscribed with the state.
func (w *world) checkOwners() {
	for _, channel := range channelNames {
		for name, field := range w.model.fieldsOf(channel).stored() {
			if len(field.Owners) == 0 {
				continue
			}
			ended, following := false, false
			for _, c := range w.conns {
				if c.session == nil || !slices.Contains(field.Owners, c.client.name) {
					continue
				}
				if s := c.subs[channel]; c.state == open && s != nil && s.follows() {
					following = true
				}
				ended = ended || c.state != open // and the broker has not noticed it yet
			}
			if field.Away && following {
				w.violate("field %s of %s is away, but one of %v is subscribed with the state", name, channel, field.Owners)
			}
			if !field.Away && !following && !ended {
				w.violate("field %s of %s is not away, but none of %v is subscribed with the state", name, channel, field.Owners)
			}
		}
	}
}

// checkOwnersGone checks that the fields of clients that have left are away or have ended.
func (w *world) checkOwnersGone() {
	for _, channel := range channelNames {
		for name, field := range w.model.fieldsOf(channel).stored() {
			if len(field.Owners) > 0 && (!field.Away || w.rules.grace > 0) {
				w.violate("all clients left, but %s of %s is owned by %v, away %v until %d", name, channel, field.Owners, field.Away, field.Until)
			}
		}
	}
}
