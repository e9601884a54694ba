package broker

import (
	"crypto/tls"
	"log"
	"net"
	"strings"

	"github.com/rs/zerolog"

	"switchboard/internal/certfile"
)

// certificates are the files that the ports use.
func (b *Broker) certificates() (list []*certfile.Files) {
	for _, files := range []*certfile.Files{b.opts.TLS, b.opts.PeerTLS} {
		if files != nil {
			list = append(list, files)
		}
	}
	return list
}

// linkTLS is how the links are dialled, nil for in the clear.
func (b *Broker) linkTLS() func() *tls.Config {
	if b.opts.PeerTLS == nil {
		return nil
	}
	return b.opts.PeerTLS.Client
}

// encrypted is l with the TLS of the port called name. The gate counts outside of it: who has no place is shown no certificate.
func (b *Broker) encrypted(name string, l net.Listener) net.Listener {
	switch {
	case name == "http" && b.opts.TLS != nil:
		return tls.NewListener(l, b.opts.TLS.Server())
	case name == "peer" && b.opts.PeerTLS != nil:
		return tls.NewListener(l, b.opts.PeerTLS.Mutual())
	}
	return l
}

// words takes what net/http has to say. Of handshakes that fail that is for debugging: anybody can make it say that.
type words struct{ log zerolog.Logger }

// Write implements io.Writer.
func (w words) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), zerolog.WarnLevel
	if strings.Contains(text, "TLS handshake error") {
		level = zerolog.DebugLevel
	}
	w.log.WithLevel(level).Str("from", "net/http").Msg(text)
	return len(line), nil
}

func (b *Broker) httpWords() *log.Logger { return log.New(words{b.opts.Logger}, "", 0) }
