package transport

import (
	"bytes"
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/gobwas/ws"
	"github.com/panjf2000/gnet/v2"

	"switchboard/broker/limit"
)

// maxHandOvers is how many connections are handed over at once: each has two descriptors until its new loop
// has it, and a herd of clients must not use up those that the gate has left for others.
const maxHandOvers = 64

// handedOver is what came with a connection from net/http.
type handedOver struct {
	poller *Poller
	hello  Hello
	early  bytes.Buffer // what the client sent behind its handshake
}

// handOver upgrades a request and gives its connection to the Poller. With 15,000 connections that is 2.5 KB for each
// instead of 14.5, and 143 µs of CPU to connect and subscribe instead of 224; a delivery is one write of a loop. It is
// false, and nothing has happened, where that cannot be: with TLS, with compression, and for handshakes that the
// library refuses better. address is that of a connection of a proxy.
func (w *Web) handOver(rw http.ResponseWriter, r *http.Request, place *gatedConn, address limit.Slot) bool {
	if w.Poller == nil || place == nil || !w.Poller.takes(place) || !upgradable(r) {
		return false
	}
	if w.Compress && strings.Contains(strings.Join(r.Header["Sec-Websocket-Extensions"], ","), "permessage-deflate") {
		return false
	}
	conn, buffered, _, err := ws.HTTPUpgrader{}.Upgrade(r, rw)
	if err != nil {
		w.limits.Addresses.Leave(address)
		if conn != nil {
			_ = conn.Close()
		}
		return true // it is answered, or the client is gone
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if address != 0 { // it goes with the connection from here on; that of the proxy itself is not counted
		place.address = address
	}
	if err := w.Poller.adopt(place, helloOf(r.URL), early); err != nil {
		_ = place.Close()
	}
	return true
}

// upgradable says whether nothing is unusual about a handshake.
func upgradable(r *http.Request) bool {
	h := r.Header
	connection := false
	for token := range strings.SplitSeq(h.Get("Connection"), ",") {
		connection = connection || strings.EqualFold(strings.TrimSpace(token), "upgrade")
	}
	keys := h["Sec-Websocket-Key"]
	if !connection || !r.ProtoAtLeast(1, 1) || len(keys) != 1 || !strings.EqualFold(h.Get("Upgrade"), "websocket") || h.Get("Sec-Websocket-Version") != "13" {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(keys[0])
	return err == nil && len(key) == 16
}

// helloOf reads the query of a WebSocket URL.
func helloOf(u *url.URL) Hello {
	q := u.Query()
	return Hello{Token: q.Get("token"), Client: q.Get("client"), Secret: q.Get("secret")}
}

// takes says whether a connection of net/http can go on here. Its place must count in the same gate. And gnet puts the
// zone of an address, when the connection ends, among its buffers: Go's are not ours to give. Nor can what Unread
// left be given, which is more than a handshake.
func (p *Poller) takes(c *gatedConn) bool {
	select {
	case <-p.booted:
	default:
		return false
	}
	tcp, ok := c.Conn.(*net.TCPConn)
	return ok && len(c.unread) == 0 && c.gate == p.limits.Gate && zoneless(tcp.LocalAddr()) && zoneless(tcp.RemoteAddr())
}

func zoneless(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.Zone == ""
}

// adopt goes on with a WebSocket whose handshake net/http has answered, and keeps its place. It returns when
// the connection is on its loop.
func (p *Poller) adopt(place *gatedConn, hello Hello, early []byte) error {
	p.handing.RLock()
	defer p.handing.RUnlock()
	if p.stopping.Load() {
		return errStopped
	}
	p.hands <- struct{}{}
	defer func() { <-p.hands }()
	c := &pollerConn{handed: &handedOver{poller: p, hello: hello}, address: place.address}
	c.handed.early.Write(early)
	ctx := gnet.NewNetConnContext(gnet.NewContext(context.Background(), c), place.Conn)
	done, err := p.engine.Register(ctx) // closes place.Conn, whose descriptor it has copied
	if err != nil {
		return err
	}
	return (<-done).Err
}

// takeUp goes on with the connection on its loop.
func (c *pollerConn) takeUp(conn gnet.Conn) {
	handed := c.handed
	if handed.early.Len() == 0 {
		c.handed = nil
	}
	c.loop, c.conn = handed.poller.loopOf(conn.EventLoop()), conn
	c.open(frames, handed.hello)
	handed.hello = Hello{}
	c.read()
}

// unread is what has come and was not taken yet: what came early first.
func (c *pollerConn) unread() []byte {
	later, _ := c.conn.Peek(-1)
	if c.handed == nil {
		return later
	}
	early := &c.handed.early
	if len(later) > 0 {
		early.Write(later)
		_, _ = c.conn.Discard(len(later))
	}
	return early.Bytes()
}

func (c *pollerConn) discard(n int) {
	if c.handed == nil {
		_, _ = c.conn.Discard(n)
		return
	}
	if c.handed.early.Next(n); c.handed.early.Len() == 0 {
		c.handed = nil
	}
}
