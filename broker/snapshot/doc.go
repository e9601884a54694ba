// Package snapshot keeps the states of channels for the subscribers on this server.
//
// Each channel with state subscribers has a view: the state at one id. It is read from the store
// once, and then changes with the messages that the hub delivers. The view makes pages of the state
// for clients that subscribe. Ten thousand clients that reconnect cost one read of the store and
// one encoding of the pages for each prefix.
//
// If messages are missing, as after a loss in the store, the view is read again. A view whose
// channel has no state subscribers is dropped after some seconds. If all views take too many bytes,
// those that were not used for the longest time lose their fields; the next pages read the store
// again.
//
// A view also knows when the next field ends. At that time one server removes the fields that are
// due, so that the subscribers learn it. The servers of a channel have an order (rendezvous
// hashing). The first one does it at once, and each further one only if the ones before it did not.
package snapshot
