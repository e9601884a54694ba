package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// link is a line between two servers, through Toxiproxy.
type link struct{ proxy *toxiproxy.Proxy }

func newLink(name, upstream string) (*link, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &link{toxiproxy.NewProxy(server, name, "127.0.0.1:0", upstream)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", upstream, err)
	}
	return l, nil
}

// addr is where it listens; it stays over a cut.
func (l *link) addr() string { return l.proxy.Listen }

// cut ends all connections and refuses new ones, until mend.
func (l *link) cut() { l.proxy.Stop() }

func (l *link) mend() error { return l.proxy.Start() }

// toxic adds something to the line in both directions, until heal.
func (l *link) toxic(kind, attributes string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		text := fmt.Sprintf(`{"type":%q,"stream":%q,"attributes":{%s}}`, kind, stream, attributes)
		if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(text)); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}

// swallow makes all bytes vanish, while connections stay and new ones are taken.
func (l *link) swallow() error { return l.toxic("timeout", `"timeout":0`) }

// delay makes a round trip that much longer.
func (l *link) delay(d time.Duration) error {
	return l.toxic("latency", fmt.Sprintf(`"latency":%d`, d.Milliseconds()/2))
}

// heal takes the toxic away. Toxiproxy ends the connections that lost bytes.
func (l *link) heal(ctx context.Context, kind string) error {
	for _, stream := range []string{"upstream", "downstream"} {
		if err := l.proxy.Toxics.RemoveToxic(ctx, kind+"_"+stream); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	return nil
}
