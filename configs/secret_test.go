package configs

import (
	"os"
	"slices"
	"testing"
)

// TestExposedFiles: the files with secrets that all users may read are returned, each once.
func TestExposedFiles(t *testing.T) {
	file := func(mode os.FileMode) string {
		t.Helper()
		path := write(t, "secret", testSecret)
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	keys, token, peer, webhooks, hooks, own := file(0o644), file(0o604), file(0o444), file(0o646), file(0o604), file(0o640)
	public, private, link := file(0o644), file(0o644), t.TempDir()+"/link"
	if err := os.Symlink(private, link); err != nil { // Kubernetes mounts secrets like this
		t.Fatal(err)
	}
	b := Broker{
		Auth: Auth{
			KeysFile: keys, HS256SecretFile: own, RS256KeysFile: public,
			TokenKeys: []tokenKey{{"a", "HS256", token}, {"b", "ES256", public}},
		},
		PeerSecretFile: peer, Webhooks: Webhooks{SecretsFile: webhooks}, Hooks: Hooks{SecretsFile: hooks},
		TLS: TLS{CertFile: public, KeyFile: link}, PeerTLS: PeerTLS{KeyFile: link}, RedisTLS: RedisTLS{KeyFile: "/nowhere"},
	}
	if got, want := b.ExposedFiles(), []string{keys, peer, webhooks, hooks, link, token}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	j := Janitor{Webhooks: b.Webhooks, PeerTLS: b.PeerTLS}
	if got, want := j.ExposedFiles(), []string{webhooks, link}; !slices.Equal(got, want) {
		t.Errorf("the janitor: got %q, want %q", got, want)
	}
	if got := DefaultBroker().ExposedFiles(); len(got) > 0 {
		t.Errorf("without files: %q", got)
	}
}

func TestUncheckedClaims(t *testing.T) {
	url := "https://issuer.example/keys"
	for _, tt := range []struct {
		auth Auth
		want []string
	}{
		{Auth{}, nil},
		{Auth{JWKSURL: url}, []string{"auth.audience", "auth.issuer"}},
		{Auth{JWKSURL: url, Audience: []string{"chat"}}, []string{"auth.issuer"}},
		{Auth{JWKSURL: url, Audience: []string{"chat"}, Issuer: []string{"us"}}, nil},
	} {
		if got := tt.auth.UncheckedClaims(); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %q, want %q", tt.auth, got, tt.want)
		}
	}
}
