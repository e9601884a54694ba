//go:build long

package attack

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/certtest"
	"switchboard/internal/textconn"
)

const (
	resetters       = 8 // connections that reset streams at the same time
	resetterRounds  = 3 // connections of each, one after another
	honestKey       = "the-key-of-the-honest-backend"
	maxResetStreams = 400_000 // more than the system's buffers hold: a connection with more is served
)

// TestRapidReset opens streams of HTTP/2 and resets them at once (CVE-2023-44487). The broker must
// close such connections, and must serve others meanwhile.
func TestRapidReset(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	onHTTP, onTCP := openBroker(t, []string{
		"SWITCHBOARD_TLS_CERT_FILE=" + pair.Cert, "SWITCHBOARD_TLS_KEY_FILE=" + pair.Key,
		"SWITCHBOARD_AUTH_KEYS=plain:" + honestKey, "SWITCHBOARD_LIMITS_MESSAGE_RATE=0",
	})
	config := &tls.Config{RootCAs: ca.Pool(), NextProtos: []string{"h2"}}
	honest := &roundTrips{https: "https://" + onHTTP + "/v1/servers", tcp: onTCP}
	quiet := honest.measure(t, config, func() { honest.await(t, 200) })
	for _, path := range []string{"/healthz", "/nowhere", "/v1/channels/news/history?limit=1000", "/sse?channel=news&client=mallory"} {
		var streams atomic.Int64
		began := time.Now()
		attacked := honest.measure(t, config, func() {
			var all sync.WaitGroup
			for range resetters {
				all.Go(func() {
					for range resetterRounds {
						streams.Add(rapidReset(t, onHTTP, config, path))
					}
				})
			}
			all.Wait()
			honest.await(t, 20)
		})
		if t.Failed() {
			return
		}
		t.Logf("%s: %d connections sent %d streams in %s. Round trips: %s, and %s without the attack",
			path, resetters*resetterRounds, streams.Load(), time.Since(began).Round(time.Millisecond), attacked, quiet)
	}
}

// rapidReset resets streams until the broker ends the connection. It returns how many it has sent.
func rapidReset(t *testing.T, address string, config *tls.Config, path string) (streams int64) {
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	go func() { _, _ = io.Copy(io.Discard, conn) }() // the answers
	const batch = 100
	out := bytes.NewBufferString("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	out.Write(http2Frame(4, 0, 0, nil)) // SETTINGS
	for id := uint32(1); err == nil && streams < maxResetStreams; streams += batch {
		for range batch {
			out.Write(http2Frame(1, 0x5, id, requestHeaders(path, address))) // HEADERS, the end of the request
			out.Write(http2Frame(3, 0, id, []byte{0, 0, 0, 8}))              // RST_STREAM with CANCEL
			id += 2
		}
		_, err = conn.Write(out.Bytes())
		out.Reset()
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%s: the broker serves a connection that has reset %d streams: %v", path, streams, err)
	}
	return streams
}

// http2Frame returns a frame (RFC 9113 §4.1).
func http2Frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	head := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}

// requestHeaders returns the header block of a GET request (RFC 7541), without a dynamic table.
func requestHeaders(path, authority string) []byte {
	block := []byte{0x82, 0x87} // :method GET, :scheme https
	block = append(append(block, 0x04, byte(len(path))), path...)
	return append(append(block, 0x01, byte(len(authority))), authority...)
}

// roundTrips measures round trips of honest clients: pings over TCP, and calls over HTTPS.
type roundTrips struct {
	https, tcp string
	done       atomic.Int64
}

// latencies are those of one measurement, sorted.
type latencies []time.Duration

func (l latencies) String() string {
	return fmt.Sprintf("p50 %s, p99 %s", l[len(l)/2].Round(time.Microsecond), l[len(l)*99/100].Round(time.Microsecond))
}

// await waits until n more round trips are done.
func (r *roundTrips) await(t *testing.T, n int64) {
	t.Helper()
	until := r.done.Load() + n
	await.True(t, "honest clients are served", func() bool { return r.done.Load() >= until })
}

// measure returns the latencies of all round trips while during runs. A round trip that fails fails
// the test.
func (r *roundTrips) measure(t *testing.T, config *tls.Config, during func()) latencies {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	lines, err := textconn.DialTCP(ctx, net.Dialer{}, r.tcp)
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	if err := exchange(ctx, lines, `{"type":"connect","client":"honest"}`, "connected"); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var stop atomic.Bool
	results := make([]latencies, 2)
	for i, trip := range []func() error{
		func() error { return exchange(ctx, lines, `{"type":"ping"}`, "pong") },
		func() error { return r.call(ctx, &client) },
	} {
		all.Go(func() {
			for !stop.Load() {
				began := time.Now()
				err := trip()
				if r.done.Add(1); err != nil {
					t.Errorf("an honest client: %v", err)
					return
				}
				results[i] = append(results[i], time.Since(began))
			}
		})
	}
	during()
	stop.Store(true)
	all.Wait()
	return slices.Sorted(slices.Values(slices.Concat(results...)))
}

// exchange sends a message and waits for an event of this type.
func exchange(ctx context.Context, c textconn.Conn, message, typ string) error {
	err := c.Send(ctx, message)
	for err == nil {
		var answer []byte
		if answer, err = c.Receive(ctx); strings.Contains(string(answer), `"type":"`+typ+`"`) {
			return nil
		}
	}
	return err
}

func (r *roundTrips) call(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.https, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+honestKey)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.Copy(io.Discard, resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return err
}
