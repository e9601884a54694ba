package dialecttest

import "testing"

// EachDialect runs all tests of a package once for each dialect, which it first assigns to Spoken.
type EachDialect struct {
	*testing.M
	Spoken *Dialect
}

// Run runs the tests.
func (e EachDialect) Run() (code int) {
	for _, *e.Spoken = range All() {
		code |= e.M.Run()
	}
	return code
}

// SpeakJSON makes a test use the native dialect. Tests of JSON, text frames, exact bytes or
// allocations call it.
func SpeakJSON(t testing.TB, spoken *Dialect) {
	before := *spoken
	t.Cleanup(func() { *spoken = before })
	*spoken = All()[0]
}
