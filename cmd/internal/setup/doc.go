// Package setup has the code that both commands share at their start: error messages and exit
// codes, the log, the connection to Redis, events, and signals.
package setup
