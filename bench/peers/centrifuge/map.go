package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/centrifugal/centrifuge"
	"golang.org/x/sync/errgroup"
)

// Map subscriptions are this library's state of a channel: entries by key, and a stream of their
// changes. The maps of a process have one mode.
const (
	noMaps        = ""
	persistentMap = "persistent" // entries without an end, changes are kept for recovery
	ephemeralMap  = "ephemeral"  // entries with an end, changes are not kept; the library recommends it for cursors
)

// ephemeralTime is the time until an entry ends that is not written again.
const ephemeralTime = time.Minute

// mapOptions returns the options of each channel with a map.
func mapOptions(mode string) func(string) centrifuge.MapChannelOptions {
	options := centrifuge.MapChannelOptions{
		Mode: centrifuge.MapModePersistent, StreamSize: historySize, StreamTTL: historyTime,
		DefaultPageSize: 1000, MinPageSize: 1,
	}
	if mode == ephemeralMap {
		options = centrifuge.MapChannelOptions{Mode: centrifuge.MapModeEphemeral, KeyTTL: ephemeralTime}
	}
	return func(string) centrifuge.MapChannelOptions { return options }
}

// publishEntry changes one entry to the body. With ?if=exists it changes only an entry that exists.
func publishEntry(node *centrifuge.Node, w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options := centrifuge.MapPublishOptions{Data: data}
	if r.URL.Query().Get("if") == "exists" {
		options.KeyMode = centrifuge.KeyModeIfExists
	}
	result, err := node.MapPublish(r.Context(), r.PathValue("channel"), r.PathValue("key"), options)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	case result.Suppressed:
		http.Error(w, string(result.SuppressReason), http.StatusConflict)
	default:
		_, _ = io.WriteString(w, `{"offset":`+strconv.FormatUint(result.Position.Offset, 10)+`}`) // as in publish
	}
}

// fillMap writes one value to the entries with the given keys. The library has no call for several
// entries.
func fillMap(node *centrifuge.Node, w http.ResponseWriter, r *http.Request) {
	var fill struct {
		Keys []string        `json:"keys"`
		Data json.RawMessage `json:"data"`
	}
	if err := json.NewDecoder(r.Body).Decode(&fill); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var group errgroup.Group
	for _, key := range fill.Keys {
		group.Go(func() error {
			_, err := node.MapPublish(r.Context(), r.PathValue("channel"), key, centrifuge.MapPublishOptions{Data: fill.Data})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, `{"written":`+strconv.Itoa(len(fill.Keys))+`}`) // as in publish
}

// entry is one entry of an answer of readMap.
type entry struct {
	Offset uint64          `json:"offset"`
	Data   json.RawMessage `json:"data"`
}

// readMap answers with all entries of a map.
func readMap(node *centrifuge.Node, w http.ResponseWriter, r *http.Request) {
	result, err := node.MapStateRead(r.Context(), r.PathValue("channel"), centrifuge.MapReadStateOptions{Limit: -1})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	entries := make(map[string]entry, len(result.Publications))
	for _, p := range result.Publications {
		entries[p.Key] = entry{p.Offset, p.Data}
	}
	body, err := json.Marshal(map[string]any{"offset": result.Position.Offset, "fields": entries})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(body) // as in publish
}

// heap collects garbage and answers with the bytes of the heap that are in use.
func heap(w http.ResponseWriter, _ *http.Request) {
	var m runtime.MemStats
	for range 3 { // a sync.Pool keeps what it has for one collection
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	_, _ = fmt.Fprintf(w, `{"heap":%d}`, m.HeapAlloc) // as in publish
}
