//go:build long

package samples

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
	"switchboard/webhook"
)

const (
	webhookSecret = "a secret of webhooks"
	oldSecret     = "the former secret of webhooks"
)

func newDialer() net.Dialer { return net.Dialer{Timeout: patience} }

// TestWebhook: a program accepts what the sender of the janitor sends, handles each event once, and
// answers anything that is not signed with 401.
func TestWebhook(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		address, output := startWebhook(ctx, t, l)
		sender, err := webhook.New(webhook.Options{URL: "http://" + address + "/switchboard", Secrets: []string{oldSecret, webhookSecret}})
		if err != nil {
			t.Fatal(err)
		}
		defer sender.Close()
		events := [][]byte{
			[]byte(`{"id":"` + l.name + `-1","at":1794225599871,"type":"user_online","user":"j\u00fcrgen/\"ü\\"}`),
			[]byte(`{"id":"` + l.name + `-2","at":1794225599872,"type":"message_undelivered","user":"bob","clients":[{"client":"bob/phone","id":7}],"data":{"user":[[],{},"\/\n",null,-1.5e3,true]}}`),
			[]byte(`{"id":"` + l.name + `-3","at":1794225599873,"type":"channel_vacated","channel":"news"}`),
		}
		for _, n := range []int{2, 3, 3} { // the sender repeats what was not answered
			if err := sender.Send(ctx, events[:n]); err != nil {
				t.Fatalf("%v\n%s", err, output())
			}
		}
		for name, header := range forged(string(events[0])) {
			if status := post(ctx, t, address, header, string(events[0])); status != http.StatusUnauthorized {
				t.Errorf("%s: %d\n%s", name, status, output())
			}
		}
		for _, want := range []string{`user_online jürgen/"ü\`, "message_undelivered bob", "channel_vacated news"} {
			await.NoError(ctx, t, "the program handles the event once", func() error {
				if n := strings.Count(output(), want+"\n"); n != 1 {
					return fmt.Errorf("%q: %d times in\n%s", want, n, output())
				}
				return nil
			})
		}
	})
}

// startWebhook starts a program that receives webhooks, and waits until it listens.
func startWebhook(ctx context.Context, t *testing.T, l language) (address string, output func() string) {
	t.Helper()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	run := l.run
	if l.serve != nil {
		run = strings.Split(strings.Replace(strings.Join(l.serve, " "), "ADDRESS", address, 1), " ")
	}
	cmd := program(t, run, l.webhook, nil, "PORT="+port, "SWITCHBOARD_WEBHOOKS_SECRETS=another secret of webhooks,"+webhookSecret, "TMPDIR="+t.TempDir())
	lines := make(chan string, 100)
	p := testbed.Run(t, l.name, cmd, func(line []byte) { lines <- string(line) + "\n" })
	await.NoError(ctx, t, "the program listens", func() error {
		dialer := newDialer()
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return errors.Join(err, errors.New(p.Tail(0)))
		}
		return conn.Close()
	})
	text := ""
	return address, func() string {
		for {
			select {
			case line := <-lines:
				text += line
			default:
				return text + p.Tail(0) + "\n"
			}
		}
	}
}

// forged returns headers that do not belong to the body, by what is wrong with them.
func forged(body string) map[string]http.Header {
	signed := func(at time.Time, secret string) http.Header {
		h := http.Header{}
		webhook.Sign([]string{secret}, h, []byte(body), at)
		return h
	}
	now := time.Now()
	list := map[string]http.Header{
		"no header":       {},
		"another secret":  signed(now, "not the secret of webhooks"),
		"of an hour ago":  signed(now.Add(-time.Hour), webhookSecret),
		"in an hour":      signed(now.Add(time.Hour), webhookSecret),
		"before 1970":     signed(time.Unix(-1, 0), webhookSecret),
		"no signature":    {webhook.TimestampHeader: {fmt.Sprint(now.Unix())}},
		"empty signature": {webhook.TimestampHeader: {fmt.Sprint(now.Unix())}, webhook.SignatureHeader: {"v1="}},
		"not ASCII":       {webhook.TimestampHeader: {fmt.Sprint(now.Unix())}, webhook.SignatureHeader: {"v1=\u00fc\xff"}},
	}
	for _, timestamp := range []string{"+0", "\xb2", "\u0661", "1e9", "0x10", strings.Repeat("9", 5000), fmt.Sprint(now.Unix()) + ".0"} {
		mac := hmac.New(sha256.New, []byte(webhookSecret))
		_, _ = io.WriteString(mac, timestamp+"."+body)
		list["the timestamp "+timestamp[:min(len(timestamp), 12)]] = http.Header{
			webhook.TimestampHeader: {timestamp}, webhook.SignatureHeader: {"v1=" + hex.EncodeToString(mac.Sum(nil))},
		}
	}
	return list
}

// post posts a body and returns the status of the answer.
func post(ctx context.Context, t *testing.T, address string, header http.Header, body string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/switchboard", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header, request.Close = header, true
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Error(err)
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}
