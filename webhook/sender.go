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
	"switchboard/internal/setting"
)

const (
	// maxAnswer limits the bytes that are read of an answer's header, and of its body. The body is
	// read so that the connection can be reused.
	maxAnswer = 64 << 10
	// maxSecrets limits the number of signatures in the header.
	maxSecrets = 8
	// maxIdleConnections limits the connections that stay open between deliveries.
	maxIdleConnections = 16
)

// Options configures a Sender.
type Options struct {
	// URL is the endpoint, http or https. Errors do not include it, because it may contain a secret.
	// It must be set.
	URL string
	// Secrets sign each delivery, each with a signature of its own. Set the old and the new secret
	// while receivers change theirs. At least one must be set.
	Secrets []string
	// Timeout limits one delivery, from dialing to the end of the answer. Zero means the default
	// in the tag.
	Timeout time.Duration `setting:"webhooks.timeout" default:"10s" help:"deadline of one delivery"`
	// Agent is the User-Agent header. Zero means "switchboard".
	Agent string
	// TLS is the configuration for https. Versions below 1.2 are disabled. Zero means the system's
	// certificate authorities.
	TLS *tls.Config
}

// Sender posts events to one URL. It is safe for concurrent use.
type Sender struct {
	opts   Options
	client http.Client
}

// New validates opts. Its errors include neither the URL nor the secrets.
func New(opts Options) (*Sender, error) {
	setting.Fill(&opts)
	opts.Agent = cmp.Or(opts.Agent, "switchboard")
	if err := backend.CheckURL(opts.URL); err != nil {
		return nil, fmt.Errorf("webhook: URL: %w", err)
	}
	switch {
	case opts.Timeout < 0:
		return nil, errors.New("webhook: Timeout must not be negative")
	case len(opts.Secrets) == 0:
		return nil, errors.New("webhook: a secret is missing: receivers could not verify the deliveries")
	case len(opts.Secrets) > maxSecrets:
		return nil, fmt.Errorf("webhook: %d secrets, at most %d are allowed", len(opts.Secrets), maxSecrets)
	}
	if err := backend.CheckSecrets(opts.Secrets); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Sender{opts: opts, client: backend.NewClient(backend.NewTransport(opts.TLS, maxIdleConnections, maxAnswer))}, nil
}

// Timeout returns the longest duration of Send.
func (s *Sender) Timeout() time.Duration { return s.opts.Timeout }

// Send posts events, each a JSON object, in one delivery. It returns nil if the endpoint accepted
// them, a *[Refusal] if the status of the answer is not 2xx, and another error if there was no
// answer.
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
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer))
	return refusal(response, time.Now())
}

// Close closes the idle connections.
func (s *Sender) Close() { s.client.CloseIdleConnections() }
