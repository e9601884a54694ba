package transport

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"

	"switchboard/broker/limit"
	"switchboard/internal/await"
	"switchboard/internal/proxyproto"
)

const (
	headerText   = "PROXY TCP4 192.0.2.7 127.0.0.1 51312 7070\r\n"
	headerBinary = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\x7f\x00\x00\x01\xc8\x70\x1b\x9e"
	headerLocal  = "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"
	headerClient = "192.0.2.7:51312"
)

// proxiesAt returns the load balancers of these networks, and the errors of refused connections.
func proxiesAt(networks ...string) (ProxyHeaders, <-chan error) {
	list, err := limit.Networks(networks)
	if err != nil {
		panic(err)
	}
	refused := make(chan error, 10)
	return ProxyHeaders{Networks: list, Refused: func(err error, _ string) { refused <- err }}, refused
}

// begin is what a peer sends first on the way.
func (w way) begin() string {
	switch {
	case w.stream:
		return string(streamRequest(""))
	case w.framed:
		return upgradeRequest(wsPath, "")
	}
	return "x\n"
}

// proxiedWays are the ways on which a header can arrive.
var proxiedWays = []way{lineWay, pollWay, webWay, handedWay, streamWay, handedStreamWay}

// TestProxyHeader sends each header in one piece with the bytes after it, and byte by byte.
func TestProxyHeader(t *testing.T) {
	over(t, proxiedWays, func(t *testing.T, w way) {
		proxies, _ := proxiesAt("127.0.0.0/8")
		service := w.serve(t, setup{proxies: proxies})
		for _, header := range []string{headerText, headerBinary, headerLocal} {
			for _, pieces := range []bool{false, true} {
				p := service.dial()
				if begin := header + w.begin(); pieces {
					for i := range len(header) {
						p.write([]byte(header[i : i+1]))
					}
					p.write([]byte(w.begin()))
				} else {
					p.write([]byte(begin))
				}
				s := <-service.sessions
				want := headerClient
				if header == headerLocal {
					want = p.LocalAddr().String()
				}
				if s.peer != want {
					t.Errorf("%.30q: the session has the peer %s, want %s", header, s.peer, want)
				}
				if w.framed {
					if resp := p.response(); resp.Header.Get("Connection") == "close" || resp.StatusCode != 101 {
						t.Errorf("%.30q: %s, Connection: %s", header, resp.Status, resp.Header.Get("Connection"))
					}
				}
				_ = p.Close()
			}
		}
	})
}

// TestProxyHeaderMissing: a load balancer that must send a header sends none.
func TestProxyHeaderMissing(t *testing.T) {
	speakJSON(t)
	over(t, proxiedWays, func(t *testing.T, w way) {
		proxies, refused := proxiesAt("127.0.0.1")
		service := w.serve(t, setup{proxies: proxies})
		p := service.dial()
		p.write([]byte(w.begin()))
		if err := <-refused; !errors.Is(err, proxyproto.ErrMissing) {
			t.Error(err)
		}
		switch {
		case w.name == lineWay.name:
			p.wantClosing("bad_request", 0, proxyproto.ErrMissing.Error(), 0)
		case w.name == pollWay.name:
			if text := readAll(t, p); !strings.Contains(text, " 400 ") || !strings.Contains(text, "PROXY header") {
				t.Errorf("the answer is %q", text)
			}
		default: // it may end with RST
			if _, err := io.ReadAll(p); errors.Is(err, io.ErrUnexpectedEOF) {
				t.Error(err)
			}
		}
		service.stop()
		if len(service.sessions) > 0 {
			t.Error("there is a session")
		}
	})
}

// TestForeignProxyHeader: a client sends a header itself.
func TestForeignProxyHeader(t *testing.T) {
	over(t, proxiedWays, func(t *testing.T, w way) {
		proxies, refused := proxiesAt("192.0.2.0/24")
		service := w.serve(t, setup{proxies: proxies})
		for _, header := range []string{headerText, headerBinary} {
			p := service.dial()
			p.write([]byte(header + w.begin()))
			if err := <-refused; !errors.Is(err, errForeignHeader) {
				t.Error(err)
			}
			text := readAll(t, p)
			onLoop := w.name == lineWay.name || w.name == pollWay.name
			if !onLoop && !strings.Contains(text, " 400 ") || onLoop && !strings.Contains(text, "PROXY header") {
				t.Errorf("%.30q: the answer is %q", header, text)
			}
		}
		service.stop()
		if len(service.sessions) > 0 {
			t.Error("there is a session")
		}
	})
}

// TestProxyHeaderAddresses: connections count for the address in the header, until they end.
func TestProxyHeaderAddresses(t *testing.T) {
	speakJSON(t)
	over(t, proxiedWays, func(t *testing.T, w way) {
		proxies, _ := proxiesAt("127.0.0.0/8")
		options := limit.AddressOptions{Connections: 1}
		w.start = withAddresses(w.start, options)
		service := w.serve(t, setup{proxies: proxies})
		dial := func(header string) *peer {
			p := service.dial()
			p.write([]byte(header + w.begin()))
			return p
		}
		first := dial(headerText)
		<-service.sessions
		if text := readAll(t, dial(headerBinary)); !strings.Contains(text, "too many connections from this address") {
			t.Errorf("the answer is %q", text)
		}
		dial(strings.Replace(headerText, "192.0.2.7", "192.0.2.8", 1))
		if s := <-service.sessions; s.peer != "192.0.2.8:51312" {
			t.Errorf("the next session has the peer %s", s.peer)
		}
		_ = first.Close()
		await.True(t, "the address is free", func() bool {
			p := dial(headerText)
			select {
			case <-service.sessions:
				return true
			case <-ended(p):
				return false
			}
		})
	})
}

// ended is closed when the peer has read everything.
func ended(p *peer) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(io.Discard, p)
	}()
	return done
}

func readAll(t *testing.T, p *peer) string {
	t.Helper()
	text, err := io.ReadAll(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestProxyNetworks checks that only the given networks send headers.
func TestProxyNetworks(t *testing.T) {
	proxies, _ := proxiesAt("10.0.0.0/8", "2001:db8::1")
	for address, want := range map[string]bool{
		"10.1.2.3": true, "::ffff:10.1.2.3": true, "2001:db8::1": true, "2001:db8::2": false, "192.0.2.1": false,
	} {
		addr := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(address), 7))
		if proxies.from(addr) != want || (ProxyHeaders{}).from(addr) {
			t.Errorf("%s: %t", address, !want)
		}
	}
	if proxies.from(&net.UnixAddr{}) {
		t.Error("an address without an IP address")
	}
}
