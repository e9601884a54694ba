package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"switchboard/internal/backend"
)

const (
	// maxAnswer is how much of an answer is read, so that the connection can be used again.
	maxAnswer = 64 << 10
	// maxSecrets is how many signatures stand in a header.
	maxSecrets = 8
	// connections is how many stay open between deliveries.
	connections = 16
)

// Options configures a Sender.
type Options struct {
	// URL is where events are posted, http or https. It may hold a secret, so it is in no error. It must be set.
	URL string
	// Secrets sign; several while receivers change theirs. One at least must be set.
	Secrets []string
	// Timeout bounds one delivery, from dialling to the end of the answer. Zero means 10 s.
	Timeout time.Duration
	// Agent is the User-Agent. Zero means "switchboard".
	Agent string
	// TLS says whom to trust for https; below 1.2 nothing is spoken. Zero means the system's authorities.
	TLS *tls.Config
}

// Sender posts events to one URL. It is safe for concurrent use.
type Sender struct {
	opts   Options
	client http.Client
}

// New checks opts; the error names what is wrong, and repeats neither URL nor secrets.
func New(opts Options) (*Sender, error) {
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	opts.Agent = cmp.Or(opts.Agent, "switchboard")
	if err := backend.CheckURL(opts.URL); err != nil {
		return nil, fmt.Errorf("webhook: URL: %w", err)
	}
	switch {
	case opts.Timeout < 0:
		return nil, errors.New("webhook: Timeout must not be negative")
	case len(opts.Secrets) == 0:
		return nil, errors.New("webhook: a secret is missing: nobody could tell who sends")
	case len(opts.Secrets) > maxSecrets:
		return nil, fmt.Errorf("webhook: %d secrets, at most %d are allowed", len(opts.Secrets), maxSecrets)
	}
	if err := backend.CheckSecrets(opts.Secrets); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Sender{opts: opts, client: backend.NewClient(backend.NewTransport(opts.TLS, connections, maxAnswer))}, nil
}

// Timeout is how long Send takes at most.
func (s *Sender) Timeout() time.Duration { return s.opts.Timeout }

// Send posts events, each a JSON object, as one delivery. It is nil when they were taken, a *[Refusal] when the
// answer is anything but a 2xx, and any other error when there was no answer.
func (s *Sender) Send(ctx context.Context, events [][]byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	body := bytes.Join([][]byte{[]byte(`{"events":[`), bytes.Join(events, []byte{','}), []byte("]}")}, nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.opts.URL, bytes.NewReader(body))
	if err != nil {
		return backend.WithoutURL(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.opts.Agent)
	Sign(s.opts.Secrets, request.Header, body, time.Now())
	response, err := s.client.Do(request)
	if err != nil {
		return backend.WithoutURL(err)
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // what is in it changes nothing
	return refusal(response, time.Now())
}

// Close gives up the idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }
