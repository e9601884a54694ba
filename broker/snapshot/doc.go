// Package snapshot keeps the states of channels for the subscribers on this server.
//
// Each channel with state subscribers has a view: the state at one id. It is read from the store
// once, and then changes with the messages that the hub delivers. The view makes pages of the state
// for clients that subscribe. Ten thousand clients that reconnect cost one read of the store and
// one encoding of the pages for each prefix.
//
// If messages are missing, for example because the store lost some, the view is read again. A view
// whose channel has no state subscribers is dropped after some seconds. If the sum of the views
// exceeds Options.Bytes, the least recently used views lose their fields. Their next pages read the
// store again.
//
// A view also knows when the next field ends. At that time one server removes the fields that are
// due, so that the subscribers learn it. The servers of a channel have an order (rendezvous
// hashing). The first server does so at once. Each further server waits for the servers before it.
package snapshot
