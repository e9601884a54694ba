//go:build unix

package redistest

import "syscall"

// Pause suspends the process until Resume. Its connections stay open.
func (s *Server) Pause() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume continues a paused process.
func (s *Server) Resume() error { return s.cmd.Process.Signal(syscall.SIGCONT) }
