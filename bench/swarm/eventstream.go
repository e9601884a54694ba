package swarm

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
)

// EventStream is this project's protocol over Server-Sent Events. The request names the channel,
// and the response is a stream of events whose data is that of [Switchboard]. It does not resume
// after [Swarm.Reconnect]. Use an EventStream for one Swarm only.
type EventStream struct{ Switchboard }

var (
	responseStart = []byte("HTTP/")
	headEnd       = []byte("\r\n\r\n")
	eventEnd      = []byte("\n\n")
	idField       = []byte("id:")
	dataField     = []byte("data:")
)

// NextFrame implements [Dialect]. A frame is the head of the response, an event or a comment.
func (d *EventStream) NextFrame(buf []byte) (Frame, int, error) {
	end := eventEnd
	if bytes.HasPrefix(buf, responseStart) {
		end = headEnd
	}
	n := bytes.Index(buf, end)
	switch {
	case n > maxMessage, n < 0 && len(buf) > maxMessage:
		return Frame{}, 0, errTooLong
	case n < 0:
		return Frame{}, 0, nil
	}
	return Frame{OpText, buf[:n]}, n + len(end), nil
}

// Upgrade implements [Dialect].
func (d *EventStream) Upgrade(Connection) []byte { return nil }

// Subscribe sends the request.
func (d *EventStream) Subscribe(c Connection) error {
	if c.Resuming() {
		return errors.New("an event stream cannot resume")
	}
	q := url.Values{"client": {c.Client()}}
	if d.Users {
		q.Set("user", c.Client())
	} else {
		q.Set("secret", secretOf(c.Client()))
	}
	if d.Queue {
		q.Set("ack", "auto")
	} else {
		q.Set("channel", c.Channel())
	}
	return c.Send(fmt.Appendf(nil, "GET /sse?%s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", q.Encode(), d.Addr))
}

// Handle implements [Dialect].
func (d *EventStream) Handle(c Connection, body []byte) error {
	if bytes.HasPrefix(body, responseStart) {
		return checkHead(body)
	}
	data, hasID := eventData(body)
	switch {
	case data == nil: // a comment
		return nil
	case !hasID:
		return fmt.Errorf("an event has no id: %.200q", body)
	}
	return d.Switchboard.Handle(c, data)
}

// checkHead returns an error if a response does not begin an event stream.
func checkHead(head []byte) error {
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) || !bytes.Contains(head, []byte("\r\nContent-Type: text/event-stream")) {
		return fmt.Errorf("the request was answered with %.300q", head)
	}
	return nil
}

// eventData returns the data of an event in the broker's notation, which is one line. data is nil
// if there is none.
func eventData(event []byte) (data []byte, hasID bool) {
	for len(event) > 0 && data == nil {
		line, rest, _ := bytes.Cut(event, eventEnd[:1])
		if bytes.HasPrefix(line, dataField) {
			data = line[len(dataField):]
		}
		hasID = hasID || bytes.HasPrefix(line, idField) && len(line) > len(idField)
		event = rest
	}
	return data, hasID
}
