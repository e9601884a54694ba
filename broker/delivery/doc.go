// Package delivery carries a message from a backend's call to the servers that hold its receivers.
// It stores the message, reads the owners of the channel or client, and sends each owner a hint.
// The packages hub and session handle the hint on the owner.
package delivery
