package tlsrecord

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"hash"

	"golang.org/x/crypto/chacha20poly1305"
)

// suite is a cipher suite (B.4).
type suite struct {
	hash       func() hash.Hash
	secretSize int // of traffic secrets: the size of the hash
	keySize    int
	cipher     func(key []byte) (cipher.AEAD, error)
}

const (
	ivSize  = 12 // iv_length (5.3) of all suites
	tagSize = 16 // what the AEAD adds to a record, in all suites
)

// suiteOf returns the suite with a number of tls.ConnectionState, or nil.
func suiteOf(id uint16) *suite {
	switch id {
	case tls.TLS_AES_128_GCM_SHA256:
		return &aes128
	case tls.TLS_AES_256_GCM_SHA384:
		return &aes256
	case tls.TLS_CHACHA20_POLY1305_SHA256:
		return &chacha20
	}
	return nil
}

var (
	aes128   = suite{sha256.New, sha256.Size, 16, newGCM}
	aes256   = suite{sha512.New384, sha512.Size384, 32, newGCM}
	chacha20 = suite{sha256.New, sha256.Size, chacha20poly1305.KeySize, chacha20poly1305.New}
)

func newGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// expand fills out with HKDF-Expand-Label (7.1) of a secret, for an empty context.
func (s *suite) expand(secret []byte, label string, out []byte) error {
	const prefix = "tls13 "
	info := make([]byte, 0, 32)
	info = append(info, byte(len(out)>>8), byte(len(out)), byte(len(prefix)+len(label)))
	info = append(info, prefix...)
	info = append(info, label...)
	info = append(info, 0) // the length of the context
	b, err := hkdf.Expand(s.hash, secret, string(info), len(out))
	if err != nil {
		return err
	}
	copy(out, b)
	clear(b)
	return nil
}
