package transport

import "syscall"

// shutdownWrite ends the write side of a socket.
func shutdownWrite(fd int) error { return syscall.Shutdown(syscall.Handle(fd), syscall.SHUT_WR) }
