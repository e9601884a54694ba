// Package spec holds the machine-readable descriptions of the broker: openapi.yaml describes the
// HTTP port, and asyncapi.yaml the messages of WebSocket, TCP and Server-Sent Events. Its tests
// compare both with a running broker.
package spec

import (
	_ "embed"
	"net/http"
	"strconv"
	"sync"
)

// The paths of the documents.
const (
	PathOpenAPI     = "/openapi.yaml"
	PathOpenAPIJSON = "/openapi.json"
	PathAsyncAPI    = "/asyncapi.yaml"
)

//go:embed openapi.yaml
var openAPI []byte

//go:embed asyncapi.yaml
var asyncAPI []byte

// OpenAPI returns the OpenAPI 3.1 document, as YAML. The caller must not change it.
func OpenAPI() []byte { return openAPI }

// AsyncAPI returns the AsyncAPI 3.0 document, as YAML. The caller must not change it.
func AsyncAPI() []byte { return asyncAPI }

// OpenAPIJSON returns the OpenAPI document as JSON, with its members in the same order. The first
// call converts it.
var OpenAPIJSON = sync.OnceValues(func() ([]byte, error) { return toJSON(openAPI) })

// Handle registers the documents. They need no API key, because they describe every broker of this
// version alike.
func Handle(mux *http.ServeMux) {
	mux.HandleFunc("GET "+PathOpenAPI, func(w http.ResponseWriter, _ *http.Request) { write(w, "application/yaml", openAPI) })
	mux.HandleFunc("GET "+PathAsyncAPI, func(w http.ResponseWriter, _ *http.Request) { write(w, "application/yaml", asyncAPI) })
	mux.HandleFunc("GET "+PathOpenAPIJSON, func(w http.ResponseWriter, _ *http.Request) {
		text, err := OpenAPIJSON()
		if err != nil { // a test converts the document
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, "application/json", text)
	})
}

func write(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write(text)
}
