package limit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Forwarded returns the client's address behind the proxy peer: the last address in the values of
// X-Forwarded-For that is not a proxy. Each proxy appends the address that it saw, so the client
// may have invented all addresses before that one. Forwarded returns the zero Addr if peer is not
// a proxy, or the values name no client.
func Forwarded(proxies []netip.Prefix, peer netip.Addr, values []string) netip.Addr {
	if !peer.IsValid() || !Contains(proxies, peer) {
		return netip.Addr{}
	}
	for _, value := range slices.Backward(values) {
		for more := true; more; {
			last := value
			if i := strings.LastIndexByte(value, ','); i >= 0 {
				value, last = value[:i], value[i+1:]
			} else {
				more = false
			}
			addr, ok := parseAddr(strings.TrimSpace(last))
			if !ok {
				return netip.Addr{}
			}
			if !Contains(proxies, addr) {
				return addr
			}
		}
	}
	return netip.Addr{}
}

// parseAddr parses an address with or without a port; some proxies append one.
func parseAddr(text string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		return addr, true
	}
	addrPort, err := netip.ParseAddrPort(text)
	return addrPort.Addr(), err == nil
}

// Networks parses addresses and networks such as 10.0.0.0/8.
func Networks(texts []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil && addr.Zone() == "" {
			p, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is not an address or a network like 10.0.0.0/8", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
