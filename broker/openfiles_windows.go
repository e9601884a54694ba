package broker

// openFiles returns how many descriptors the process may open. Windows has no such limit.
func openFiles() int { return 10_000 }
