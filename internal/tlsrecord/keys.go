package tlsrecord

import (
	"bytes"
	"encoding/hex"
)

// trafficKeys takes the two application traffic secrets from the key log of crypto/tls, the format
// of SSLKEYLOGFILE: a line has a label, the random of the client and the secret. They are written
// nowhere else.
type trafficKeys struct {
	client, server []byte
}

// Write implements io.Writer. crypto/tls writes one line per call.
func (k *trafficKeys) Write(line []byte) (int, error) {
	part := bytes.Fields(line)
	if len(part) != 3 {
		return len(line), nil
	}
	to := &k.client
	switch string(part[0]) {
	case "CLIENT_TRAFFIC_SECRET_0":
	case "SERVER_TRAFFIC_SECRET_0":
		to = &k.server
	default:
		return len(line), nil
	}
	secret := make([]byte, hex.DecodedLen(len(part[2])))
	if _, err := hex.Decode(secret, part[2]); err != nil {
		return 0, err
	}
	*to = secret
	return len(line), nil
}

// wipe overwrites the secrets.
func (k *trafficKeys) wipe() {
	clear(k.client)
	clear(k.server)
	*k = trafficKeys{}
}
