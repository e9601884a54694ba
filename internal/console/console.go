// Package console serves the web console of the broker: one page, which calls the HTTP API of the
// broker that served it.
//
// The folder web has the sources, in TypeScript. The folder dist has the files that a browser
// loads. They are committed, so that a build of the broker needs Go only. A test compares them with
// a fresh build:
//
//	npm ci --prefix internal/console/web && npm run build --prefix internal/console/web
package console

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed dist
var dist embed.FS

// Path is the path of the console. The handler serves everything below it.
const Path = "/console/"

// policy permits nothing but the files of the console and calls of the broker. A payload that
// contained a script could not run it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// kinds are the media types by extension. Package mime would also ask the tables of the system.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// file is a file of the console.
type file struct {
	kind       string // the media type
	etag       string
	plain, zip []byte
}

// Handler serves the console below [Path].
type Handler struct {
	files map[string]file // by path
}

// New returns the handler. It compresses the files, which takes some 10 ms.
func New() (*Handler, error) {
	h := &Handler{files: map[string]file{}}
	root, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	err = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		h.files[Path+name], err = newFile(name, text)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	h.files[Path] = h.files[Path+"index.html"]
	return h, nil
}

func newFile(name string, text []byte) (file, error) {
	var zip bytes.Buffer
	w, err := gzip.NewWriterLevel(&zip, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err == nil {
		err = w.Close()
	}
	digest := sha256.Sum256(text)
	return file{
		kind: kinds[path.Ext(name)], etag: `"` + hex.EncodeToString(digest[:12]) + `"`,
		plain: text, zip: zip.Bytes(),
	}, err
}

// ServeHTTP answers GET and HEAD. A browser asks again at each load, and gets a 304 if nothing has
// changed: the console is always as new as the broker.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Frame-Options", "DENY")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "the console is only read", http.StatusMethodNotAllowed)
		return
	}
	f, found := h.files[r.URL.Path]
	if !found {
		http.Error(w, "the console has no such file", http.StatusNotFound)
		return
	}
	body, etag := f.plain, f.etag
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		body, etag = f.zip, strings.TrimSuffix(f.etag, `"`)+`-gzip"` // another body, another tag
	}
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", f.kind)
	header.Set("ETag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Length", fmt.Sprint(len(body)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(body)
	}
}

// acceptsGzip reports whether an Accept-Encoding names gzip, without the weight 0.
func acceptsGzip(values []string) bool {
	for entry := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(entry, " ", ""), ";q=")
		if strings.EqualFold(coding, "gzip") {
			return weight == "" || strings.Trim(weight, "0.") != ""
		}
	}
	return false
}
