package native

import (
	"bytes"
	"encoding/json"
	"strconv"

	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// isMessage reports whether appendMessage and the author are all of e: it is a message without
// changes of fields. isMessage does not look at the data, which the broker has made compact.
func isMessage(e *wire.Event) bool {
	return e.Type == wire.TypeMessage && e.ID != nil && e.Data != nil && (e.StateEvent == nil || hasAuthorOnly(e.StateEvent)) &&
		!e.Ref.Set && e.Client == "" && e.User == "" && e.Secret == "" && e.Server == "" && e.Ping == 0 && e.Queued == nil &&
		e.After == nil && e.Recovered == nil && e.Messages == nil && !e.More && !e.TokenIgnored && e.Code == "" && e.Message == "" &&
		e.Reconnect == nil && e.AfterMS == 0 && e.Retry == nil && e.Info == nil && e.Clients == nil && e.Next == "" &&
		e.Count == nil && e.Users == nil && e.Joined == nil && e.Left == nil && e.Limits == nil && e.Alias == nil
}

// hasAuthorOnly reports whether s has nothing besides the author.
func hasAuthorOnly(s *wire.StateEvent) bool {
	return s.By != "" && !s.First && len(s.Fields) == 0 && s.Cursor == "" && s.Group == "" && s.Max == nil && s.Erase == 0 && !s.Cleared &&
		len(s.Gone)+len(s.Del)+len(s.Set)+len(s.Until)+len(s.Away)+len(s.Back) == 0
}

// isSimple reports whether appendSimple can encode e. It cannot encode payloads with white space,
// which must be removed; encoding/json does that.
func isSimple(e *wire.Event) bool {
	return e.Messages == nil && e.Info == nil && e.Clients == nil && e.Count == nil && e.Users == nil &&
		e.Next == "" && e.Joined == nil && e.Left == nil && e.Alias == nil && (e.StateEvent == nil || isSimpleState(e.StateEvent)) &&
		(len(e.Data) == 0 || payload.IsCompact(e.Data))
}

// isSimpleState reports whether appendSimpleState can encode s. The broker encodes the fields of a
// page itself, without white space.
func isSimpleState(s *wire.StateEvent) bool {
	return bytes.IndexByte(s.Fields, '\n') < 0 && state.IsPlain(s)
}

// appendSimple appends the JSON of a simple event, exactly as encoding/json would. `connected`
// takes 0.35 instead of 2.5 µs, and no allocation instead of five.
func appendSimple(b []byte, e *wire.Event) []byte {
	b = append(b, `{"type":`...)
	b = appendText(b, e.Type)
	if e.Ref.Set {
		b = strconv.AppendInt(append(b, `,"ref":`...), e.Ref.Value, 10)
	}
	b = appendField(b, `,"client":`, e.Client)
	b = appendField(b, `,"user":`, e.User)
	b = appendField(b, `,"secret":`, e.Secret)
	b = appendField(b, `,"server":`, e.Server)
	if e.Ping != 0 {
		b = strconv.AppendInt(append(b, `,"ping":`...), int64(e.Ping), 10)
	}
	if e.Queued != nil {
		b = strconv.AppendInt(append(b, `,"queued":`...), int64(*e.Queued), 10)
	}
	b = appendField(b, `,"channel":`, e.Channel)
	if e.After != nil {
		b = strconv.AppendInt(append(b, `,"after":`...), *e.After, 10)
	}
	if e.ID != nil {
		b = strconv.AppendInt(append(b, `,"id":`...), *e.ID, 10)
	}
	if e.Recovered != nil {
		b = strconv.AppendBool(append(b, `,"recovered":`...), *e.Recovered)
	}
	if len(e.Data) > 0 {
		b = append(append(b, `,"data":`...), e.Data...)
	}
	if e.More {
		b = append(b, `,"more":true`...)
	}
	if e.TokenIgnored {
		b = append(b, `,"token_ignored":true`...)
	}
	b = appendField(b, `,"code":`, e.Code)
	b = appendField(b, `,"message":`, e.Message)
	if e.Reconnect != nil {
		b = strconv.AppendBool(append(b, `,"reconnect":`...), *e.Reconnect)
	}
	if e.AfterMS != 0 {
		b = strconv.AppendInt(append(b, `,"after_ms":`...), e.AfterMS, 10)
	}
	if e.Retry != nil {
		b = strconv.AppendBool(append(b, `,"retry":`...), *e.Retry)
	}
	if e.Limits != nil {
		b = appendLimits(b, e.Limits)
	}
	if e.StateEvent != nil {
		b = appendSimpleState(b, e.StateEvent)
	}
	return append(b, '}')
}

// appendLimits appends the limits of a connection.
func appendLimits(b []byte, l *wire.Limits) []byte {
	b = append(b, `,"limits":`...)
	before := byte('{')
	for _, limit := range [...]struct {
		name  string
		value int
	}{
		{"message", l.Message}, {"channels", l.Channels}, {"message_rate", l.MessageRate}, {"byte_rate", l.ByteRate},
		{"request_rate", l.RequestRate}, {"waiting", l.Waiting}, {"waiting_bytes", l.WaitingBytes},
	} {
		if limit.value != 0 {
			b = append(append(append(b, before, '"'), limit.name...), `":`...)
			b, before = strconv.AppendInt(b, int64(limit.value), 10), ','
		}
	}
	if before == '{' {
		b = append(b, before)
	}
	return append(b, '}')
}

// appendSimpleState appends a page or the changes of a message. It copies the 32 KiB of a page;
// encoding/json would scan them.
func appendSimpleState(b []byte, s *wire.StateEvent) []byte {
	if s.First {
		b = append(b, `,"first":true`...)
	}
	if len(s.Fields) > 0 {
		b = append(append(b, `,"fields":`...), s.Fields...)
	}
	b = appendField(b, `,"cursor":`, s.Cursor)
	b = appendField(b, `,"group":`, s.Group)
	if s.Max != nil {
		b = strconv.AppendInt(append(b, `,"max":`...), int64(*s.Max), 10)
	}
	b = appendField(state.AppendChanges(b, s), `,"by":`, s.By)
	if s.Erase != 0 {
		b = strconv.AppendInt(append(b, `,"erase":`...), s.Erase, 10)
	}
	return b
}

// appendField appends a key and its value, or nothing if the value is empty.
func appendField(b []byte, key, value string) []byte {
	if value == "" {
		return b
	}
	return appendText(append(b, key...), value)
}

// appendText appends any string as a JSON string.
func appendText(b []byte, s string) []byte {
	if !payload.IsPlain(s) {
		return appendEscaped(b, s)
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// appendEscaped appends a string with encoding/json, which escapes characters.
func appendEscaped(b []byte, s string) []byte {
	var out sliceWriter = b
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // neither a string nor a sliceWriter fails
	return out[:len(out)-1]
}

// sliceWriter is an io.Writer that appends to itself.
type sliceWriter []byte

func (w *sliceWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
