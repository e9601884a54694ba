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

// probeTimeout bounds one probe, dialling included.
const probeTimeout = time.Second

// prober keeps no connections: the next probe of the same address, if there is one, has to
// find out anew who listens there.
var prober = http.Client{
	Transport:     &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Healthz reports whether a GET of http://host/healthz is answered within a second by 200
// and a JSON object whose "server" is server. Another id on the address is a
// successor: the server that was asked for is not alive.
func Healthz(ctx context.Context, host, server string) bool {
	return healthz(ctx, &prober, "http://"+host, server)
}

// HealthzTLS is Healthz over https, by what config gives at each.
func HealthzTLS(config func() *tls.Config) func(ctx context.Context, host, server string) bool {
	encrypted := http.Client{CheckRedirect: prober.CheckRedirect, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return (&tls.Dialer{NetDialer: &net.Dialer{Timeout: probeTimeout}, Config: config()}).DialContext(ctx, network, addr)
		},
	}}
	return func(ctx context.Context, host, server string) bool {
		return healthz(ctx, &encrypted, "https://"+host, server)
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
