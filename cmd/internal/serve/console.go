package serve

import (
	"net"

	"github.com/hashicorp/go-sockaddr"
)

// consoleURLs returns the URLs of the console on an HTTP port. For a port on all addresses these
// are that of the loopback interface, for this machine, and that of a private one, for its network.
func consoleURLs(addr string, encrypted bool) []string {
	scheme := "http://"
	if encrypted {
		scheme = "https://"
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil
	}
	hosts := []string{host}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		hosts[0] = "127.0.0.1"
		if private, err := sockaddr.GetPrivateIP(); err == nil && private != "" {
			hosts = append(hosts, private)
		}
	}
	urls := make([]string, len(hosts))
	for i, h := range hosts {
		urls[i] = scheme + net.JoinHostPort(h, port) + "/console/"
	}
	return urls
}
