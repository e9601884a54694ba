package api

import (
	"errors"
	"net/http"

	"switchboard/broker/rights"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// maxCheckedFields is the most fields of one check.
const maxCheckedFields = 64

// check answers what a client may do on a channel, and why. A token that is refused is an answer
// too: it has the reason.
func (a api) check(r *http.Request) (any, error) {
	var q rights.Query
	switch err := decodeBody(r.Body, &q); {
	case err != nil:
		return nil, err
	case q.Channel == "":
		return nil, wire.Errorf(wire.BadRequest, "channel: it is empty")
	case len(q.Fields) > maxCheckedFields:
		return nil, wire.Errorf(wire.BadRequest, "fields: %d names, at most %d are allowed", len(q.Fields), maxCheckedFields)
	}
	answer, err := a.Rights().Explain(q)
	if err == nil && q.Token != "" {
		use := registry.UserBinding{User: answer.User, Issued: answer.Issued}
		use.Client = wire.ClientID(answer.User, answer.Client)
		err = a.Registry.CheckTokens(r.Context(), []registry.UserBinding{use})[0]
		switch {
		case errors.Is(err, registry.ErrRevoked):
			err = errors.New("token: it was revoked")
		case err != nil:
			return nil, err
		}
	}
	if err != nil {
		return map[string]string{"channel": q.Channel, "error": err.Error()}, nil
	}
	return answer, nil
}
