package main

import "syscall"

// errPipeClosed is the error of a write to a pipe whose reader has ended (ERROR_NO_DATA).
const errPipeClosed = syscall.Errno(232)
