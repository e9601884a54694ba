// Package setup is what the two commands do alike on their way to work: refuse to start in
// one line, write a log, open Redis and keep an eye on it, end on a signal.
package setup
