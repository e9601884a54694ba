package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/client"
	"switchboard/internal/testbed"
)

// writeKey writes a private key, and its public key, as PEM files.
func writeKey(t *testing.T, key crypto.Signer) (private, public string) {
	t.Helper()
	dir := t.TempDir()
	private, public = filepath.Join(dir, "private.pem"), filepath.Join(dir, "public.pem")
	one, err1 := x509.MarshalPKCS8PrivateKey(key)
	two, err2 := x509.MarshalPKIXPublicKey(key.Public())
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	write(t, private, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: one})))
	write(t, public, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: two})))
	return private, public
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTokens: a broker accepts the tokens of each kind of key.
func TestTokens(t *testing.T) {
	rsaKey, err1 := rsa.GenerateKey(rand.Reader, 2048)
	_, edKey, err2 := ed25519.GenerateKey(rand.Reader)
	ecKey, err3 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	rsaPrivate, rsaPublic := writeKey(t, rsaKey)
	edPrivate, edPublic := writeKey(t, edKey)
	ecPrivate, ecPublic := writeKey(t, ecKey)
	secret := filepath.Join(t.TempDir(), "secret")
	write(t, secret, "# the secret\n"+strings.Repeat("s", 32)+"\n")
	b := startBroker(t, []string{
		"SWITCHBOARD_AUTH_HS256_SECRET_FILE=" + secret, "SWITCHBOARD_AUTH_RS256_KEYS_FILE=" + rsaPublic,
		"SWITCHBOARD_AUTH_EDDSA_KEYS_FILE=" + edPublic, "SWITCHBOARD_AUTH_TOKEN_KEYS={ec: {alg: ES256, file: " + ecPublic + "}}",
	})
	for i, keys := range [][2]string{{secret, secret}, {rsaPrivate, rsaPublic}, {edPrivate, edPublic}, {ecPrivate, ecPublic}} {
		args := []string{"token", "issue", "--user=alice", "--client=phone", "--grant=chat:42=sub pub", `--info={"n":1}`, "--signing-key", keys[0]}
		if i == 3 {
			args = append(args, "--kid=ec")
		}
		token := strings.TrimSpace(b.ok(t, args...))
		if out := b.ok(t, "token", "decode", token, "--signing-key", keys[1]); !strings.Contains(out, "user\talice\n") || !strings.Contains(out, "signature\tvalid\n") {
			t.Errorf("%s: %s", keys[0], out)
		}
		b.connect(t, client.Options{Token: token}, "news") // fails if the broker refuses the token
	}
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, strings.Repeat("o", 32))
	token := strings.TrimSpace(b.ok(t, "token", "issue", "--user=alice", "--ttl=-1h", "--signing-key", secret))
	b.steps(t, []step{
		{line: "token decode " + token, want: "signature\tnot verified\n"},
		{line: "token decode", stdin: token + "\n", want: "user\talice\n"},
		{line: "token decode " + token + " --signing-key " + secret, code: exitForbidden},
		{line: "token decode " + token + " --signing-key " + other, code: exitForbidden},
		{line: "token decode x", code: exitUsage, want: "this is not a token"},
		{line: "token issue --user alice", code: exitUsage, want: "--signing-key: missing"},
		{line: "token issue --signing-key " + secret, code: exitUsage, want: "--user: missing"},
		{line: "token issue --user alice --signing-key " + edPublic, code: exitUsage, want: "only verifies"},
	})
	short := testbed.Execute(t, []string{"SWITCHBOARD_AUTH_HS256_SECRET=hunter2"}, binary, "token", "issue", "--user=alice")
	if short.Code != exitFailed || !strings.Contains(short.Stderr, "less than 32 bytes") || strings.Contains(short.Stderr, "hunter2") {
		t.Errorf("%+v", short)
	}
}
