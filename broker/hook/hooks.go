package hook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"switchboard/internal/backend"
	"switchboard/internal/wire"
	"switchboard/webhook"
)

const (
	maxAnswer = 16 << 10 // bytes of an answer
	maxReason = 200      // bytes of a reason that is passed on
)

// Options configures Hooks.
type Options struct {
	// Connect and Subscribe are where the questions are posted, http or https. They may hold secrets, so they are in no
	// error. Zero means that it is not asked.
	Connect, Subscribe string
	// Secrets sign; several while the backend changes its own. One at least must be set.
	Secrets []string
	// Timeout bounds a question, from when it came up to the end of the answer. Zero means 2 s.
	Timeout time.Duration
	// Concurrency is the most questions at once. Zero means 64.
	Concurrency int
	// Agent is the User-Agent. Zero means "switchboard".
	Agent string
	// TLS says whom to trust for https; below 1.2 nothing is spoken. Zero means the system's authorities.
	TLS *tls.Config
}

// Enabled says whether anything is asked.
func (o Options) Enabled() bool { return o.Connect != "" || o.Subscribe != "" }

// Kind is what is asked.
type Kind string

// The kinds.
const (
	Connect   Kind = "connect"
	Subscribe Kind = "subscribe"
)

// Question is about one client.
type Question struct {
	Hook    Kind            `json:"hook"`
	Client  string          `json:"client"`
	User    string          `json:"user,omitempty"`
	Address string          `json:"address"`
	Info    json.RawMessage `json:"info,omitempty"`
	Channel string          `json:"channel,omitempty"`
	Refresh bool            `json:"refresh,omitempty"`

	Since time.Time `json:"-"` // when it came up
}

// Answer is what the backend said.
type Answer struct {
	Allow  bool
	Reason string          // fit to be shown to the client
	Info   json.RawMessage // compact; nil for as it was
	User   string          // a good name; "" for as it was
}

// Outcome is what became of a question, and the label of its metric.
type Outcome string

// The outcomes.
const (
	Allowed   Outcome = "allowed"
	Denied    Outcome = "denied"
	Late      Outcome = "late"      // no answer in time
	Failed    Outcome = "failed"    // no connection, or it broke, or the answer was no 200
	Malformed Outcome = "malformed" // a 200 that cannot be understood
)

// Hooks asks.
type Hooks struct {
	opts   Options
	client http.Client
}

// New checks opts; the error names what is wrong, and repeats neither URLs nor secrets.
func New(o Options) (*Hooks, error) {
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Concurrency = cmp.Or(o.Concurrency, 64)
	o.Agent = cmp.Or(o.Agent, "switchboard")
	for name, text := range map[string]string{"connect": o.Connect, "subscribe": o.Subscribe} {
		if err := backend.CheckURL(text); text != "" && err != nil {
			return nil, fmt.Errorf("hooks.%s: %w", name, err)
		}
	}
	switch {
	case o.Timeout < 0 || o.Concurrency < 0:
		return nil, errors.New("hooks: neither timeout nor concurrency may be below zero")
	case len(o.Secrets) == 0:
		return nil, errors.New("hooks.secrets: none, so the backend could not tell who asks")
	}
	if err := backend.CheckSecrets(o.Secrets); err != nil {
		return nil, fmt.Errorf("hooks.secrets: %w", err)
	}
	transport := backend.NewTransport(o.TLS, o.Concurrency, maxAnswer)
	transport.MaxConnsPerHost, transport.MaxIdleConns = o.Concurrency, 2*o.Concurrency
	return &Hooks{opts: o, client: backend.NewClient(transport)}, nil
}

// Concurrency is how many questions there may be at once.
func (h *Hooks) Concurrency() int { return h.opts.Concurrency }

// Asks says whether there is anybody to ask.
func (h *Hooks) Asks(k Kind) bool { return h.url(k) != "" }

func (h *Hooks) url(k Kind) string {
	if k == Connect {
		return h.opts.Connect
	}
	return h.opts.Subscribe
}

// Close gives up the idle connections.
func (h *Hooks) Close() { h.client.CloseIdleConnections() }

// Ask waits for the answer. There is an error whenever the outcome is neither Allowed nor Denied.
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
		return Answer{}, Failed, fmt.Errorf("the answer was %d", status)
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
	if err := ctx.Err(); err != nil { // it has waited too long for its turn
		return 0, nil, err
	}
	body, err := json.Marshal(q)
	if err != nil {
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url(q.Hook), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", h.opts.Agent)
	// Asking twice does no harm. An empty value is not sent, and lets net/http ask again where a kept connection was closed meanwhile.
	request.Header["Idempotency-Key"] = []string{}
	webhook.Sign(h.opts.Secrets, request.Header, body, time.Now())
	response, err := h.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	return response.StatusCode, answer, err
}

// decode understands an answer, or says why not.
func decode(k Kind, text []byte) (Answer, error) {
	var said struct {
		Allow  *bool           `json:"allow"`
		Reason string          `json:"reason"`
		Info   json.RawMessage `json:"info"`
		User   string          `json:"user"`
	}
	if len(text) > maxAnswer {
		return Answer{}, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return Answer{}, errors.New("the answer is not the JSON object that it should be") // the cause may repeat what is in it
	}
	switch {
	case said.Allow == nil:
		return Answer{}, errors.New("the answer has no allow")
	case !*said.Allow:
		return Answer{Reason: shown(said.Reason)}, nil
	case k != Connect && (said.User != "" || said.Info != nil):
		return Answer{}, errors.New("the answer sets user or info, which only connect can")
	}
	if said.User != "" {
		if err := wire.CheckName("user", said.User); err != nil {
			return Answer{}, errors.New("the answer's user is not a name")
		}
	}
	info, err := wire.CompactInfo(said.Info)
	if err != nil {
		return Answer{}, errors.New("the answer's info is not a JSON object of at most 1 KiB")
	}
	return Answer{Allow: true, Info: info, User: said.User}, nil
}

// shown is a reason without control characters, and not too long.
func shown(reason string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "?"))
	if len(clean) > maxReason {
		clean = strings.ToValidUTF8(clean[:maxReason], "") + "…"
	}
	return strings.TrimSpace(clean)
}
