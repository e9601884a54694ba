package broker

import (
	"errors"
	"fmt"
	"net"

	"switchboard/broker/auth"
	"switchboard/broker/namespace"
	"switchboard/broker/peer"
	"switchboard/internal/setting"
)

// Validate returns all errors in the options. They name the settings as the configuration file
// does.
func (o Options) Validate() error {
	var errs []error
	if o.Store.Registry == nil || o.Store.Queue == nil {
		errs = append(errs, errors.New("registry and queue: both are required"))
	}
	errs = append(errs, o.validateAddresses(), o.validateLinks(), o.validateOperatorPorts())
	if setting.Negative(&o.Limits) || min(o.Requests.Queues, o.Requests.Rate, o.Requests.Share) < 0 {
		errs = append(errs, errors.New("limits: none of them may be below zero"))
	}
	errs = append(errs, o.Requests.Backend.Validate())
	return errors.Join(errs...)
}

// validateAddresses checks the main ports, and that an open broker listens only on loopback
// addresses.
func (o Options) validateAddresses() error {
	var errs []error
	loopback := true
	for _, port := range []struct{ name, addr, special string }{
		{"http", o.Listen.HTTP, ""}, {"tcp", o.Listen.TCP, "off"}, {"peer", o.Links.Address, LinksOnHTTP},
	} {
		if port.addr == "" || port.addr == port.special {
			continue
		}
		host, _, err := net.SplitHostPort(port.addr)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %q is not host:port: %w", port.name, port.addr, err))
			continue
		}
		loopback = loopback && isLoopback(host)
	}
	switch {
	case loopback || o.Access.Insecure:
	case o.Access.Keys.Open():
		errs = append(errs, errors.New("auth.keys: no API key, so every caller that reaches this address may push; give keys, or --insecure"))
	case o.Access.Tokens.Open():
		errs = append(errs, errors.New("auth: no token key, so clients choose their user freely; give one, or --insecure"))
	case o.Store.Shared && o.Links.Secret == "":
		errs = append(errs, errors.New("peer_secret: none, so every caller that reaches this address may act as an instance; give one, or --insecure"))
	}
	return errors.Join(errs...)
}

func (o Options) validateLinks() error {
	if _, err := auth.NewPeerSecret(o.Links.Secret); err != nil {
		return fmt.Errorf("peer_secret: %w", err)
	}
	if fault := peer.Fault(o.Links.HintFault); fault != "" && fault != peer.Drop && fault != peer.Mangle {
		return fmt.Errorf("faults.hints: %q is neither drop nor mangle", fault)
	}
	switch {
	case !o.Store.Shared || o.separateLinkPort():
		return nil
	case o.Listen.TLS != nil || o.Links.TLS != nil:
		return errors.New("peer: with TLS the links between instances need a port of their own (peer: host:port)")
	case o.Links.Address == "" && !onLoopback(o.Listen.HTTP):
		return errors.New("peer: the links between instances would be on the public HTTP address; " +
			"give them a port of their own (peer: host:port), or confirm it (peer: http)")
	}
	return nil
}

// validateOperatorPorts checks the addresses of the probes and profiles.
func (o Options) validateOperatorPorts() error {
	if addr := o.Listen.Probes; addr != "" {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("probes: %q is not host:port: %w", addr, err)
		}
	}
	if !onLoopback(o.Listen.Pprof) {
		return fmt.Errorf("pprof: %q is not a loopback host:port; profiles contain data from memory", o.Listen.Pprof)
	}
	return nil
}

// Open reports whether all callers may push and all clients may connect.
func (o AccessOptions) Open() bool { return o.Keys.Open() && o.Tokens.Open() }

// Rules returns Namespaces, or the rules that apply without them.
func (o AccessOptions) Rules() *namespace.Set {
	switch {
	case o.Namespaces != nil:
		return o.Namespaces
	case o.Open():
		return namespace.Open()
	}
	return namespace.Keyed(o.ClientPublish)
}

// UnencryptedLinks reports whether the links leave this machine without TLS.
func (o Options) UnencryptedLinks() bool {
	addr := o.Listen.HTTP
	if o.separateLinkPort() {
		addr = o.Links.Address
	}
	return o.Store.Shared && o.Links.TLS == nil && !onLoopback(addr)
}

// separateLinkPort reports whether the links have a port of their own.
func (o Options) separateLinkPort() bool {
	return o.Links.Address != "" && o.Links.Address != LinksOnHTTP
}

// onLoopback reports whether addr is a host:port that only this machine reaches. It returns true
// for the empty address, since all defaults are on loopback.
func onLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return addr == "" || err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
