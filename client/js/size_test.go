package js_test

import (
	"bytes"
	"compress/gzip"
	"os/exec"
	"testing"
)

// maxSize bounds the size of the client in an application, in bytes: minified and compressed.
const maxSize = 13_350

// TestSize bundles the client, without the kit, as an application does, and compresses it as a web
// server does.
func TestSize(t *testing.T) {
	t.Parallel()
	readFiles(t, "dist")
	bundle, err := exec.CommandContext(t.Context(), "node_modules/.bin/esbuild", "dist/index.js", "--bundle", "--minify", "--format=esm", "--target=es2021").Output()
	if err != nil {
		t.Fatal(err)
	}
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(bundle); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if compressed.Len() > maxSize {
		t.Errorf("the client has %d bytes, at most %d are allowed", compressed.Len(), maxSize)
	}
	t.Logf("%d bytes", compressed.Len())
}
