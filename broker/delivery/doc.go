// Package delivery is the way of a message from a backend's call to the servers that
// hold its receivers: it is stored first, then its owners are read, then each owner gets
// a hint. What happens on the owner's side is in the packages hub and session.
package delivery
