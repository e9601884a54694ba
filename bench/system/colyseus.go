package system

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"

	"switchboard/internal/freeport"
)

// ColyseusVersion holds the versions in bench/peers/colyseus/package.json.
const ColyseusVersion = "@colyseus/core 0.18.17, ws-transport 0.18.4, schema 5.0.34, Node.js 22.23.3"

// Colyseus is a running game server on Colyseus, in bench/peers/colyseus. It is no [System]: it has
// rooms and no channels.
type Colyseus struct{ *peer }

// StartColyseus starts the server. patches is "each" for a patch with every change, or the interval
// of the patches in milliseconds. The log receives a line before installing; nil means standard
// error.
//
// The server runs with the Node.js of its npm packages, because Colyseus needs a newer one than
// some distributions have.
func StartColyseus(ctx context.Context, patches string, log io.Writer) (*Colyseus, error) {
	dir, err := installNode(ctx, log, "colyseus")
	if err != nil {
		return nil, err
	}
	addr, err := freeport.Address()
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(filepath.Join(dir, "node_modules", ".bin", "node"), filepath.Join(dir, "server.js"), host, port, patches)
	cmd.Env = append(os.Environ(), "NODE_ENV=production")
	p, err := startPeer(ctx, "colyseus", addr, cmd)
	if err != nil {
		return nil, err
	}
	return &Colyseus{p}, nil
}
