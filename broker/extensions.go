package broker

import (
	"maps"
	"slices"

	"switchboard/broker/api"
	"switchboard/broker/extension"
)

// The names of what has moved to package extension.
type (
	// Extension is now extension.Extension.
	//
	// Deprecated: use that.
	Extension = extension.Extension
	// ChannelKind is now extension.ChannelKind.
	//
	// Deprecated: use that.
	ChannelKind = extension.ChannelKind
	// Owned is now extension.Owned.
	//
	// Deprecated: use that.
	Owned = extension.Owned
	// Usage is now extension.Usage.
	//
	// Deprecated: use that.
	Usage = extension.Usage
	// Host is now extension.Host.
	//
	// Deprecated: use that.
	Host = extension.Host
	// ChangeOptions is now extension.ChangeOptions.
	//
	// Deprecated: use that.
	ChangeOptions = extension.ChangeOptions
)

// Endpoints returns the calls of /v1, with those of the extensions.
func (b *Broker) Endpoints() []api.Call { return api.Endpoints(b.extensions.Calls()) }

// Methods returns the names of the request methods of all extensions, in order.
func (b *Broker) Methods() []string { return slices.Sorted(maps.Keys(b.extensions.Methods())) }
