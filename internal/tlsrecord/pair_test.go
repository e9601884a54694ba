package tlsrecord

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"switchboard/internal/allocs"
)

var suites = []uint16{tls.TLS_AES_128_GCM_SHA256, tls.TLS_AES_256_GCM_SHA384, tls.TLS_CHACHA20_POLY1305_SHA256}

// newPair returns the layer of a server and one that plays its client.
func newPair(t testing.TB, suite uint16) (server, client *Layer) {
	t.Helper()
	size := suiteOf(suite).secretSize
	up, down := bytes.Repeat([]byte{1}, size), bytes.Repeat([]byte{2}, size)
	server, err := newLayer(suite, up, down, 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err = newLayer(suite, down, up, 0)
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

// openAll opens all records in input, and returns their data and the first error.
func openAll(l *Layer, input []byte, c *Ciphers) (data []byte, err error) {
	for len(input) > 0 {
		var n int
		if data, n, err = l.Open(data, input, c); err != nil {
			return data, err
		}
		if n == 0 {
			return data, fmt.Errorf("%d bytes are left", len(input))
		}
		input = input[n:]
	}
	return data, nil
}

// TestRandomTraffic sends random data in both directions of random sizes, with KeyUpdates of both
// sides, with and without kept ciphers.
func TestRandomTraffic(t *testing.T) {
	for _, suite := range suites {
		for _, ciphers := range []*Ciphers{nil, NewCiphers(3)} {
			random := rand.New(rand.NewPCG(1, uint64(suite)))
			server, client := newPair(t, suite)
			for round := range 400 {
				from, to := server, client
				if random.IntN(2) == 0 {
					from, to = client, server
				}
				if random.IntN(20) == 0 {
					from.owes = true // as if the other side had asked
				}
				data := make([]byte, random.IntN(3*maxPlain>>random.IntN(12)))
				for i := range data {
					data[i] = byte(random.Uint32())
				}
				sealed, err := from.Seal(nil, data, ciphers)
				if err != nil {
					t.Fatal(err)
				}
				to.updatedAt = 0 // not too often
				got, err := openAll(to, sealed, ciphers)
				if err != nil || !bytes.Equal(got, data) {
					t.Fatalf("suite %x, round %d: %d bytes came of %d: %v", suite, round, len(got), len(data), err)
				}
			}
		}
	}
}

// TestSplitInput checks that a record is opened when all its bytes are there, and not before.
func TestSplitInput(t *testing.T) {
	server, client := newPair(t, suites[0])
	record, _ := client.Seal(nil, []byte("hello"), nil)
	for i := range record {
		if out, n, err := server.Open(nil, record[:i], nil); len(out) != 0 || n != 0 || err != nil {
			t.Fatalf("%d of %d bytes: opened %q, %d bytes, %v", i, len(record), out, n, err)
		}
	}
	if out, n, err := server.Open([]byte("> "), append(record, 23), nil); string(out) != "> hello" || n != len(record) || err != nil {
		t.Fatalf("opened %q, %d bytes, %v", out, n, err)
	}
}

// TestKeyUpdateByLimit checks that a key is replaced after maxRecords, and the client's as well.
func TestKeyUpdateByLimit(t *testing.T) {
	server, client := newPair(t, suites[0])
	server.out.records, client.in.records = maxRecords-1, maxRecords-1
	before := server.out.key
	sealed, err := server.Seal(nil, make([]byte, 2*maxPlain), nil)
	if err != nil || server.out.key == before || server.out.records != 1 {
		t.Fatalf("%d records with the key, replaced %t: %v", server.out.records, server.out.key != before, err)
	}
	if data, err := openAll(client, sealed, nil); err != nil || len(data) != 2*maxPlain {
		t.Fatalf("%d bytes came: %v", len(data), err)
	}
	if !client.owes {
		t.Error("the client was not asked to replace its key")
	}

	server, client = newPair(t, suites[0])
	server.in.records, client.out.records = maxRecords-1, maxRecords-1
	data, _ := client.seal(nil, typeApplicationData, []byte("x"), nil)
	if _, err := openAll(server, data, nil); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} { // it asks once
		answer, err := server.Answer(nil, nil)
		if err != nil || (len(answer) > 0) != want {
			t.Fatalf("answers with %d bytes: %v", len(answer), err)
		}
		if _, err := openAll(client, answer, nil); err != nil || client.owes != true {
			t.Fatalf("the client owes a KeyUpdate: %t, %v", client.owes, err)
		}
	}
}

// TestNonceOnce checks that each number is used once, and that the last one ends the connection.
func TestNonceOnce(t *testing.T) {
	var h half
	seen := make(map[[ivSize]byte]bool)
	for _, from := range []uint64{0, 255, 1<<32 - 2, 1<<64 - 3} {
		for h.records = from; h.records < from+2; {
			var nonce [ivSize]byte
			err := h.nextNonce(&nonce)
			if err != nil || seen[nonce] && from != 255 {
				t.Fatalf("nonce %x of record %d: %v", nonce, h.records-1, err)
			}
			seen[nonce] = true
		}
	}
	h.records = 1<<64 - 1
	if err := h.nextNonce(new([ivSize]byte)); !errors.Is(err, errExhausted) || h.records != 1<<64-1 {
		t.Errorf("after the last number: %v, the next is %d", err, h.records)
	}
}

// TestIllegalRecords checks the alert for each kind of record that a client must not send, and that
// nothing is opened afterwards.
func TestIllegalRecords(t *testing.T) {
	seal := func(kind byte, content ...byte) func(*Layer) []byte {
		return func(l *Layer) []byte {
			b, err := l.seal(nil, kind, content, nil)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	all := func(parts ...func(*Layer) []byte) func(*Layer) []byte {
		return func(l *Layer) (b []byte) {
			for _, part := range parts {
				b = append(b, part(l)...)
			}
			return b
		}
	}
	damaged := func(at int) func(*Layer) []byte {
		return func(l *Layer) []byte {
			b := seal(typeApplicationData, 'x')(l)
			b[(at+len(b))%len(b)] ^= 1
			return b
		}
	}
	update := func(requested byte) func(*Layer) []byte {
		return func(l *Layer) []byte {
			b := seal(typeHandshake, messageKeyUpdate, 0, 0, 1, requested)(l)
			if err := l.out.update(suiteOf(l.suite)); err != nil {
				t.Fatal(err)
			}
			return b
		}
	}
	var empty []func(*Layer) []byte
	for range maxEmpty + 1 {
		empty = append(empty, seal(typeApplicationData))
	}
	var cancels []func(*Layer) []byte
	for range maxEmpty + 1 {
		cancels = append(cancels, seal(typeAlert, 1, byte(userCanceled)))
	}
	for name, c := range map[string]struct {
		send func(*Layer) []byte
		want Alert
	}{
		"damaged tag":             {damaged(-1), badRecordMAC},
		"damaged content":         {damaged(headerSize), badRecordMAC},
		"damaged version":         {damaged(1), badRecordMAC},
		"repeated":                {func(l *Layer) []byte { b := seal(typeApplicationData, 'x')(l); return append(b, b...) }, badRecordMAC},
		"lost":                    {func(l *Layer) []byte { seal(typeApplicationData, 'x')(l); return seal(typeApplicationData, 'y')(l) }, badRecordMAC},
		"too short":               {func(*Layer) []byte { return []byte{23, 3, 3, 0, 16} }, badRecordMAC},
		"too long":                {func(*Layer) []byte { return []byte{23, 3, 3, 0x41, 1} }, recordOverflow},
		"too much content":        {seal(typeApplicationData, make([]byte, maxPlain+1)...), recordOverflow},
		"only padding":            {seal(0, 0, 0, 0), unexpectedMessage},
		"plain alert":             {func(*Layer) []byte { return []byte{21, 3, 3, 0, 2, 1, 0} }, unexpectedMessage},
		"plain handshake":         {func(*Layer) []byte { return []byte{22} }, unexpectedMessage},
		"change_cipher_spec":      {func(*Layer) []byte { return []byte{20, 3, 3, 0, 1, 1} }, unexpectedMessage},
		"sealed change_cipher":    {seal(20, 1), unexpectedMessage},
		"unknown type":            {seal(24, 1), unexpectedMessage},
		"empty handshake":         {seal(typeHandshake), unexpectedMessage},
		"empty alert":             {seal(typeAlert), unexpectedMessage},
		"alert of one byte":       {seal(typeAlert, 1), decodeError},
		"two alerts":              {seal(typeAlert, 1, 90, 1, 90), decodeError},
		"renegotiation":           {seal(typeHandshake, 1, 0, 0, 1, 0), unexpectedMessage},
		"certificate":             {seal(typeHandshake, 11, 0, 0, 0), unexpectedMessage},
		"KeyUpdate of two bytes":  {seal(typeHandshake, messageKeyUpdate, 0, 0, 2, 0), decodeError},
		"KeyUpdate asks for 2":    {seal(typeHandshake, messageKeyUpdate, 0, 0, 1, 2), illegalParameter},
		"data after a KeyUpdate":  {seal(typeHandshake, messageKeyUpdate, 0, 0, 1, 0, 24), unexpectedMessage},
		"data within a KeyUpdate": {all(seal(typeHandshake, messageKeyUpdate, 0), seal(typeApplicationData, 'x')), unexpectedMessage},
		"many KeyUpdates":         {all(update(0), update(1)), unexpectedMessage},
		"many empty records":      {all(empty...), unexpectedMessage},
		"many user_canceled":      {all(cancels...), unexpectedMessage},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newPair(t, suites[0])
			_, err := openAll(server, c.send(client), nil)
			if got := AlertOf(err); err == nil || got != c.want {
				t.Fatalf("the error is %v, want %v", err, c.want)
			}
			if _, _, err := server.Open(nil, seal(typeApplicationData, 'x')(client), nil); !errors.Is(err, ErrClosed) {
				t.Errorf("afterwards a record is opened: %v", err)
			}
		})
	}
}

// TestKeyUpdates checks what a client may do: KeyUpdates in parts, with padding, and again after
// updateRecords. The server answers before its next data, once.
func TestKeyUpdates(t *testing.T) {
	server, client := newPair(t, suites[0])
	send := func(kind byte, content ...byte) {
		t.Helper()
		b, _ := client.seal(nil, kind, content, nil)
		if _, err := openAll(server, b, nil); err != nil {
			t.Fatal(err)
		}
	}
	send(typeHandshake, messageKeyUpdate, 0)
	send(typeHandshake, 0, 1)
	send(typeHandshake, 1)
	_ = client.out.update(suiteOf(client.suite))
	for range updateRecords {
		send(typeApplicationData, 'x')
	}
	send(typeHandshake, messageKeyUpdate, 0, 0, 1, 1)
	_ = client.out.update(suiteOf(client.suite))
	send(typeApplicationData, 'y')
	for i, want := range []int{2 * Overhead, Overhead} { // the KeyUpdate has no more than one byte of data less
		b, err := server.Seal(nil, []byte("12345"), nil)
		if err != nil || i == 0 && len(b) != want+10 || i == 1 && len(b) != want+5 {
			t.Errorf("message %d has %d bytes: %v", i, len(b), err)
		}
		if got, err := openAll(client, b, nil); string(got) != "12345" || err != nil {
			t.Errorf("message %d is %q: %v", i, got, err)
		}
	}
}

// TestEnd checks close_notify in both directions, and alerts of the client.
func TestEnd(t *testing.T) {
	server, client := newPair(t, suites[0])
	b, _ := client.SealAlert(nil, CloseNotify, nil)
	if _, err := openAll(server, b, nil); !errors.Is(err, ErrClosed) || AlertOf(err) != CloseNotify {
		t.Errorf("after close_notify: %v, answered with %v", err, AlertOf(err))
	}
	if b, err := server.Seal(nil, []byte("more"), nil); err != nil { // the other direction is open (6.1)
		t.Error(err)
	} else if got, err := openAll(client, b, nil); string(got) != "more" || err != nil {
		t.Errorf("%q came: %v", got, err)
	}
	b, _ = server.SealAlert(nil, CloseNotify, nil)
	if _, err := openAll(client, b, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("the client sees %v", err)
	}
	if _, err := server.Seal(nil, []byte("x"), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("data after close_notify: %v", err)
	}
	server, client = newPair(t, suites[0])
	b, _ = client.SealAlert(nil, decodeError, nil)
	var alert PeerAlert
	if _, err := openAll(server, b, nil); !errors.As(err, &alert) || Alert(alert) != decodeError || AlertOf(err) != CloseNotify {
		t.Errorf("after an alert: %v", err)
	}
	server.Wipe(nil)
	if server.in.key != [32]byte{} || server.out.secret != [48]byte{} {
		t.Error("Wipe left a key")
	}
}

// TestCiphers checks that busy connections keep their ciphers beside many others, and that none
// outlives its key.
func TestCiphers(t *testing.T) {
	ciphers := NewCiphers(4)
	busy, _ := newPair(t, suites[0])
	seal := func(l *Layer) {
		t.Helper()
		if _, err := l.Seal(nil, []byte("x"), ciphers); err != nil {
			t.Fatal(err)
		}
	}
	seal(busy)
	kept := 0
	for range 100 {
		other, _ := newPair(t, suites[0])
		seal(other)
		if ciphers.slots[busy.out.slot].of == &busy.out {
			kept++
		}
		seal(busy)
	}
	if kept < 90 {
		t.Errorf("a busy connection had its cipher in %d of 100 cases", kept)
	}
	busy.owes = true
	seal(busy)
	busy.Wipe(ciphers)
	for i, slot := range ciphers.slots {
		if slot.of == &busy.out || slot.of == &busy.in {
			t.Errorf("slot %d has a cipher of a wiped connection", i)
		}
	}
}

// TestSize checks what an idle connection costs.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Layer{}); size > 256 {
		t.Errorf("a Layer has %d bytes", size)
	}
}

func allocCases(t testing.TB) []allocs.Case {
	server, client := newPair(t, suites[0])
	ciphers, none, buf, data := NewCiphers(4), new(Ciphers), make([]byte, 0, 4096), make([]byte, 128)
	return []allocs.Case{
		allocs.Of("seal 128 bytes, kept cipher", 0, func() { _, _ = server.Seal(buf, data, ciphers) }),
		allocs.Of("seal 128 bytes, cipher made for it", 2, func() { _, _ = client.Seal(buf, data, none) }),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, allocCases(t)) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, allocCases(b)) }

// FuzzOpen gives arbitrary bytes to a layer: as they are, and sealed as a record of any type.
func FuzzOpen(f *testing.F) {
	f.Add([]byte{23, 3, 3, 0, 20}, false)
	f.Add([]byte{24, 0, 0, 1, 1, 22}, true)
	f.Add([]byte{1, 0, 21}, true)
	f.Add([]byte("data\x17\x00\x00"), true)
	f.Fuzz(func(t *testing.T, b []byte, sealed bool) {
		server, client := newPair(t, suites[0])
		input := b
		if sealed && len(b) > 0 && len(b) <= maxPlain+2 {
			input, _ = client.seal(nil, b[len(b)-1], b[:len(b)-1], nil)
		}
		out, n, err := server.Open([]byte("kept"), input, nil)
		if n > len(input) || !bytes.HasPrefix(out, []byte("kept")) || err != nil && len(out) != 4 {
			t.Fatalf("%d of %d bytes, %d came out: %v", n, len(input), len(out), err)
		}
		if !sealed && len(out) > 4 {
			t.Fatal("bytes that are not authentic were opened")
		}
		if _, err := server.Answer(nil, nil); err != nil {
			t.Fatal(err)
		}
	})
}
