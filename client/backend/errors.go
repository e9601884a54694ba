package backend

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"switchboard/client"
)

// Error is a refusal of the broker.
type Error struct {
	// Code is one of the codes of package client, such as client.NotFound. An answer of a proxy has
	// the code of its status.
	Code    client.ErrorCode
	Message string
	Status  int           // of the whole answer; 0 for the error of one target of a push
	After   time.Duration // the delay after which the call may succeed; 0 if it is not known

	// Fields has the current values of the fields that refuse a change, nil for an absent field. Of
	// many fields, some have only an ID.
	Fields map[string]*client.Field
	// Group and Max are the limit that is reached, with client.Full. Group is "" for the limit of
	// the channel.
	Group string
	Max   int
	// Data has the values that led to a refusal of a room, a hold or another system of the kit.
	Data json.RawMessage
}

// Error implements error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns a [*client.Error] with the same code, so that code which handles errors of both
// clients finds it.
func (e *Error) Unwrap() error {
	return &client.Error{Code: e.Code, Message: e.Message, After: e.After}
}

// errorJSON is the error in an answer.
type errorJSON struct {
	Code    client.ErrorCode           `json:"code"`
	Message string                     `json:"message"`
	Fields  map[string]json.RawMessage `json:"fields,omitempty"`
	Group   string                     `json:"group,omitempty"`
	Max     int                        `json:"max,omitempty"`
	Data    json.RawMessage            `json:"data,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Error) UnmarshalJSON(text []byte) error {
	var raw errorJSON
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	*e = Error{Code: raw.Code, Message: raw.Message, Group: raw.Group, Max: raw.Max, Data: raw.Data}
	fields, err := decodeFields(raw.Fields)
	e.Fields = fields
	return err
}

// MarshalJSON implements json.Marshaler. The error has the form of the API.
func (e *Error) MarshalJSON() ([]byte, error) {
	raw := errorJSON{Code: e.Code, Message: e.Message, Group: e.Group, Max: e.Max, Data: e.Data}
	if len(e.Fields) > 0 {
		raw.Fields = map[string]json.RawMessage{}
		for name, f := range e.Fields {
			raw.Fields[name] = encodeField(f)
		}
	}
	return json.Marshal(raw)
}

// newError returns the error of an answer.
func newError(res *http.Response, body []byte) error {
	var answer struct {
		Error   *Error   `json:"error"`
		Results []Result `json:"results"`
	}
	e := &Error{}
	if err := json.Unmarshal(body, &answer); err == nil && answer.Error != nil && answer.Error.Code != "" {
		e = answer.Error
	} else {
		e.Code, e.Message = codeOf(res.StatusCode), fmt.Sprintf("the answer is %s, and not that of a broker: is the URL right?", res.Status)
	}
	e.Status = res.StatusCode
	if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.After = time.Duration(seconds) * time.Second
	}
	if len(answer.Results) > 0 {
		return &storedError{e, answer.Results}
	}
	return e
}

// storedError is the error of a push that is stored although it failed, see [Client.Push].
type storedError struct {
	refusal *Error
	results []Result
}

func (e *storedError) Error() string { return e.refusal.Error() }

// Unwrap returns the refusal.
func (e *storedError) Unwrap() error { return e.refusal }

// codeOf returns the code for the status of an answer without one.
func codeOf(status int) client.ErrorCode {
	switch status {
	case http.StatusUnauthorized:
		return client.Unauthorized
	case http.StatusForbidden:
		return client.Forbidden
	case http.StatusNotFound, http.StatusMethodNotAllowed:
		return client.NotFound
	case http.StatusRequestEntityTooLarge:
		return client.TooLarge
	case http.StatusTooManyRequests:
		return client.RateLimited
	case http.StatusGatewayTimeout:
		return client.Timeout
	case http.StatusBadGateway, http.StatusServiceUnavailable:
		return client.Unavailable
	}
	return client.BadRequest
}
