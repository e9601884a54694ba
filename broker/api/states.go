package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// The limits of a query of states.
const (
	maxStateChannels = 100
	maxStateFields   = 8
)

// stateAnswer is the state of one channel, or a part of it.
type stateAnswer struct {
	Channel string          `json:"channel"`
	ID      *int64          `json:"id,omitempty"` // the last id of the channel
	Fields  json.RawMessage `json:"fields,omitempty"`
	Cursor  string          `json:"cursor,omitempty"`
	Error   *errorBody      `json:"error,omitempty"` // only for a query: why this channel was not read
}

// channelState answers a page of the state of a channel.
func (a api) channelState(r *http.Request) (any, error) {
	read, err := a.stateRead(r)
	if err != nil {
		return nil, err
	}
	outcome := a.Queue.ReadStates(r.Context(), []queue.StateRead{read})[0]
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	fields, next := outcome.Value.Show(backendFilter)
	return stateAnswer{Channel: read.Channel, ID: &outcome.Value.ID, Fields: fields, Cursor: next}, nil
}

// stateRead returns what to read from the queue for a page.
func (a api) stateRead(r *http.Request) (read queue.StateRead, err error) {
	query := r.URL.Query()
	read = queue.StateRead{Prefix: query.Get("prefix"), Bytes: state.PageBytes}
	read.Channel, err = PathName(r, "channel")
	var err1 error
	read.Cursor, read.Limit, err1 = page(r, 1)
	if err := cmp.Or(err, err1); err != nil {
		return read, err
	}
	if err := state.CheckPrefix(read.Prefix); err != nil {
		return read, errorAt("prefix", err)
	}
	if read.Cursor != "" && state.CheckName(read.Cursor) != nil {
		return read, wire.BadCursor()
	}
	return read, a.checkAllowed(namespace.State, read.Channel)
}

// errorAt adds the name of a JSON member, or of a parameter, to the error of its value.
func errorAt(name string, err error) error {
	e := wire.JSONError(err).(*wire.Error)
	return wire.Errorf(e.Code, "%s: %s", name, e.Message)
}

// queryStates answers the named fields of several channels.
func (a api) queryStates(r *http.Request) (any, error) {
	var body struct {
		Channels nameList `json:"channels" required:"true"`
		Fields   nameList `json:"fields" required:"true"`
	}
	if err := decodeBody(r.Body, &body); err != nil {
		return nil, err
	}
	if err := checkStateQuery(body.Channels, body.Fields); err != nil {
		return nil, err
	}
	answers := a.readNamed(r.Context(), body.Channels, body.Fields)
	if !slices.ContainsFunc(answers, func(s stateAnswer) bool { return s.Error == nil }) {
		e := answers[0].Error
		return e.answer(pushResponse{Error: e}), nil
	}
	return map[string]any{"channels": answers}, nil
}

// readNamed reads the named fields of the channels. Each answer has its own error.
func (a api) readNamed(ctx context.Context, channels, names []string) []stateAnswer {
	answers := make([]stateAnswer, len(channels))
	var reads []queue.StateRead
	var readAnswers []*stateAnswer // one for each of reads
	for i, channel := range channels {
		answers[i].Channel = channel
		if err := a.checkAllowed(namespace.State, channel); err != nil {
			answers[i].Error = a.toErrorBody(err)
			continue
		}
		reads = append(reads, queue.StateRead{Channel: channel, Fields: names})
		readAnswers = append(readAnswers, &answers[i])
	}
	for i, outcome := range a.Queue.ReadStates(ctx, reads) {
		answer := readAnswers[i]
		if outcome.Err != nil {
			answer.Error = a.toErrorBody(outcome.Err)
			continue
		}
		answer.ID, answer.Fields = &outcome.Value.ID, showNamed(names, outcome.Value.Fields)
	}
	return answers
}

// checkStateQuery checks the names of a query.
func checkStateQuery(channels, names []string) error {
	if n := len(channels); n == 0 || n > maxStateChannels {
		return wire.Errorf(wire.BadRequest, "channels: %d names, between 1 and %d are allowed", n, maxStateChannels)
	}
	if n := len(names); n == 0 || n > maxStateFields {
		return wire.Errorf(wire.BadRequest, "fields: %d names, between 1 and %d are allowed", n, maxStateFields)
	}
	for i, channel := range channels {
		if err := wire.CheckName("channel", channel); err != nil {
			return errorAt(fmt.Sprintf("channels[%d]", i), err)
		}
	}
	for i, name := range names {
		if err := state.CheckName(name); err != nil {
			return errorAt(fmt.Sprintf("fields[%d]", i), err)
		}
		if slices.Contains(names[:i], name) {
			return wire.Errorf(wire.BadRequest, "fields[%d]: field %s: it appears twice", i, name)
		}
	}
	return nil
}

// showNamed returns the named fields as JSON, in the order of names. An absent field is null. A
// field that would make the JSON larger than state.PageBytes has only its id.
func showNamed(names []string, fields []queue.NamedField) json.RawMessage {
	w := state.FieldsWriter{Filter: backendFilter}
	for _, name := range names {
		i := slices.IndexFunc(fields, func(f queue.NamedField) bool { return f.Name == name })
		if i < 0 {
			w.AddShort(name, nil)
			continue
		}
		shown := fields[i].Show()
		w.AddShort(name, &shown)
	}
	return w.JSON()
}
