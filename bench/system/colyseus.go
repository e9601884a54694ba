package system

import (
	"context"
	"errors"
	"io"

	"switchboard/bench/swarm"
)

// colyseusVersion holds the versions in bench/peers/colyseus/package.json.
const colyseusVersion = "@colyseus/core 0.18.17, ws-transport 0.18.4, schema 5.0.34, Node.js 22.23.3"

// Colyseus is a game server on Colyseus, in bench/peers/colyseus. It has rooms and no channels:
// only package rooms plays on it.
//
// The server runs with the Node.js of its npm packages, because Colyseus needs a newer one than
// some distributions have.
type Colyseus struct {
	// Patches is "each" for a patch with every change, or the interval of the patches in milliseconds.
	Patches string
	Log     io.Writer // receives a line before installing. Zero means standard error
}

// Version returns the versions of the packages.
func (*Colyseus) Version() string { return colyseusVersion }

// Notes describes the configuration.
func (c *Colyseus) Notes() string {
	if c.Patches == "each" {
		return "one process; `broadcastPatch` after each change, which sends it at once as the broker does; not acknowledged"
	}
	return "one process; the default patch rate: changes wait up to 50 ms and are sent together; not acknowledged"
}

// Start implements [System].
func (c *Colyseus) Start(ctx context.Context, _ Setup) (Running, error) {
	p, err := startNode(ctx, c.Log, "colyseus", true, c.Patches)
	if err != nil {
		return nil, err
	}
	return &ColyseusServer{p}, nil
}

// ColyseusServer is a running [Colyseus].
type ColyseusServer struct{ *peer }

// Dialect returns nil: there are no channels.
func (*ColyseusServer) Dialect() swarm.Dialect { return nil }

// Publisher returns an error: there are no channels.
func (*ColyseusServer) Publisher() (Publisher, error) { return nil, errors.ErrUnsupported }
