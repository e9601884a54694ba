// Package delivery carries a message from a backend's call to the owners of its channel or client:
// the servers to which the receivers are connected. It stores the message, reads the owners, and
// sends each one a hint, with the message if it is small. There the packages hub and session handle
// the hint.
package delivery
