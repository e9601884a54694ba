package rights

import (
	"fmt"
	"strings"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
)

// limits returns the limits of a namespace as text.
func limits(r *namespace.Rule) string {
	var list []string
	if r.Message > 0 {
		list = append(list, fmt.Sprintf("%d bytes a message", r.Message))
	}
	if r.PublishRate > 0 {
		list = append(list, fmt.Sprintf("%g messages a second from a connection", r.PublishRate))
	}
	if r.HistoryMessages > 0 {
		list = append(list, fmt.Sprintf("%d messages kept", r.HistoryMessages))
	}
	if r.HistoryAge > 0 {
		list = append(list, fmt.Sprintf("kept for %v", r.HistoryAge))
	}
	switch {
	case r.StateKeep == namespace.KeepForever:
		list = append(list, "state kept forever")
	case r.StateKeep > 0:
		list = append(list, fmt.Sprintf("state kept for %v", r.StateKeep))
	}
	if r.FieldsGone {
		list = append(list, "an event for fields that end")
	}
	return strings.Join(list, ", ")
}

// fieldLimits returns the rules for a field that a client may write, as text.
func fieldLimits(r *namespace.Rule, m namespace.FieldMatch, field string) string {
	var list []string
	add := func(show bool, format string, args ...any) {
		if show {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	f := m.Rule
	add(f.Write == namespace.Claim, "only the user who wrote it may change it")
	add(m.Parent != "", "part of %s: only the holder of that field may write it", m.Parent)
	add(f.Own, "the client owns it")
	add(f.TTL > 0, "a lease of at most %v", f.TTL)
	add(f.Bytes > 0, "%d bytes", f.Bytes)
	group := state.Group(field)
	add(r.GroupMax(group) > 0, "%d fields in %s", r.GroupMax(group), group)
	switch grace := r.GraceOf(f); {
	case grace == namespace.GraceNever:
		list = append(list, "stays after its owner has left")
	case f.Grace > 0 || f.Own:
		list = append(list, fmt.Sprintf("ends %v after its owner has left", grace))
	}
	return strings.Join(list, ", ")
}
