package api

import (
	"slices"
	"sync"
	"sync/atomic"
)

// ClientWatches are the calls that wait for messages of clients. The zero value has none.
type ClientWatches struct {
	count atomic.Int32 // of all channels in byClient: without calls a hint costs one load

	mu       sync.Mutex // guards byClient
	byClient map[string][]chan struct{}
}

// Add implements Options.WatchClient.
func (w *ClientWatches) Add(client string) (changed <-chan struct{}, stop func()) {
	signal := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byClient == nil {
		w.byClient = make(map[string][]chan struct{})
	}
	w.byClient[client] = append(w.byClient[client], signal)
	w.count.Add(1)
	return signal, func() { w.remove(client, signal) }
}

func (w *ClientWatches) remove(client string, signal chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count.Add(-1)
	list := w.byClient[client]
	i := slices.Index(list, signal)
	if list = slices.Delete(list, i, i+1); len(list) > 0 {
		w.byClient[client] = list
	} else {
		delete(w.byClient, client)
	}
}

// Hint wakes the calls that wait for messages of a client.
func (w *ClientWatches) Hint(client string) {
	if w.count.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, signal := range w.byClient[client] {
		select {
		case signal <- struct{}{}:
		default:
		}
	}
}
