package tlsrecord

import (
	"bytes"
	"crypto/tls"
	"encoding/hex"
	"strings"
	"testing"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestVector checks the keys and the first records of section 3 of RFC 8448.
func TestVector(t *testing.T) {
	client := unhex(t, "9e40646ce79a7f9dc05af8889bce6552875afa0b06df0087f792ebb7c17504a5")
	server := unhex(t, "a11af9f05531f856ad47116b45a950328204b4f44bfb6b3a4b4f1f3fcb631643")
	l, err := newLayer(tls.TLS_AES_128_GCM_SHA256, client, server, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		h    *half
		key  string
		iv   string
	}{
		{"client", &l.in, "17422dda596ed5d9acd890e3c63f5051", "5b78923dee08579033e523d9"},
		{"server", &l.out, "9f02283b6c9c07efc26bb9f2ac92e356", "cf782b88dd83549aadf1e984"},
	} {
		if got := hex.EncodeToString(c.h.key[:16]); got != c.key {
			t.Errorf("%s: key %s, want %s", c.name, got, c.key)
		}
		if got := hex.EncodeToString(c.h.iv[:]); got != c.iv {
			t.Errorf("%s: IV %s, want %s", c.name, got, c.iv)
		}
	}
	record := unhex(t, "17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66 bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70 14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4")
	got, n, err := l.Open(nil, record, nil)
	if err != nil || n != len(record) {
		t.Fatalf("opened %d of %d bytes: %v", n, len(record), err)
	}
	want := make([]byte, 50)
	for i := range want {
		want[i] = byte(i)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("opened %x, want %x", got, want)
	}
}
