package registry

import (
	"strconv"
	"strings"
	"time"
)

// parseBinding parses a value of u_{user}, `<server>:<generation>`. The server's name may contain
// colons. It returns false for a malformed value. A generation is below 2^53, so that Lua
// represents it exactly.
func parseBinding(client, value string) (Binding, bool) {
	colon := strings.LastIndexByte(value, ':')
	if colon < 0 {
		return Binding{}, false
	}
	generation, err := strconv.ParseUint(value[colon+1:], 10, 53)
	if err != nil {
		return Binding{}, false
	}
	return Binding{Client: client, Server: value[:colon], Generation: int64(generation)}, true
}

// parseServer parses s_{id}. A field that is missing or not a number counts as zero: a lease with a
// malformed description is still a lease.
func parseServer(id string, fields map[string]string) Server {
	number := func(field string) int64 {
		n, _ := strconv.ParseInt(fields[field], 10, 64)
		return n
	}
	return Server{
		ID:          id,
		Host:        fields["host"],
		Version:     fields["version"],
		StartedAt:   time.UnixMilli(number("started_at")).UTC(),
		LastActive:  time.UnixMilli(number("last_active")).UTC(),
		Connections: number("connections"),
		Users:       number("users"),
		Channels:    number("channels"),
		Watching:    number("watching"),
		Can:         fields["can"],

		StatesChanged: number("states_changed"),
	}
}
