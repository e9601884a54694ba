package broker

import (
	"fmt"
	"net/http"

	"github.com/rs/zerolog"

	"switchboard/broker/transport"
)

// maxLoggedOrigin is the most bytes of an origin in the log.
const maxLoggedOrigin = 200

// refuseOrigin returns why a page is refused because of its origin, "" if it is not. It logs
// refusals.
func (b *Broker) refuseOrigin(p transport.Page) string {
	if b.opts.Access.Origins.Allowed(p.Origin, p.Host) {
		return ""
	}
	b.logOrigin(p.Origin)
	return fmt.Sprintf("origin %.200s is not allowed", p.Origin)
}

// logOrigin logs that a page was refused because of its origin.
func (b *Broker) logOrigin(origin string) {
	b.limited.Warn("a page is refused: its origin is not allowed", func(e *zerolog.Event) {
		e.Str("origin", origin[:min(len(origin), maxLoggedOrigin)])
	})
}

// refuseOtherOrigins refuses requests of pages of other origins that may change something. The
// exceptions check the origin themselves: POST /sse and the public calls of extensions.
func (b *Broker) refuseOtherOrigins(h http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.AddInsecureBypassPattern("POST /sse")
	for _, c := range b.extensions.Calls() {
		if c.Public {
			protection.AddInsecureBypassPattern(c.Pattern)
		}
	}
	protection.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.logOrigin(r.Header.Get("Origin"))
		http.Error(w, protection.Check(r).Error(), http.StatusForbidden)
	}))
	return protection.Handler(h)
}
