package linear

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"switchboard/internal/state"
	"switchboard/internal/testbed"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// httpStore is a store over the HTTP API of brokers. It uses one broker after the other.
type httpStore struct {
	device
	client  *http.Client
	brokers []string // host:port
	at      int
}

func newHTTPStore(brokers []string) *httpStore {
	return &httpStore{client: &http.Client{Transport: &http.Transport{}}, brokers: brokers}
}

// httpAnswer is the answer to a call.
type httpAnswer struct {
	Results []struct {
		ID        int64
		Duplicate bool
		Fields    map[string]int64
	}
	Error *struct {
		Code    wire.ErrorCode
		Message string
		Fields  json.RawMessage
		Group   string
		Max     int
	}

	// Of a page, or of the first channel of a query.
	httpPage
	Channels []httpPage
}

type httpPage struct {
	ID     int64
	Fields json.RawMessage
	Cursor string
}

func (s *httpStore) reconnect(context.Context) error {
	s.at++
	return nil
}

// call makes a call. After a failure, later calls go to the next broker.
func (s *httpStore) call(ctx context.Context, method, path string, body any) (answer httpAnswer, err error) {
	api := testbed.API{HTTP: s.brokers[s.at%len(s.brokers)], Client: s.client}
	_, text, err := api.Do(ctx, method, path, body)
	if err == nil {
		err = json.Unmarshal([]byte(text), &answer)
	}
	if err != nil {
		s.at++
		return answer, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if e := answer.Error; e != nil {
		shown, err := parseFields(e.Fields)
		if err != nil {
			return answer, err
		}
		return answer, refusalOf(wire.Errorf(e.Code, "%s", e.Message), shown, e.Group, e.Max)
	}
	return answer, nil
}

func parseFields(text json.RawMessage) (map[string]*state.Shown, error) {
	if len(text) == 0 {
		return nil, nil
	}
	return state.ParseFields(text)
}

// AppendChannel implements store.
func (s *httpStore) AppendChannel(ctx context.Context, push queue.ChannelPush) (a queue.Appended, err error) {
	answer, err := s.call(ctx, http.MethodPost, "/v1/push", pushBody(push))
	if err != nil || len(answer.Results) == 0 {
		return a, err
	}
	r := answer.Results[0]
	return queue.Appended{ID: r.ID, Duplicate: r.Duplicate, Numbers: r.Fields}, nil
}

// pushBody returns the body of a push.
func pushBody(push queue.ChannelPush) map[string]any {
	body := map[string]any{"channel": push.Channel, "data": json.RawMessage(push.Data)}
	if push.Key != "" {
		body["key"] = push.Key
	}
	u := push.Update
	if u == nil {
		return body
	}
	set, add, conditions := map[string]any{}, map[string]any{}, map[string]any{}
	var del, touch []string
	for _, op := range u.Ops {
		if op.TTL > 0 {
			body["ttl"] = op.TTL.Seconds()
		}
		switch op.Kind {
		case state.Set:
			set[op.Field] = json.RawMessage(op.Value)
		case state.Add:
			add[op.Field] = map[string]int64{"by": op.By, "min": op.Min, "max": op.Max}
		case state.Delete:
			del = append(del, op.Field)
		case state.Touch:
			touch = append(touch, op.Field)
		}
	}
	for _, cond := range u.If {
		switch cond.Kind {
		case state.IsID:
			conditions[cond.Field] = cond.ID
		case state.IsAbsent:
			conditions[cond.Field] = 0
		case state.Exists:
			conditions[cond.Field] = true
		}
	}
	body["data"] = json.RawMessage(u.Data)
	body["set"], body["add"], body["del"], body["touch"], body["if"] = set, add, del, touch, conditions
	return body
}

// ReadStates implements store.
func (s *httpStore) ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage] {
	page, err := s.read(ctx, reads[0])
	return []queue.Outcome[queue.StatePage]{{Value: page, Err: err}}
}

func (s *httpStore) read(ctx context.Context, q queue.StateRead) (page queue.StatePage, err error) {
	if len(q.Fields) > 0 {
		answer, err := s.call(ctx, http.MethodPost, "/v1/state/query", map[string]any{"channels": []string{q.Channel}, "fields": q.Fields})
		if err != nil || len(answer.Channels) == 0 {
			return page, err
		}
		shown, err := parseFields(answer.Channels[0].Fields)
		return pageOf(answer.Channels[0].ID, shown, q.Fields, ""), err
	}
	query := url.Values{"prefix": {q.Prefix}, "cursor": {q.Cursor}}
	if q.Limit > 0 {
		query.Set("limit", fmt.Sprint(q.Limit))
	}
	answer, err := s.call(ctx, http.MethodGet, "/v1/channels/"+q.Channel+"/state?"+query.Encode(), nil)
	if err != nil {
		return page, err
	}
	shown, err := parseFields(answer.Fields)
	return pageOf(answer.ID, shown, nil, answer.Cursor), err
}

// pageOf returns a page. order are the names of its fields, and nil means all in order. Fields that
// are nil are absent.
func pageOf(id int64, fields map[string]*state.Shown, order []string, next string) queue.StatePage {
	page := queue.StatePage{ID: id, Next: next}
	if order == nil {
		for name := range fields {
			order = append(order, name)
		}
		slices.Sort(order)
	}
	for _, name := range order {
		if f := fieldOf(fields[name]); f != nil {
			page.Fields = append(page.Fields, queue.NamedField{Name: name, Field: f})
		}
	}
	return page
}
