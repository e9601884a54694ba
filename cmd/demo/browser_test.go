//go:build long

package main

import (
	"context"
	"testing"
	"time"
)

// TestBrowser runs web/test/demo.test.mjs, in Chromium, with a demo that the test starts.
func TestBrowser(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	url, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- run(ctx, "127.0.0.1:0", t.Output(), func(u string) { url <- u }) }()
	select {
	case u := <-url:
		command(t, []string{"DEMO_URL=" + u}, "node", "--test", "web/test/demo.test.mjs")
	case err := <-ended:
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
