package system

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"switchboard/bench/swarm"
	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
)

// centrifugeVersion is the version in bench/peers/centrifuge/go.mod.
const centrifugeVersion = "v0.40.1"

// Centrifuge is a small server on the centrifuge library. It is a separate Go module in
// bench/peers/centrifuge.
type Centrifuge struct {
	Dir    string // existing directory; the server is built into it once
	Memory bool   // the history is in the memory of the process and not in Redis
	// Map makes all subscriptions map subscriptions, and publishers change the entry [StateField].
	// With Guarded they change it only if it exists.
	Map, Guarded bool
	Nodes        int       // in the process; only the first one takes connections. Zero means 1
	Log          io.Writer // receives a line before building. Zero means standard error
}

// Version returns the version of the library.
func (*Centrifuge) Version() string { return centrifugeVersion }

// Notes describes the configuration.
func (c *Centrifuge) Notes() string {
	broker, answered := "Redis", "Redis has the message"
	if c.Memory {
		broker, answered = "memory", "the message is stored in memory"
	}
	if c.Map {
		entry := "one entry"
		if c.Guarded {
			entry += " that must exist"
		}
		return "map subscriptions, " + broker + " map broker; persistent maps with a stream of 10,000 changes for an hour; " +
			"publishers use POST, and each changes " + entry + "; ephemeral maps for cursors; otherwise as without maps"
	}
	return "the library's defaults except for a pool of write buffers, which saves memory; JSON over WebSocket, " + broker +
		" broker with a history of 10,000 messages per channel for an hour, recovery and positioning on, presence off, " +
		"a ping every 25 s; publishers use POST with keep-alive to net/http, answered when " + answered
}

// build builds the server unless it exists.
func (c *Centrifuge) build(ctx context.Context) (binary string, err error) {
	binary = filepath.Join(c.Dir, "centrifuge")
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	source, err := moduleFile(ctx, "bench", "peers", "centrifuge")
	if err != nil {
		return "", err
	}
	logf(c.Log, "building a server on centrifuge %s", centrifugeVersion)
	return binary, testbed.Build(ctx, "-C", source, "-mod=readonly", "-o", binary, ".")
}

// Start implements [System].
func (c *Centrifuge) Start(ctx context.Context, s Setup) (Running, error) {
	binary, err := c.build(ctx)
	if err != nil {
		return nil, err
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	redis := s.Redis
	if c.Memory {
		redis = ""
	}
	maps := ""
	switch {
	case c.Map && s.Cursors:
		maps = "ephemeral"
	case c.Map:
		maps = "persistent"
	}
	p, err := startPeer(ctx, "centrifuge", addr, exec.Command(binary, "--addr", addr, "--redis", redis, "--map", maps, "--nodes", fmt.Sprint(max(1, c.Nodes))))
	if err != nil {
		return nil, err
	}
	return &centrifuge{p, c, s.Cursors}, nil
}

type centrifuge struct {
	*peer
	*Centrifuge
	cursors bool
}

func (r *centrifuge) Dialect() swarm.Dialect {
	stream := swarm.Centrifuge{Addr: r.addr}
	switch entries := (swarm.CentrifugeMap{Centrifuge: stream, Key: StateField}); {
	case r.cursors:
		return &swarm.CentrifugeCursors{CentrifugeMap: entries, Map: r.Map}
	case r.Map:
		return &entries
	}
	return &stream
}

func (r *centrifuge) Publisher() (Publisher, error) {
	conn, err := DialHTTP(r.addr)
	if err != nil {
		return nil, err
	}
	p := &centrifugePublisher{httpPublisher: httpPublisher{HTTPConn: conn, path: "/publish/"}}
	if r.Map {
		p.path, p.suffix = "/map/", "/"+StateField
	}
	if r.Guarded {
		p.suffix += "?if=exists"
	}
	return p, nil
}

type centrifugePublisher struct {
	httpPublisher
	body []byte
}

// PublishBatch sends a list of messages, which the server publishes concurrently.
func (p *centrifugePublisher) PublishBatch(ctx context.Context, channels []string, data [][]byte) error {
	p.body = append(p.body[:0], '[')
	for i, channel := range channels {
		if i > 0 {
			p.body = append(p.body, ',')
		}
		p.body = fmt.Appendf(p.body, `{"channel":%q,"data":%s}`, channel, data[i])
	}
	p.body = append(p.body, ']')
	_, err := p.Post(ctx, "/publish", jsonHeader, p.body)
	return err
}
