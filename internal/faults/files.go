package main

import "os"

func makeDir(dir string) error { return os.MkdirAll(dir, 0o755) }

func removeDir(dir string) error { return os.RemoveAll(dir) }

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
