//go:build long

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/textconn"
)

// A browser is a Chromium that the test controls with the Chrome DevTools Protocol.
type browser struct{ addr string }

func startBrowser(ctx context.Context, t *testing.T) *browser {
	t.Helper()
	chromium := startChromium(t, "about:blank", "--remote-debugging-port=0")
	listening := regexp.MustCompile(`DevTools listening on ws://([^/]+)/`)
	var found []string
	if err := await.Until(ctx, "Chromium does not listen", func() bool {
		found = listening.FindStringSubmatch(chromium.Tail(0))
		return found != nil
	}); err != nil {
		t.Fatal(err)
	}
	return &browser{found[1]}
}

// A tab is a page in a browser.
type tab struct {
	conn textconn.Conn
	id   int // of the last command
}

// open opens a page.
func (b *browser) open(ctx context.Context, t *testing.T, url string) *tab {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://"+b.addr+"/json/new?"+url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var target struct{ WebSocketDebuggerURL string }
	if err := json.NewDecoder(resp.Body).Decode(&target); err != nil {
		t.Fatal(err)
	}
	conn, err := textconn.DialWebSocket(ctx, target.WebSocketDebuggerURL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &tab{conn: conn}
}

// command sends a command and returns its result.
func (p *tab) command(ctx context.Context, t *testing.T, method string, params any) json.RawMessage {
	t.Helper()
	p.id++
	text, err := json.Marshal(map[string]any{"id": p.id, "method": method, "params": params})
	if err == nil {
		err = p.conn.Send(ctx, string(text))
	}
	for err == nil {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if text, err = p.conn.Receive(ctx); err == nil {
			err = json.Unmarshal(text, &answer)
		}
		if err == nil && answer.ID == p.id {
			if answer.Error == nil {
				return answer.Result
			}
			err = fmt.Errorf("%s: %s", method, answer.Error)
		}
	}
	t.Fatal(err)
	return nil
}

// eval evaluates an expression in the page and returns its value as JSON.
func (p *tab) eval(ctx context.Context, t *testing.T, expression string) string {
	t.Helper()
	text := p.command(ctx, t, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true})
	var result struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	if err := json.Unmarshal(text, &result); err != nil || result.ExceptionDetails != nil {
		t.Fatalf("%s: %s (%v)", expression, text, err)
	}
	return string(result.Result.Value)
}

// awaitEval waits until an expression has a value, as JSON.
func (p *tab) awaitEval(ctx context.Context, t *testing.T, expression, want string) {
	t.Helper()
	await.NoError(ctx, t, expression, func() error {
		if got := p.eval(ctx, t, expression); got != want {
			return fmt.Errorf("%s, want %s", got, want)
		}
		return nil
	})
}

// typeInto types text at the end of the input with this id.
func (p *tab) typeInto(ctx context.Context, t *testing.T, id, text string) {
	t.Helper()
	p.eval(ctx, t, fmt.Sprintf(`document.getElementById(%q).focus()`, id))
	p.command(ctx, t, "Input.insertText", map[string]any{"text": text})
}
