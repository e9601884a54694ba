package js_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"switchboard/client/js"
)

// maxSize bounds the compressed size of the client, in bytes.
const maxSize = 11_700

// TestSize compresses the client, without the kit, as a web server does.
func TestSize(t *testing.T) {
	t.Parallel()
	file, err := js.Dist.Open("dist/index.js")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, file); err != nil {
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
