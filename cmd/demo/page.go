package main

import (
	"embed"
	"io/fs"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"switchboard/client/js"
)

// readTimeout bounds the time in which a request line and its headers arrive.
const readTimeout = 10 * time.Second

//go:embed dist
var dist embed.FS

// policy permits the files of the page, and calls of the address that served it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves the files of the page, and below /sdk/ the JavaScript client.
func page() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServerFS(sub(dist)))
	mux.Handle("/sdk/", http.StripPrefix("/sdk", http.FileServerFS(sub(js.Dist))))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

// sub returns the folder dist of embedded files.
func sub(files embed.FS) fs.FS {
	root, err := fs.Sub(files, "dist")
	if err != nil {
		panic(err) // the name is valid
	}
	return root
}

// proxy forwards calls and WebSockets to the broker, with the host of the page: the broker compares
// it with the origin of the page.
func proxy(brokerAddr string) http.Handler {
	target := &url.URL{Scheme: "http", Host: brokerAddr}
	return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host
	}}
}
