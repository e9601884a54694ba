package backend

import (
	"context"
	"net/http"
)

// Erase names a message of a channel that is to be erased.
type Erase struct {
	Channel string `json:"channel"`
	ID      int64  `json:"id"`
	Durable bool   `json:"durable,omitempty"` // answer after a replica of Redis has erased the message
}

// Erased is the answer to EraseMessage.
type Erased struct {
	Channel string `json:"channel"`
	ID      int64  `json:"id"`
	Erased  int64  `json:"erased"` // when the message was erased, Unix ms
	// Report is the id of the report that clients receive. Zero means that it is not known any more.
	Report    int64 `json:"report"`
	Servers   int   `json:"servers"`   // live brokers with subscribers
	Duplicate bool  `json:"duplicate"` // the message was erased before
}

// EraseMessage erases a message of a channel: its data and its author leave the store, the
// histories and the memory of all brokers. Clients receive the id of the message. Its changes of
// fields stay. The error has the code client.NotFound if the channel has no such message.
func (c *Client) EraseMessage(ctx context.Context, e Erase) (answer Erased, err error) {
	err = c.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/erase", Body: e}, &answer)
	return answer, err
}
