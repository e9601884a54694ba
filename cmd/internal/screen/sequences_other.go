//go:build !windows

package screen

import "os"

// enableSequences does nothing: terminals understand the sequences for colours.
func enableSequences(*os.File) {}
