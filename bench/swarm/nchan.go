package swarm

// Nchan is the protocol of the nginx module nchan: a WebSocket whose path names the channel. Each
// frame holds one payload.
type Nchan struct{ Addr string }

// NextFrame implements [Dialect].
func (*Nchan) NextFrame(buf []byte) (Frame, int, error) { return NextWebSocket(buf) }

// Upgrade implements [Dialect].
func (d *Nchan) Upgrade(c Connection) []byte { return Upgrade(d.Addr, "/sub/"+c.Channel()) }

// Subscribe sends nothing. By default nchan sends a new subscriber all kept messages of the
// channel, so a subscriber misses nothing if nchan registers it some time after the handshake.
func (*Nchan) Subscribe(c Connection) error { return c.Ready() }

// Handle implements [Dialect].
func (*Nchan) Handle(c Connection, body []byte) error {
	c.Deliver(body, 0)
	return nil
}
