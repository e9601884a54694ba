package main

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"github.com/centrifugal/centrifuge"
	"golang.org/x/sync/errgroup"
)

// publish publishes the body as one message, and answers with its offset in the channel.
func publish(node *centrifuge.Node, w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result, err := node.Publish(r.PathValue("channel"), data, centrifuge.WithHistory(historySize, historyTime))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, `{"offset":`+strconv.FormatUint(result.Offset, 10)+`}`) // an error means that the caller has disconnected
}

// message is one message of a batch.
type message struct {
	Channel string          `json:"channel"`
	Data    json.RawMessage `json:"data"`
}

// publishBatch publishes a list of messages. The library has no call for several channels. The
// messages are published concurrently, so that the library pipelines them, and therefore in no
// order.
func publishBatch(node *centrifuge.Node, w http.ResponseWriter, r *http.Request) {
	var batch []message
	if err := json.NewDecoder(r.Body).Decode(&batch); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var group errgroup.Group
	for _, m := range batch {
		group.Go(func() error {
			_, err := node.Publish(m.Channel, m.Data, centrifuge.WithHistory(historySize, historyTime))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = io.WriteString(w, `{"published":`+strconv.Itoa(len(batch))+`}`) // as above
}
