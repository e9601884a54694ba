// Package proxyproto parses the header of the PROXY protocol, versions 1 and 2, with which a load
// balancer names the client of a TCP connection. The header may arrive in pieces.
//
// The standard is HAProxy's document "The PROXY protocol", sections 2.1 (version 1, text) and 2.2
// (version 2, binary).
package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

const (
	// MaxHeader is the most bytes of a header. Version 1 has at most 107. The addresses of version 2
	// take at most 232; the rest is for its options, which may hold a certificate's name.
	MaxHeader = 4 << 10

	maxText = 107 // bytes of a header of version 1, with its CRLF
	prefix  = "PROXY "
	fixed   = 16 // bytes of version 2 before the addresses
)

// signature begins a header of version 2. No other protocol starts with these bytes.
const signature = "\r\n\r\n\x00\r\nQUIT\n"

// Errors of Parse.
var (
	ErrMissing   = errors.New("the connection does not begin with a PROXY header")
	ErrMalformed = errors.New("the PROXY header is malformed")
	ErrTooLong   = errors.New("the PROXY header is too long")
)

// Parse reads the header at the beginning of buf. It returns the client's address and the length of
// the header, or 0 if more bytes must arrive. The address is the zero AddrPort if the header names
// none: the load balancer speaks for itself (LOCAL), or does not know the client (UNKNOWN, UNSPEC,
// UNIX). The connection then has the address of its socket. Options (TLVs) are skipped.
func Parse(buf []byte) (client netip.AddrPort, n int, err error) {
	switch {
	case begins(buf, signature):
		return parseBinary(buf)
	case begins(buf, prefix):
		return parseText(buf)
	}
	return netip.AddrPort{}, 0, ErrMissing
}

// Begins reports whether buf begins with a complete mark of a header of either version.
func Begins(buf []byte) bool {
	return bytes.HasPrefix(buf, []byte(signature)) || bytes.HasPrefix(buf, []byte(prefix))
}

// begins reports whether buf and mark are equal as far as buf goes.
func begins(buf []byte, mark string) bool {
	n := min(len(buf), len(mark))
	return string(buf[:n]) == mark[:n]
}

// parseText parses version 1, like "PROXY TCP4 192.0.2.7 10.0.0.1 51312 7070\r\n".
func parseText(buf []byte) (client netip.AddrPort, n int, err error) {
	end := bytes.IndexByte(buf, '\n')
	switch {
	case end >= maxText, end < 0 && len(buf) >= maxText:
		return client, 0, ErrTooLong
	case end < 0:
		return client, 0, nil
	case buf[end-1] != '\r':
		return client, 0, ErrMalformed
	}
	fields := strings.Split(string(buf[len(prefix):end-1]), " ")
	if fields[0] == "UNKNOWN" { // the rest of the line has no meaning
		return client, end + 1, nil
	}
	if len(fields) != 5 {
		return client, 0, ErrMalformed
	}
	source, sourceOK := parseEndpoint(fields[0], fields[1], fields[3])
	_, targetOK := parseEndpoint(fields[0], fields[2], fields[4])
	if !sourceOK || !targetOK {
		return client, 0, ErrMalformed
	}
	return source, end + 1, nil
}

// parseEndpoint parses an address and a port of the family TCP4 or TCP6.
func parseEndpoint(family, address, port string) (netip.AddrPort, bool) {
	addr, err := netip.ParseAddr(address)
	if err != nil || addr.Zone() != "" || family != "TCP4" && family != "TCP6" || addr.Is4() != (family == "TCP4") {
		return netip.AddrPort{}, false
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || strconv.FormatUint(number, 10) != port { // a plus sign, or zeros before the number
		return netip.AddrPort{}, false
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), true
}

// Values of version 2.
const (
	local    = 0x20 // version and command
	proxied  = 0x21
	unspec   = 0x0 // address families
	inet     = 0x1
	inet6    = 0x2
	unix     = 0x3
	lastKind = 0x2 // datagram; 0 is unspecified, and 1 is a stream
)

// sizes are the bytes of the addresses of each family: source, target and the two ports.
var sizes = [...]int{unspec: 0, inet: 2*4 + 4, inet6: 2*16 + 4, unix: 2 * 108}

// parseBinary parses version 2.
func parseBinary(buf []byte) (client netip.AddrPort, n int, err error) {
	if len(buf) < fixed {
		return client, 0, nil
	}
	command, family, kind := buf[12], buf[13]>>4, buf[13]&0xf
	n = fixed + int(binary.BigEndian.Uint16(buf[14:]))
	switch {
	case command != local && command != proxied:
		return client, 0, ErrMalformed
	case n > MaxHeader:
		return client, 0, ErrTooLong
	case command == proxied && (int(family) >= len(sizes) || kind > lastKind || n < fixed+sizes[family]):
		return client, 0, ErrMalformed
	case len(buf) < n:
		return client, 0, nil
	case command == local:
		return client, n, nil
	}
	addresses := buf[fixed:n]
	switch family {
	case inet:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(addresses)), binary.BigEndian.Uint16(addresses[8:])), n, nil
	case inet6:
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(addresses)).Unmap(), binary.BigEndian.Uint16(addresses[32:])), n, nil
	}
	return client, n, nil
}
