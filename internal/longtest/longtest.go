// Package longtest decides how much a test does. `make test` is quick: it leaves out test files
// with the build tag "long", and random tests use few seeds. `make test-long` sets the tag, and
// runs what `make test` has left out.
package longtest

// Seeds returns the number of seeds, rounds or steps of a random test: quick, or with the build tag
// "long" the larger number long.
func Seeds(quick, long uint64) uint64 {
	if enabled {
		return long
	}
	return quick
}
