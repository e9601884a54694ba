package cluster

import (
	"context"
	"encoding/json"

	"switchboard/broker/api"
	"switchboard/internal/wire"
)

// replyCall is the body of callReply.
type replyCall struct {
	Client string          `json:"client"`
	Ref    int64           `json:"ref"`
	Data   json.RawMessage `json:"data"`
}

// endCall is the body of callEnd.
type endCall struct {
	Client  string         `json:"client"`
	Channel string         `json:"channel"`
	Code    wire.ErrorCode `json:"code"` // Code and Message are the reason for the client
	Message string         `json:"message"`
}

// Disconnect implements api.Cluster: it closes a client's connection on the given server.
func (c *Cluster) Disconnect(ctx context.Context, server, client string) (closed bool, err error) {
	if c.isSelf(server) {
		return c.parts.Sessions.Disconnect(client), nil
	}
	err = c.call(ctx, server, callDisconnect, client, &closed)
	return closed, err
}

// Reply implements api.Cluster: it delivers a reply to a client on the given server.
func (c *Cluster) Reply(ctx context.Context, server, client string, ref int64, data json.RawMessage) (found bool, err error) {
	if c.isSelf(server) {
		return c.parts.Sessions.Reply(client, ref, data), nil
	}
	err = c.call(ctx, server, callReply, replyCall{client, ref, data}, &found)
	return found, err
}

// EndSubscription ends a client's subscription on the given server, and tells the client why. It
// does nothing if the server is not live.
func (c *Cluster) EndSubscription(ctx context.Context, server, client, channel string, why *wire.Error) error {
	q := endCall{client, channel, why.Code, why.Message}
	if c.isSelf(server) {
		c.endHere(q)
		return nil
	}
	var found bool
	return c.call(ctx, server, callEnd, q, &found)
}

func (c *Cluster) endHere(q endCall) (found bool) {
	return c.parts.Sessions.Unsubscribe(q.Client, q.Channel, &wire.Error{Code: q.Code, Message: q.Message})
}

// Connection implements api.Cluster: it describes the connection of a client on the given server.
func (c *Cluster) Connection(ctx context.Context, server, client string) (found *api.Connection, err error) {
	if c.isSelf(server) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return c.describe(ctx, client)
	}
	err = c.call(ctx, server, callDescribe, client, &found)
	return found, err
}

// describe describes the connection of a client on this server. It is nil if there is none.
func (c *Cluster) describe(ctx context.Context, client string) (*api.Connection, error) {
	d, known, err := c.parts.Sessions.Describe(ctx, client)
	if err != nil || !known {
		return nil, err
	}
	return &api.Connection{Address: d.Address, Expires: d.Expires, Channels: d.Channels}, nil
}
