//go:build long

package attack

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReboundWithKeys simulates pages and other clients of a broker with all keys that lets clients
// connect without a token, or register as guests. A page whose host name resolves to the broker's
// address (DNS rebinding) must do neither. Clients that are no browsers, and pages that cannot be
// rebound, need no setting.
func TestReboundWithKeys(t *testing.T) {
	t.Parallel()
	const config = `
auth:
  keys: [plain:a-key-of-a-backend]
  hs256_secret: 0123456789abcdef0123456789abcdef
  anonymous: true
kit: {accounts: {guests: true, issuer: login, audience: broker, iterations: 4096, register_rate: 1000000}}
origins: [app.example]
hosts: [push.example, "*.lan"]
`
	file := filepath.Join(t.TempDir(), "broker.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	onHTTP, onTCP := openBroker(t, nil, "--config", file)
	// A page does not have a token. So a request with one is checked by its token.
	if status, body := dialPage(t, onHTTP).ask(t, "GET", "/sse?client=tab&token=bad", "games.example", "", ""); status != http.StatusUnauthorized {
		t.Errorf("a stream with a token: %d %s", status, body)
	}
	const page, secure = "Origin: http://{host}\r\n", "Origin: https://{host}\r\n"
	for name, row := range map[string]struct {
		host, more      string
		refused, stream bool // refused, and refused only for GET /sse
	}{
		"rebound":                       {host: "evil.example:8080", more: page, refused: true},
		"rebound, without an Origin":    {host: "evil.example:8080", stream: true},
		"like a listed name":            {host: "push.example.evil.example", more: page, refused: true},
		"like an address":               {host: "127.0.0.1.evil.example", more: page, refused: true},
		"other URL of a listed host":    {host: "evil.example", more: "Origin: http://push.example\r\n", refused: true},
		"listed host":                   {host: "push.example:8080", more: page},
		"listed pattern, no Origin":     {host: "broker.lan"},
		"address":                       {host: "192.168.1.5:8080", more: page},
		"address, no Origin":            {host: "[fd00::1]:8080"},
		"localhost":                     {host: "localhost:8080", more: page},
		"https ended by a proxy":        {host: "games.example", more: secure},
		"https, no Origin":              {host: "games.example", more: "Sec-Fetch-Site: same-origin\r\n"},
		"listed origin on another host": {host: "games.example", more: "Origin: http://app.example\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			more := strings.ReplaceAll(row.more, "{host}", row.host)
			check := func(what string, status int, body string, refused bool) {
				t.Helper()
				if (status == http.StatusForbidden) != refused || status >= 400 != refused {
					t.Errorf("%s: %d %s", what, status, body)
				}
				if other := strings.Contains(body, "origin"); refused && !other && !strings.Contains(body, "setting hosts") {
					t.Errorf("%s: the answer names no setting: %s", what, body)
				}
			}
			for _, port := range []string{onHTTP, onTCP} {
				status, body := dialPage(t, port).ask(t, "GET", "/ws?client=tab", row.host, more+upgrade, "")
				check("a WebSocket", status, body, row.refused)
			}
			status, body := dialPage(t, onHTTP).ask(t, "POST", "/v1/accounts", row.host, more, `{}`)
			check("a guest", status, body, row.refused)
			// A channel without a name is refused, so an accepted stream ends, too.
			status, body = dialPage(t, onHTTP).ask(t, "GET", "/sse?client=tab&channel=", row.host, more, "")
			refused := row.refused || row.stream
			if (status == http.StatusForbidden) != refused || !refused && status != http.StatusBadRequest {
				t.Errorf("a stream: %d %s", status, body)
			}
		})
	}
}
