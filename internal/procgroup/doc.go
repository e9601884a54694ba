// Package procgroup starts a command so that it can be ended together with the processes that it
// has started.
package procgroup
