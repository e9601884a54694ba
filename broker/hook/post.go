package hook

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"time"

	"switchboard/internal/backend"
	"switchboard/webhook"
)

// poster posts signed JSON to the backend.
type poster struct {
	client  http.Client
	secrets []string
	agent   string
}

func newPoster(config *tls.Config, concurrency int, secrets []string, agent string) poster {
	transport := backend.NewTransport(config, concurrency, maxAnswer)
	transport.MaxConnsPerHost, transport.MaxIdleConns = concurrency, 2*concurrency
	return poster{client: backend.NewClient(transport), secrets: secrets, agent: agent}
}

// post returns up to limit+1 bytes of the answer. Only if repeatable is true, the backend may get
// the body twice.
func (p *poster) post(ctx context.Context, url string, body []byte, repeatable bool, limit int) (status int, answer []byte, err error) {
	if err := ctx.Err(); err != nil { // the timeout passed before the request was sent
		return 0, nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", p.agent)
	if repeatable {
		// With this key in the map net/http repeats the POST if the backend closed the idle connection
		// meanwhile. An empty value is not sent.
		request.Header["Idempotency-Key"] = []string{}
	}
	webhook.Sign(p.secrets, request.Header, body, time.Now())
	response, err := p.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(response.Body, int64(limit)+1))
	return response.StatusCode, answer, err
}
