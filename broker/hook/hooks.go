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
	"switchboard/internal/setting"
)

const (
	maxAnswer = 16 << 10 // the longest answer, in bytes
	maxReason = 200      // the longest reason for the client, in bytes
)

// Options configures Hooks. Zero means the default in a field's tag, if it has one.
type Options struct {
	// Connect and Subscribe are the URLs of the two hooks, http or https. They may hold secrets, so
	// no error contains them. Zero means that the hook is not asked.
	Connect, Subscribe string
	// Secrets sign the questions. There may be several while the backend changes its secret. At
	// least one is required.
	Secrets []string
	// Timeout bounds a question, from Question.Since to the end of the answer.
	Timeout     time.Duration `setting:"hooks.timeout" default:"2s" help:"deadline for the answer; without one the client is refused"`
	Concurrency int           `setting:"hooks.concurrency" default:"64" help:"maximum number of calls at once"`
	// Agent is the User-Agent. Zero means "switchboard".
	Agent string
	// TLS configures https, at version 1.2 or above. Zero means the system's authorities.
	TLS *tls.Config
}

// Enabled reports whether there is a hook.
func (o Options) Enabled() bool { return o.Connect != "" || o.Subscribe != "" }

// Kind is the kind of a hook.
type Kind string

// The kinds.
const (
	Connect   Kind = "connect"
	Subscribe Kind = "subscribe"
)

// Question asks whether one client may connect or subscribe.
type Question struct {
	Hook    Kind            `json:"hook"`
	Client  string          `json:"client"`
	User    string          `json:"user,omitempty"`
	Address string          `json:"address"`
	Info    json.RawMessage `json:"info,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Refresh bool            `json:"refresh,omitempty"`

	Since time.Time `json:"-"` // when the client connected or subscribed
}

// Answer is the backend's answer.
type Answer struct {
	Allow  bool
	Reason string          // short and printable, for the client
	Info   json.RawMessage // compact JSON; nil leaves the client's info unchanged
	User   string          // a valid name; "" leaves the client's user unchanged
}

// Outcome is the outcome of a question, and the label of its metric.
type Outcome string

// The outcomes.
const (
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Late      Outcome = "late"      // no answer in time
	Failed    Outcome = "failed"    // no connection, a broken one, or a status other than 200
	Malformed Outcome = "malformed" // status 200 with an invalid body
)

// Hooks sends questions to the backend.
type Hooks struct {
	opts   Options
	poster poster
}

// New returns Hooks, or an error if o is not valid. The error contains no URLs or secrets.
func New(o Options) (*Hooks, error) {
	setting.Fill(&o)
	o.Agent = cmp.Or(o.Agent, "switchboard")
	for name, text := range map[string]string{"connect": o.Connect, "subscribe": o.Subscribe} {
		if err := backend.CheckURL(text); text != "" && err != nil {
			return nil, fmt.Errorf("hooks.%s: %w", name, err)
		}
	}
	switch {
	case o.Timeout < 0 || o.Concurrency < 0:
		return nil, errors.New("hooks: timeout and concurrency must not be below zero")
	case len(o.Secrets) == 0:
		return nil, errors.New("hooks.secrets: none is set, so the backend cannot verify the questions")
	}
	if err := backend.CheckSecrets(o.Secrets); err != nil {
		return nil, fmt.Errorf("hooks.secrets: %w", err)
	}
	return &Hooks{opts: o, poster: newPoster(o.TLS, o.Concurrency, o.Secrets, o.Agent)}, nil
}

// Concurrency returns the most questions that are sent at once.
func (h *Hooks) Concurrency() int { return h.opts.Concurrency }

// Asks reports whether the hook k is configured.
func (h *Hooks) Asks(k Kind) bool { return h.url(k) != "" }

func (h *Hooks) url(k Kind) string {
	if k == Connect {
		return h.opts.Connect
	}
	return h.opts.Subscribe
}

// Close closes the idle connections.
func (h *Hooks) Close() { h.poster.client.CloseIdleConnections() }

// Ask sends q and waits for the answer. The error is nil if the outcome is Allowed or Denied.
func (h *Hooks) Ask(ctx context.Context, q Question) (Answer, Outcome, error) {
	ctx, cancel := context.WithDeadline(ctx, q.Since.Add(h.opts.Timeout))
	defer cancel()
	status, text, err := h.post(ctx, q)
	switch {
	case err != nil && ctx.Err() != nil:
		return Answer{}, Late, errors.New("no answer in time")
	case err != nil:
		return Answer{}, Failed, backend.WithoutURL(err)
	case status != http.StatusOK:
		return Answer{}, Failed, fmt.Errorf("the answer has status %d", status)
	}
	a, err := decode(q.Hook, text)
	switch {
	case err != nil:
		return Answer{}, Malformed, err
	case !a.Allow:
		return a, Denied, nil
	}
	return a, Allowed, nil
}

func (h *Hooks) post(ctx context.Context, q Question) (status int, answer []byte, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return 0, nil, err
	}
	return h.poster.post(ctx, h.url(q.Hook), body, true, maxAnswer)
}
