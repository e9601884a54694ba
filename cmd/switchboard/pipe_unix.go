//go:build unix

package main

import "syscall"

// errPipeClosed is the error of a write to a pipe whose reader has ended.
const errPipeClosed = syscall.EPIPE
