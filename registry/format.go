package registry

import (
	"strconv"
	"strings"
	"time"
)

// parseBinding reads a value of u_{user}, `<server>:<generation>`. The server's name may
// have colons of its own. It is false for what nobody here has written; generations are
// below 2^53, where Lua still tells neighbours apart.
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

// parseServer reads s_{id}. A field that is missing or no number counts as zero: a lease
// without a readable description is a lease still.
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
	}
}

// globEscaper makes a prefix match itself in a pattern of SSCAN.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)
