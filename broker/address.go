package broker

import (
	"fmt"
	"net"
	"strings"

	"github.com/hashicorp/go-sockaddr"
	"github.com/hashicorp/go-sockaddr/template"
	"golang.org/x/sys/unix"
)

// reserve is how many descriptors are kept from clients: for Redis, files, peers, and the
// API's own connections.
const reserve = 1000

// apiReserve is how many HTTP connections are let in when clients have filled the process.
const apiReserve = 256

// awayReserve is how many HTTP connections over a limit of addresses may read why at once.
const awayReserve = 64

// defaultConnections is the descriptor limit less the reserve.
func defaultConnections() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 10_000
	}
	most := int(min(limit.Cur, 10_000_000))
	return max(most-reserve, most/2)
}

// advertised is the host:port under which other instances reach a listener at addr.
// configured may be empty, host:port, or a go-sockaddr template for the host.
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
			return "", fmt.Errorf("advertise: %q gives %q, one address is needed", configured, host)
		}
		return net.JoinHostPort(host, port), nil
	}
	if configured != "" {
		if _, _, err := net.SplitHostPort(configured); err != nil {
			return net.JoinHostPort(configured, port), nil // a host alone
		}
		return configured, nil
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		if host, err = sockaddr.GetPrivateIP(); err != nil || host == "" {
			return "", fmt.Errorf("advertise: no private interface found; say which address other instances reach (%v)", err)
		}
	}
	return net.JoinHostPort(host, port), nil
}
