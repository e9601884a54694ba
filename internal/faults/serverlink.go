package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// serverLink is a Toxiproxy between two servers.
type serverLink struct{ proxy *toxiproxy.Proxy }

func newServerLink(name, upstream string) (*serverLink, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &serverLink{toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", upstream, err)
	}
	return l, nil
}

// addr returns the address of the proxy. It stays the same after cut and restore.
func (l *serverLink) addr() string { return l.proxy.Listen }

// cut ends all connections and refuses new ones, until restore.
func (l *serverLink) cut() { l.proxy.Stop() }

func (l *serverLink) restore() error { return l.proxy.Start() }

// addToxic adds a toxic, which is Toxiproxy's word for a fault of a link, in both directions. It
// lasts until removeToxic.
func (l *serverLink) addToxic(kind, attributes string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		text := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// blackhole drops all bytes. Connections stay open and new ones are accepted.
func (l *serverLink) blackhole() error { return l.addToxic("timeout", `"timeout":0`) }

// delay makes a round trip longer by d.
func (l *serverLink) delay(d time.Duration) error {
	return l.addToxic("latency", fmt.Sprintf(`"latency":%d`, d.Milliseconds()/2))
}

// removeToxic removes a toxic. Toxiproxy ends the connections that lost bytes.
func (l *serverLink) removeToxic(ctx context.Context, kind string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		if err := l.proxy.Toxics.RemoveToxic(ctx, kind+"_"+stream); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}
