package transport

import "net/http"

// Page is what a request says about the web page that sends it, if a page does.
type Page struct {
	Origin, Host string // the headers
	// Secure means that the URL of the page is https, so that the browser has verified the name of the
	// host by a certificate.
	Secure bool
	// Silent means that browsers send such a request without Origin for a page of the same host. They
	// always send an Origin with a WebSocket handshake, and with other methods than GET and HEAD.
	Silent bool
}

// PageOf returns the page that sends a request. Browsers add Sec-Fetch-Site only if the URL is
// https or the host is localhost, and no script can set it (Fetch Metadata §2). So the header shows
// https also if a load balancer has ended TLS.
func PageOf(r *http.Request) Page {
	return Page{
		Origin: r.Header.Get("Origin"), Host: r.Host,
		Secure: r.TLS != nil || r.Header.Get("Sec-Fetch-Site") != "",
		Silent: r.Method == http.MethodGet || r.Method == http.MethodHead,
	}
}
