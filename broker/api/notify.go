package api

import (
	"encoding/json"
	"net/http"

	"switchboard/internal/payload"
	"switchboard/internal/wire"
)

func (a api) notify(r *http.Request) (any, error) {
	var body struct {
		Channels nameList `json:"channels"`
		Clients  nameList `json:"clients"`
	}
	err := decodeBody(r.Body, &body)
	if n := len(body.Channels) + len(body.Clients); err == nil && (n == 0 || n > a.Batch) {
		err = wire.Errorf(wire.BadRequest, "channels and clients: %d names, between 1 and %d are allowed", n, a.Batch)
	}
	for _, name := range body.Channels {
		if err == nil {
			err = wire.CheckName("channel", name)
		}
	}
	for _, name := range body.Clients {
		if err == nil {
			err = wire.CheckClientID(name)
		}
	}
	if err == nil {
		err = a.Pusher.Notify(r.Context(), body.Channels, body.Clients)
	}
	return struct{}{}, err
}

func (a api) reply(r *http.Request) (any, error) {
	var body struct {
		Client string          `json:"client" required:"true"`
		Ref    wire.Ref        `json:"ref" required:"true"`
		Data   json.RawMessage `json:"data" required:"true"`
	}
	err := decodeBody(r.Body, &body)
	if err == nil {
		err = wire.CheckClientID(body.Client)
	}
	var data []byte
	if err == nil {
		data, err = payload.Compact(body.Data, a.MaxMessage)
	}
	if err != nil {
		return nil, err
	}
	c, _, err := a.Queue.Client(r.Context(), body.Client)
	found := false
	if err == nil && c.Server != "" {
		found, err = a.Cluster.Reply(r.Context(), c.Server, body.Client, body.Ref.Value, data)
	}
	if err == nil && !found {
		err = wire.Errorf(wire.NotFound, "client %s: not connected", body.Client)
	}
	return struct{}{}, err
}
