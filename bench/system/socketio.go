package system

import (
	"context"
	"io"

	"switchboard/bench/swarm"
)

// socketIOVersion holds the versions in bench/peers/socketio/package.json.
const socketIOVersion = "4.8.4, redis-adapter 8.3.0"

// SocketIO is a small server on socket.io with its Redis adapter, in bench/peers/socketio.
type SocketIO struct {
	Log io.Writer // receives a line before installing. Zero means standard error
}

// Version returns the versions of the packages.
func (*SocketIO) Version() string { return socketIOVersion }

// Notes describes the configuration.
func (*SocketIO) Notes() string {
	return "one Node.js process, WebSocket only, no compression, a ping every 25 s, a room for each channel; the Redis adapter keeps " +
		"nothing, so disconnected clients miss messages; publishers use POST with keep-alive, answered when the message was " +
		"passed to the sockets and to Redis, without waiting for either"
}

// Start implements [System].
func (c *SocketIO) Start(ctx context.Context, s Setup) (Running, error) {
	var args []string
	if s.Redis != "" {
		args = append(args, "redis://"+s.Redis)
	}
	p, err := startNode(ctx, c.Log, "socketio", false, args...)
	if err != nil {
		return nil, err
	}
	return &socketIO{p}, nil
}

type socketIO struct{ *peer }

func (r *socketIO) Dialect() swarm.Dialect { return &swarm.SocketIO{Addr: r.addr} }

func (r *socketIO) Publisher() (Publisher, error) {
	conn, err := DialHTTP(r.addr)
	if err != nil {
		return nil, err
	}
	return &httpPublisher{HTTPConn: conn, path: "/publish/"}, nil
}
