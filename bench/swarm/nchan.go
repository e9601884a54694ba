package swarm

// Nchan is nginx with the module nchan: a WebSocket whose path names the channel, and in each frame
// one payload as it was published.
type Nchan struct{ Addr string }

// Cut implements [Dialect].
func (*Nchan) Cut(buf []byte) (Unit, int, error) { return CutFrame(buf) }

// Upgrade implements [Dialect].
func (d *Nchan) Upgrade(l Link) []byte { return Upgrade(d.Addr, "/sub/"+l.Channel()) }

// Greet says nothing. Whoever is new is given the channel from its first kept message (nchan's default), so that it does
// not matter how much later than the handshake it is entered.
func (*Nchan) Greet(l Link) error { return l.Ready() }

// Read implements [Dialect].
func (*Nchan) Read(l Link, body []byte) error {
	l.Message(body, 0)
	return nil
}

// Ping implements [Dialect]: there is none.
func (*Nchan) Ping() []byte { return nil }
