//go:build !windows

package screen

import "os"

// enableSequences does nothing: terminals understand the escape sequences for colours.
func enableSequences(*os.File) {}
