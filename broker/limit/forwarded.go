package limit

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// Forwarded is whom peer connects for, if peer is one of the proxies: the last address in the values of X-Forwarded-For
// that is not another of them. Each proxy appends whom it saw, so what stands before that is anybody's word. It is the zero
// Addr where nobody is named who can be believed, or peer is no proxy.
func (a *Addresses) Forwarded(peer netip.Addr, values []string) netip.Addr {
	if a == nil || !peer.IsValid() || !a.proxy(peer) {
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
			addr, ok := parse(strings.TrimSpace(last))
			if !ok {
				return netip.Addr{}
			}
			if !a.proxy(addr) {
				return addr
			}
		}
	}
	return netip.Addr{}
}

// parse reads an address, also with a port behind it, which some proxies give.
func parse(text string) (netip.Addr, bool) {
	if addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")); err == nil {
		return addr, true
	}
	with, err := netip.ParseAddrPort(text)
	return with.Addr(), err == nil
}

// Networks reads addresses, and networks like 10.0.0.0/8.
func Networks(texts []string) ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range texts {
		p, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil && addr.Zone() == "" {
			p, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is no address and no network like 10.0.0.0/8", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}
