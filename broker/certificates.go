package broker

import (
	"crypto/tls"
	"log"
	"net"
	"strings"

	"github.com/rs/zerolog"

	"switchboard/internal/certfile"
)

// certificates returns the certificates of the ports.
func (b *Broker) certificates() (list []*certfile.Files) {
	for _, files := range []*certfile.Files{b.opts.Listen.TLS, b.opts.Links.TLS} {
		if files != nil {
			list = append(list, files)
		}
	}
	return list
}

// linkTLS returns the function that makes the TLS configuration for dialling links, nil for no TLS.
func (b *Broker) linkTLS() func() *tls.Config {
	if b.opts.Links.TLS == nil {
		return nil
	}
	return b.opts.Links.TLS.Client
}

// encrypted adds TLS to l if the port called name has a certificate. The gate of l refuses
// connections before TLS, so a refused connection costs no handshake.
func (b *Broker) encrypted(name string, l net.Listener) net.Listener {
	switch {
	case name == "http" && b.opts.Listen.TLS != nil:
		return tls.NewListener(l, b.opts.Listen.TLS.Server())
	case name == "peer" && b.opts.Links.TLS != nil:
		return tls.NewListener(l, b.opts.Links.TLS.Mutual())
	}
	return l
}

// httpErrors writes the errors of net/http to the log. Failed TLS handshakes have debug level,
// since any caller can cause them.
type httpErrors struct{ log zerolog.Logger }

// Write implements io.Writer.
func (h httpErrors) Write(line []byte) (int, error) {
	text, level := strings.TrimSpace(string(line)), zerolog.WarnLevel
	if strings.Contains(text, "TLS handshake error") {
		level = zerolog.DebugLevel
	}
	h.log.WithLevel(level).Str("from", "net/http").Msg(text)
	return len(line), nil
}

func (b *Broker) httpErrorLog() *log.Logger { return log.New(httpErrors{b.opts.Logger}, "", 0) }

// certificateEnds returns when the first certificate of the ports ends, ms since 1970, or 0.
func (b *Broker) certificateEnds() (first int64) {
	for _, files := range b.certificates() {
		if ends := files.NotAfter(); !ends.IsZero() && (first == 0 || ends.UnixMilli() < first) {
			first = ends.UnixMilli()
		}
	}
	return first
}
