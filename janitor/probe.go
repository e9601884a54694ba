package janitor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"time"
)

// probeTimeout limits one probe, including dialing.
const probeTimeout = time.Second

// probeClient keeps no connections, because another process may listen at the address at the next
// probe.
var probeClient = http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Healthz reports whether a GET of http://host/healthz is answered within a second with status 200
// and a JSON object whose "server" is server. If another id answers, another process uses the
// address, so server is not alive.
func Healthz(ctx context.Context, host, server string) bool {
	return healthz(ctx, &probeClient, "http://"+host, server)
}

// HealthzTLS returns a function like Healthz that uses https. It calls config for each connection.
func HealthzTLS(config func() *tls.Config) func(ctx context.Context, host, server string) bool {
	client := http.Client{CheckRedirect: probeClient.CheckRedirect, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: config()}).DialContext(ctx, network, addr)
		},
	}}
	return func(ctx context.Context, host, server string) bool {
		return healthz(ctx, &client, "https://"+host, server)
	}
}

func healthz(ctx context.Context, client *http.Client, base, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var health struct{ Server string }
	err = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&health)
	return err == nil && response.StatusCode == http.StatusOK && health.Server == server
}
