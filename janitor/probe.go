package janitor

import (
	"context"
	"encoding/json"
	"io"
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
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/healthz", nil)
	if err != nil {
		return false
	}
	response, err := prober.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	var health struct{ Server string }
	err = json.NewDecoder(io.LimitReader(response.Body, 64<<10)).Decode(&health)
	return err == nil && response.StatusCode == http.StatusOK && health.Server == server
}
