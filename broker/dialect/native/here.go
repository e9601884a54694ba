package native

import "switchboard/internal/wire"

// appendHere appends the JSON of a client's here value, exactly as encoding/json would. The payload
// must be compact JSON.
func appendHere(b []byte, e *wire.Event) []byte {
	b = append(b, `{"type":"here"`...)
	b = appendField(b, `,"client":`, e.Client)
	b = appendField(b, `,"user":`, e.User)
	b = appendField(b, `,"channel":`, e.Channel)
	b = append(append(b, `,"data":`...), e.Data...)
	return append(b, '}')
}
