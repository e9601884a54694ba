package api

import (
	"errors"
	"net/http"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// erase erases a message of a channel. Namespaces do not restrict it: a message must go, even if
// the rules of its channel have changed since.
func (a api) erase(r *http.Request) (any, error) {
	var body struct {
		Channel string `json:"channel" required:"true"`
		ID      int64  `json:"id" required:"true"`
		Durable bool   `json:"durable"`
	}
	if err := decodeBody(r.Body, &body); err != nil {
		return nil, err
	}
	if err := checkErase(body.Channel, body.ID); err != nil {
		return nil, err
	}
	erased, err := a.Pusher.Erase(r.Context(), body.Channel, body.ID, body.Durable)
	switch {
	case errors.Is(err, queue.ErrNoMessage):
		err = wire.Errorf(wire.NotFound, "channel %s has no message %d", body.Channel, body.ID)
	case errors.Is(err, queue.ErrNotReplicated):
		err = wire.Errorf(wire.Unavailable, "erased, but not confirmed by a replica in time; repeat the call to wait again")
	}
	return struct {
		Channel   string `json:"channel"`
		ID        int64  `json:"id"`
		Erased    int64  `json:"erased"`
		Report    int64  `json:"report,omitempty"`
		Servers   int    `json:"servers"`
		Duplicate bool   `json:"duplicate,omitempty"`
	}{body.Channel, body.ID, erased.At, erased.Report, erased.Servers, erased.Duplicate}, err
}

// checkErase checks the name of a channel and the id of a message to erase.
func checkErase(channel string, id int64) error {
	if channel == wire.AllChannel {
		return checkMessageID(id)
	}
	if err := wire.CheckName("channel", channel); err != nil {
		return err
	}
	if wire.IsSystem(channel) {
		return wire.Errorf(wire.Forbidden, "channel %s: it is a system channel", channel)
	}
	return checkMessageID(id)
}

func checkMessageID(id int64) error {
	if id < 1 {
		return wire.Errorf(wire.BadRequest, "id: %d is not the id of a message", id)
	}
	return nil
}
