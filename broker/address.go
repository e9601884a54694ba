package broker

import (
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/go-sockaddr"
	"github.com/hashicorp/go-sockaddr/template"
)

// Reserves of descriptors and connections.
const (
	// descriptorReserve is the number of descriptors that clients cannot use: Redis, files, links and
	// the API need them.
	descriptorReserve = 1000
	// apiReserve is the number of HTTP connections that are accepted after clients have used up the
	// limit.
	apiReserve = 256
	// refusalReserve is the number of refused HTTP connections that stay open at once, so that their
	// clients can read the reason.
	refusalReserve = 64
)

// defaultConnections returns the limit of descriptors minus the reserve, but at least half of it.
func defaultConnections() int {
	descriptors := openFiles()
	return max(descriptors-descriptorReserve, descriptors/2)
}

// advertised returns the host:port at which other servers reach a listener on addr. configured may
// be empty, a host, a host:port, or a go-sockaddr template for the host.
func advertised(configured string, addr net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "", fmt.Errorf("advertise: %w", err)
	}
	if strings.Contains(configured, "{{") {
		host, err = template.Parse(configured)
		if err != nil {
			return "", fmt.Errorf("advertise: %w", err)
		}
		if host = strings.TrimSpace(host); host == "" || strings.ContainsAny(host, " \n") {
			return "", fmt.Errorf("advertise: %q yields %q; want one address", configured, host)
		}
		return net.JoinHostPort(host, port), nil
	}
	if configured != "" {
		if _, _, err := net.SplitHostPort(configured); err != nil {
			return net.JoinHostPort(configured, port), nil // a host without a port
		}
		return configured, nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = sockaddr.GetPrivateIP(); err != nil || host == "" {
			return "", fmt.Errorf("advertise: no private interface found; set the address at which other instances reach this one (%v)", err)
		}
	}
	return net.JoinHostPort(host, port), nil
}
