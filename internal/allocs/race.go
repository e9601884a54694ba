//go:build race

package allocs

const raceDetector = true
