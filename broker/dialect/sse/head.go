package sse

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"switchboard/internal/wire"
)

// start is the state of a stream until the head of its response is written. The first event decides
// the status, so the head is written together with it.
type start struct {
	headers http.Header // headers of the transport for the response
	refusal *wire.Error // the error of connect, or nil
	secret  string      // the secret in the request
	fromID  bool        // secret comes from the last id, not from the client
}

// refusalOf returns the error for a client that should not reconnect. It returns nil if the client
// should reconnect, or if there is no error to send. An error without a code means a response with
// status 204.
func (s *start) refusalOf(reason wire.CloseReason, detail string) *wire.Error {
	switch {
	case reason == wire.CloseSuperseded, reason == wire.CloseDisconnected:
		return &wire.Error{} // 204
	case reason == wire.CloseExpired: // the same URL would bring the same token
		return &wire.Error{Code: wire.Unauthorized, Message: detail}
	case reason.Reconnect():
		return nil
	case s.refusal != nil:
		return s.refusal
	case reason == wire.CloseUnauthorized:
		return &wire.Error{Code: wire.Unauthorized, Message: detail}
	}
	return nil
}

// appendHead appends the head of the response, once.
func (c *codec) appendHead(dst []byte) []byte {
	if c.start() == nil {
		return dst
	}
	dst = c.appendStatus(dst, http.StatusOK)
	return append(dst, "Content-Type: text/event-stream\r\nX-Accel-Buffering: no\r\n\r\n"...)
}

// appendStatus appends the status and the headers of every response.
func (c *codec) appendStatus(dst []byte, status int) []byte {
	dst = append(dst, "HTTP/1.1 "...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	dst = append(dst, ' ')
	dst = append(dst, http.StatusText(status)...)
	dst = append(dst, "\r\nDate: "...)
	dst = time.Now().UTC().AppendFormat(dst, http.TimeFormat)
	dst = append(dst, "\r\nCache-Control: no-store\r\nConnection: close\r\n"...)
	for name, values := range c.extra.start.headers {
		for _, value := range values {
			dst = append(dst, name...)
			dst = append(dst, ": "...)
			dst = append(dst, value...)
			dst = append(dst, "\r\n"...)
		}
	}
	c.extra.start = nil
	c.dropEmptyExtra()
	return dst
}

// appendRefusal appends a whole response that refuses the stream. An error without a code is 204.
func (c *codec) appendRefusal(dst []byte, refusal *wire.Error) []byte {
	if refusal.Code == "" {
		return append(c.appendStatus(dst, http.StatusNoContent), "\r\n"...)
	}
	body := RefusalBody(refusal)
	dst = c.appendStatus(dst, refusal.Code.Status())
	dst = append(dst, "Content-Type: application/json\r\nContent-Length: "...)
	dst = strconv.AppendInt(dst, int64(len(body)), 10)
	dst = append(dst, "\r\n\r\n"...)
	return append(dst, body...)
}

// RefusalBody returns the JSON of an error, as the HTTP API has it.
func RefusalBody(refusal *wire.Error) []byte {
	fields := map[string]any{"code": refusal.Code, "message": refusal.Message}
	body, _ := json.Marshal(map[string]any{"error": fields}) // strings only
	return append(body, '\n')
}
