package tlsrecord

import (
	"encoding/binary"
	"errors"
)

// maxRecords is how many records a key protects before it must be replaced. The limit of AES-GCM is
// 2^24.5 (5.5).
const maxRecords = 1 << 24

// errExhausted means that a record number would be used twice. Keys are replaced long before.
var errExhausted = errors.New("tlsrecord: all record numbers of a key are used")

// half is one direction of a connection.
type half struct {
	secret  [48]byte // application_traffic_secret_N (7.2), of which the next one is made
	key     [32]byte // write_key (7.3)
	iv      [ivSize]byte
	slot    uint32 // where Ciphers may have the cipher
	records uint64 // the sequence number of the next record (5.3)
}

// set replaces the secret and derives key and IV from it (7.3). The numbers of records begin at 0.
func (h *half) set(s *suite, secret []byte) error {
	copy(h.secret[:], secret)
	if err := s.expand(h.secret[:s.secretSize], "key", h.key[:s.keySize]); err != nil {
		return err
	}
	if err := s.expand(h.secret[:s.secretSize], "iv", h.iv[:]); err != nil {
		return err
	}
	h.records = 0
	return nil
}

// update replaces the secret by the next one (7.2).
func (h *half) update(s *suite) error {
	var next [48]byte
	defer clear(next[:])
	if err := s.expand(h.secret[:s.secretSize], "traffic upd", next[:s.secretSize]); err != nil {
		return err
	}
	return h.set(s, next[:s.secretSize])
}

// nextNonce writes the nonce of the next record (5.3) to nonce. It is the only place that changes
// the number of records besides set: no nonce is written twice for a key.
func (h *half) nextNonce(nonce *[ivSize]byte) error {
	if h.records == 1<<64-1 {
		return errExhausted
	}
	*nonce = h.iv
	low := nonce[ivSize-8:]
	binary.BigEndian.PutUint64(low, binary.BigEndian.Uint64(low)^h.records)
	h.records++
	return nil
}
