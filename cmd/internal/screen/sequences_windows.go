package screen

import (
	"os"

	"golang.org/x/sys/windows"
)

// enableSequences makes an older console of Windows understand the escape sequences for colours.
func enableSequences(f *os.File) {
	console := windows.Handle(f.Fd())
	var mode uint32
	if windows.GetConsoleMode(console, &mode) == nil {
		_ = windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING)
	}
}
