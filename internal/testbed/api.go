package testbed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// An API is the HTTP API of a broker.
type API struct {
	HTTP   string       // host:port
	Key    string       // "" for none
	Client *http.Client // nil means one without connections that are kept
}

// oneCall closes its connection after each call.
var oneCall = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Do makes a call. The body may be nil, a text or a reader that is sent as it is, or a value that
// is sent as JSON.
func (a API) Do(ctx context.Context, method, path string, body any) (status int, answer string, err error) {
	var content io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(v)
	case io.Reader:
		content = v
	default:
		encoded, err := json.Marshal(v)
		if err != nil {
			return 0, "", err
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+a.HTTP+path, content)
	if err != nil {
		return 0, "", err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.Key != "" {
		req.Header.Set("Authorization", "Bearer "+a.Key)
	}
	client := a.Client
	if client == nil {
		client = oneCall
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(all), err
}

// Call makes a call that must be answered with 200, and decodes the answer if into is not nil.
func (a API) Call(ctx context.Context, method, path string, body, into any) error {
	status, answer, err := a.Do(ctx, method, path, body)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%d %.300s", status, answer)
	}
	if err == nil && into != nil {
		err = json.Unmarshal([]byte(answer), into)
	}
	if err != nil {
		return fmt.Errorf("%s %s at %s: %w", method, path, a.HTTP, err)
	}
	return nil
}

// Metric returns a metric without labels.
func (a API) Metric(ctx context.Context, name string) (float64, error) {
	_, text, err := a.Do(ctx, http.MethodGet, "/metrics", nil)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("/metrics of %s has no %s", a.HTTP, name)
}
