package hook

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"switchboard/internal/backend"
	"switchboard/internal/payload"
	"switchboard/internal/setting"
	"switchboard/internal/wire"
)

// Answered is the outcome of a request of a client that the backend has answered. Denied means that
// it has answered with an error for the client.
const Answered Outcome = "answered"

// Request is the Kind of the requests of clients, in metrics and logs.
const Request Kind = "request"

// RequestOptions configures Requests. Zero means the default in a field's tag, if it has one.
type RequestOptions struct {
	// URL receives the requests, http or https. It may hold a secret, so no error contains it. Zero
	// means that there is none.
	URL string
	// Secrets sign the requests. At least one is required with URL.
	Secrets []string
	// Timeout bounds a request, from its arrival to the end of the answer.
	Timeout     time.Duration `setting:"requests.timeout" default:"5s" help:"deadline for the answer"`
	Concurrency int           `setting:"requests.concurrency" default:"64" help:"maximum number of calls at once"`
	// MaxAnswer is the longest answer, in bytes. Zero means 64 KiB.
	MaxAnswer int
	// Agent is the User-Agent. Zero means "switchboard".
	Agent string
	// TLS configures https, at version 1.2 or above. Zero means the system's authorities.
	TLS *tls.Config
}

// Enabled reports whether there is a URL.
func (o RequestOptions) Enabled() bool { return o.URL != "" }

// Validate returns an error if the options are not valid. It contains no URL and no secret.
func (o RequestOptions) Validate() error {
	switch err := backend.CheckURL(o.URL); {
	case !o.Enabled():
		return nil
	case err != nil:
		return fmt.Errorf("requests.url: %w", err)
	case o.Timeout < 0 || o.Concurrency < 0:
		return errors.New("requests: timeout and concurrency must not be below zero")
	case len(o.Secrets) == 0:
		return errors.New("requests.secrets: none is set, so the backend cannot verify the requests")
	}
	if err := backend.CheckSecrets(o.Secrets); err != nil {
		return fmt.Errorf("requests.secrets: %w", err)
	}
	return nil
}

// Requests sends the requests of clients to the backend.
type Requests struct {
	opts   RequestOptions
	poster poster
}

// NewRequests returns Requests, or the error of Validate.
func NewRequests(o RequestOptions) (*Requests, error) {
	setting.Fill(&o)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 64<<10)
	o.Agent = cmp.Or(o.Agent, "switchboard")
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Requests{opts: o, poster: newPoster(o.TLS, o.Concurrency, o.Secrets, o.Agent)}, nil
}

// Concurrency returns the most requests that are sent at once.
func (r *Requests) Concurrency() int { return r.opts.Concurrency }

// Close closes the idle connections.
func (r *Requests) Close() { r.poster.client.CloseIdleConnections() }

// Ask posts the JSON of a request that arrived at the time since, and returns the JSON of the
// answer, null for status 204. If the outcome is Denied, the error is the *wire.Error or
// *wire.DetailedError in the answer. Ask never posts a request twice.
func (r *Requests) Ask(ctx context.Context, request []byte, since time.Time) (json.RawMessage, Outcome, error) {
	ctx, cancel := context.WithDeadline(ctx, since.Add(r.opts.Timeout))
	defer cancel()
	status, text, err := r.poster.post(ctx, r.opts.URL, request, false, r.opts.MaxAnswer)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, Late, errors.New("no answer in time")
	case err != nil:
		return nil, Failed, backend.WithoutURL(err)
	case len(text) > r.opts.MaxAnswer:
		return nil, Malformed, fmt.Errorf("the answer has more than %d bytes", r.opts.MaxAnswer)
	case status == http.StatusNoContent:
		return json.RawMessage("null"), Answered, nil
	case status/100 == 4:
		if refusal := decodeRefusal(text); refusal != nil {
			return nil, Denied, refusal
		}
	case status/100 == 2:
		data, err := payload.Compact(text, r.opts.MaxAnswer)
		if err != nil {
			return nil, Malformed, errors.New("the answer is not JSON") // the cause may contain text of the answer
		}
		return data, Answered, nil
	}
	return nil, Failed, fmt.Errorf("the answer has status %d", status)
}

// decodeRefusal returns the error that the backend sends to a client, or nil if text is not
// {"error":{"code","message","data"}} with the name of a code.
func decodeRefusal(text []byte) error {
	var body struct {
		Error struct {
			Code    string          `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if payload.CheckText(text) != nil || json.Unmarshal(text, &body) != nil || wire.CheckMethod(body.Error.Code) != nil {
		return nil
	}
	refusal := wire.Errorf(wire.ErrorCode(body.Error.Code), "%s", cleanReason(body.Error.Message))
	if len(body.Error.Data) == 0 {
		return refusal
	}
	return &wire.DetailedError{Err: refusal, Data: body.Error.Data}
}
