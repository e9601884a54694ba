package testbed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// A Link is a Toxiproxy between two servers.
type Link struct{ proxy *toxiproxy.Proxy }

// NewLink returns a link to a server.
func NewLink(name, upstream string) (*Link, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &Link{toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", upstream, err)
	}
	return l, nil
}

// Addr returns the address of the proxy. It stays the same after Cut and Restore.
func (l *Link) Addr() string { return l.proxy.Listen }

// Forward sets the server to which new connections lead. It ends those that exist.
func (l *Link) Forward(upstream string) error {
	return l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: upstream, Enabled: true})
}

// Cut ends all connections and refuses new ones, until Restore.
func (l *Link) Cut() { l.proxy.Stop() }

// Restore ends the effects of Cut, Blackhole and Delay. Toxiproxy ends the connections that lost
// bytes.
func (l *Link) Restore(ctx context.Context) error {
	l.proxy.Toxics.ResetToxics(ctx)
	if err := l.proxy.Start(); err != nil && !errors.Is(err, toxiproxy.ErrProxyAlreadyStarted) {
		return err
	}
	return nil
}

// addToxic adds a toxic, which is Toxiproxy's word for a fault of a link, in both directions. It
// lasts until Restore.
func (l *Link) addToxic(kind, attributes string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		text := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// Blackhole drops all bytes until Restore. Connections stay open and new ones are accepted.
func (l *Link) Blackhole() error { return l.addToxic("timeout", `"timeout":0`) }

// Delay makes a round trip longer by d until Restore.
func (l *Link) Delay(d time.Duration) error {
	return l.addToxic("latency", fmt.Sprintf(`"latency":%d`, d.Milliseconds()/2))
}
