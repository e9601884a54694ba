package broker_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/certfile"
	"switchboard/internal/certtest"
	"switchboard/queue"
)

var dialer net.Dialer

func metricsOf(t *testing.T, i instance) string {
	t.Helper()
	resp, err := http.Get("http://" + i.HTTP + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func files(t *testing.T, o certfile.Options) *certfile.Files {
	t.Helper()
	f, err := certfile.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// dialWSS is dialWS over TLS.
func dialWSS(t *testing.T, addr string, config *tls.Config) *testClient {
	t.Helper()
	return dialWSOver(t, &http.Transport{TLSClientConfig: config}, "wss://"+addr+"/ws")
}

// TestHTTPS: clients and pushes use TLS, and their sockets do not move to the event loop of the TCP
// port. The renewal of the certificate does not disturb open connections.
func TestHTTPS(t *testing.T) {
	ca := certtest.New(t)
	pair := ca.Pair()
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Listen.TLS = files(t, certfile.Options{Cert: pair.Cert, Key: pair.Key, Every: 10 * time.Millisecond})
	})
	var serials []string
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: ca.Pool()}, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	push := func(n int) {
		t.Helper()
		resp, err := client.Post("https://"+i.HTTP+"/v1/push", "application/json", strings.NewReader(fmt.Sprintf(`{"channel":"news","data":%d}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("a push: %s", resp.Status)
		}
		serials = append(serials, resp.TLS.PeerCertificates[0].SerialNumber.String())
	}
	p := dialWSS(t, i.HTTP, &tls.Config{RootCAs: ca.Pool()})
	p.connect("phone", "alice")
	p.subscribe("news")
	n := 0
	for range 5 { // on one connection, which fast push must not take over
		push(n)
		p.expect(object{"type": "message", "data": n})
		n++
	}
	ca.Renew(pair, time.Now().Add(time.Hour))
	push(n) // the open connection stays
	p.expect(object{"type": "message", "data": n})
	if serials[0] != serials[5] {
		t.Errorf("the certificates: %v", serials)
	}
	await.True(t, "new connections get the new certificate", func() bool {
		transport.CloseIdleConnections()
		n++
		push(n)
		p.expect(object{"type": "message", "data": n})
		return serials[n] != serials[0]
	})
	resp, err := http.Get("http://" + i.HTTP + "/healthz")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", resp.Status)
		}
	}
}

// TestMutualLinks: brokers whose certificates are from one authority accept each other's links, and
// no other certificates.
func TestMutualLinks(t *testing.T) {
	ours, theirs := certtest.New(t), certtest.New(t)
	s, _ := redisStore(t, shared.Client(t), testBeat)
	run := func(name string, from *certtest.Authority) instance {
		pair := from.Pair("instance")
		return start(t, s, func(o *broker.Options) {
			o.Name, o.Timing.Beat, o.Links.Address = name, testBeat, "127.0.0.1:0"
			o.Links.TLS = files(t, certfile.Options{Cert: pair.Cert, Key: pair.Key, CA: ours.File, Name: "instance"})
		})
	}
	a, b := run("a", ours), run("b", ours)
	a.awaitReady(t, http.StatusOK)
	b.awaitReady(t, http.StatusOK)
	await.True(t, "they see each other", func() bool { return len(a.Servers()) == 2 && len(b.Servers()) == 2 })
	p := dialWS(t, "ws://"+b.TCP+"/ws")
	p.connect("phone", "alice")
	p.subscribe("news")
	for n := range 3 {
		a.push(t, fmt.Sprintf(`{"channel":"news","data":%d}`, n))
		p.expect(object{"type": "message", "data": n})
	}
	// Without a link a call fails: no sweep repairs it.
	await.True(t, "the call is answered", func() bool {
		_, answer := a.call(t, "POST", "/v1/clients/alice/phone/disconnect", "")
		return fmt.Sprint(answer["disconnected"]) == "1"
	})
	stranger := theirs.Pair("instance")
	for name, config := range map[string]*tls.Config{
		"no certificate": {RootCAs: ours.Pool()},
		"a stranger's":   files(t, certfile.Options{Cert: stranger.Cert, Key: stranger.Key, CA: ours.File}).Client(),
	} {
		transport := &http.Transport{TLSClientConfig: config}
		resp, err := (&http.Client{Transport: transport}).Get("https://" + a.Peer + "/healthz")
		if err == nil {
			resp.Body.Close()
			t.Errorf("%s: the links answered %s", name, resp.Status)
		}
		transport.CloseIdleConnections()
	}
}

func TestTLSNeedsALinkPort(t *testing.T) {
	pair := certtest.New(t).Pair()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	_, err := broker.New(broker.Options{
		Store:  broker.StoreOptions{Registry: s.registry, Queue: s.queue, Shared: true},
		Listen: broker.ListenOptions{TLS: files(t, certfile.Options{Cert: pair.Cert, Key: pair.Key})},
	})
	if err == nil || !strings.HasPrefix(err.Error(), "peer:") {
		t.Error(err)
	}
}
