// Package ci has tests of the scripts in .ci.
package ci
