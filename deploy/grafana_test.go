//go:build deploy

package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
)

// board is what this test reads of the Grafana board.
type board struct {
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

// metricName matches the names of metrics of brokers and janitors in an expression.
var metricName = regexp.MustCompile(`\b(switchboard_\w+|process_\w+|go_\w+)`)

// TestMetricsExist checks that each metric of the board and of the alerts exists in /metrics of
// real brokers and a real janitor, and that Prometheus can parse each expression.
func TestMetricsExist(t *testing.T) {
	var b board
	if err := json.Unmarshal([]byte(readFile(t, "grafana/switchboard.json")), &b); err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, p := range b.Panels {
		for i, target := range p.Targets {
			exprs[fmt.Sprintf("panel %q, query %d", p.Title, i+1)] = target.Expr
		}
		for _, other := range b.Panels {
			if p.ID < other.ID && p.GridPos.X < other.GridPos.X+other.GridPos.W && other.GridPos.X < p.GridPos.X+p.GridPos.W &&
				p.GridPos.Y < other.GridPos.Y+other.GridPos.H && other.GridPos.Y < p.GridPos.Y+p.GridPos.H {
				t.Errorf("the panels %q and %q overlap", p.Title, other.Title)
			}
		}
	}
	for i, m := range regexp.MustCompile(`(?m)expr: (.*)$`).FindAllStringSubmatch(readFile(t, "../configs/alerts.yml"), -1) {
		exprs[fmt.Sprint("alert ", i+1)] = m[1]
	}
	if len(exprs) < 30 {
		t.Fatalf("only %d expressions", len(exprs))
	}
	checkSyntax(t, exprs)
	known := append(metricsOf(t), described(t)...)
	for name, expr := range exprs {
		for _, metric := range metricName.FindAllString(expr, -1) {
			if !slices.Contains(known, metric) {
				t.Errorf("%s uses %s, which does not exist", name, metric)
			}
		}
	}
}

// described returns the metrics of features that the brokers of this test do not have: TLS, tokens
// and hooks; and of failures that do not occur. docs/metrics.md has them, and is compared with the
// code.
func described(t *testing.T) (names []string) {
	t.Helper()
	page := readFile(t, "../docs/metrics.md")
	for _, name := range []string{
		"switchboard_certificate_not_after_seconds", "switchboard_tokens_total", "switchboard_token_keys_age_seconds", "switchboard_hooks_total",
		"switchboard_janitor_errors_total",
	} {
		if strings.Contains(page, "`"+name+"`") {
			names = append(names, name)
		}
	}
	return names
}

// checkSyntax lets promtool parse the expressions, as rules.
func checkSyntax(t *testing.T, exprs map[string]string) {
	t.Helper()
	var rules strings.Builder
	rules.WriteString("groups:\n- name: board\n  rules:\n")
	for _, expr := range exprs {
		expr = strings.NewReplacer("$__rate_interval", "1m", "$job", ".*", "$instance", ".*").Replace(expr)
		fmt.Fprintf(&rules, "  - {record: 'x:y', expr: %q, labels: {n: '%d'}}\n", expr, rules.Len())
	}
	output(t, "promtool", "check", "rules", "--lint=none", writeFile(t, filepath.Join(t.TempDir(), "rules.yml"), rules.String()))
}

// metricsOf starts two brokers with the kit and a janitor, uses them, and returns the names of all
// their metrics, with the suffixes of histograms.
func metricsOf(t *testing.T) []string {
	t.Helper()
	c := &cluster{t: t, redis: redistest.Start(t)}
	config := writeFile(t, filepath.Join(t.TempDir(), "broker.yaml"), `
kit:
  rooms: {}
  holds: {}
  boards: {}
  accounts: {signing_key_file: `+writeFile(t, filepath.Join(t.TempDir(), "key"), strings.Repeat("k", 32))+`}
`)
	for i := range 2 {
		n := &node{name: fmt.Sprint("b", i), http: address(t), tcp: address(t)}
		n.process = c.run(n.name, "broker", "--config="+config, "--name="+n.name, "--redis="+c.redis.URL(), "--http="+n.http, "--tcp="+n.tcp)
		c.brokers = append(c.brokers, n)
	}
	janitor := address(t)
	cmd := exec.Command(filepath.Join(bin, "janitor"), "--redis="+c.redis.URL(), "--http="+janitor, "--servers-every=1s", "--log-format=json")
	cmd.Env = []string{"SWITCHBOARD_WEBHOOKS_URL=http://127.0.0.1:1/", "SWITCHBOARD_WEBHOOKS_SECRETS=" + strings.Repeat("s", 32)}
	c.execute("janitor", cmd)
	for _, n := range c.brokers {
		c.awaitReady(n)
	}
	c.web = c.brokers[0].http
	useOnce(t, c)

	var names []string
	for _, addr := range []string{c.brokers[0].http, c.brokers[1].http, janitor} {
		await.NoError(within(t), t, "metrics of "+addr, func() error {
			resp, err := http.Get("http://" + addr + "/metrics")
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				return err
			}
			if addr == janitor && !strings.Contains(string(text), "switchboard_janitor_rounds_total") {
				return errors.New("no round yet")
			}
			for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(string(text), -1) {
				if names = append(names, m[1]); m[2] == "histogram" {
					names = append(names, m[1]+"_bucket", m[1]+"_sum", m[1]+"_count")
				}
			}
			return nil
		})
	}
	return names
}

// useOnce makes each counter with labels appear: a client on the second broker receives a push
// through the first one, is refused something, and leaves.
func useOnce(t *testing.T, c *cluster) {
	t.Helper()
	got := make(chan client.Message, 10)
	sb, err := client.New(client.Options{
		URLs: []string{"tcp://" + c.brokers[1].tcp}, Client: "phone", OnMessage: func(m client.Message) { got <- m },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() { done <- sb.Run(ctx) }()
	if _, err := sb.Subscribe(ctx, "news", client.SubscribeOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := sb.Subscribe(ctx, "room:unknown", client.SubscribeOptions{}); err == nil {
		t.Error("a room that does not exist has a subscriber")
	}
	var answer object
	c.call("POST", "/v1/push", `{"channel":"news","data":1}`, &answer)
	<-got
	c.call("POST", "/v1/boards/chess/scores", `{"player":"amy","score":1}`, &answer)
	c.call("PUT", "/v1/holds/play", `{"capacity":1}`, &answer)
	c.call("POST", "/v1/accounts", `{"name":"amy","password":"correct horse"}`, &answer)
	leave()
	<-done
}
