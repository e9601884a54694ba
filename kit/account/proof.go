package account

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/xdg-go/scram"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

const (
	// challengeLife is how long a challenge may be answered, on the brokers' clocks.
	challengeLife = time.Minute
	// proofLease is how long the answer to a challenge is remembered. It includes the difference
	// of the clocks of two brokers and of the store.
	proofLease = 10 * time.Minute
)

// Challenge is the answer to the first message of a client, see [Accounts.Challenge].
type Challenge struct {
	// Challenge is sent back with the second message. It is valid once, for one minute.
	Challenge string `json:"challenge"`
	Message   string `json:"message"` // the first message of the server
}

// seal is what a challenge keeps of a conversation. The answer may come to another broker, so the
// client keeps it, and a signature protects it.
type seal struct {
	First   string `json:"first"` // the first message of the client
	Nonce   string `json:"nonce"` // the server's part
	Expires int64  `json:"expires"`
}

// Challenge begins a login by SCRAM-SHA-256 (RFC 5802 §5, without channel binding). message is the
// first message of the client, such as n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL.
func (a *Accounts) Challenge(ctx context.Context, message string, from Caller) (Challenge, error) {
	if err := a.rates.from(from); err != nil {
		return Challenge{}, err
	}
	c := seal{First: message, Nonce: rand.Text(), Expires: now() + challengeLife.Milliseconds()}
	text, err := json.Marshal(c)
	if err != nil {
		return Challenge{}, err
	}
	n, err := c.name()
	if err != nil {
		return Challenge{}, err
	}
	s, err := a.owner(ctx, n)
	if err != nil {
		return Challenge{}, err
	}
	_, first, err := a.converse(c, a.credentials(s, n))
	if err != nil {
		return Challenge{}, malformed()
	}
	return Challenge{base64.RawURLEncoding.EncodeToString(append(a.sign(text), text...)), first}, nil
}

// sign returns the signature of a seal.
func (a *Accounts) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, a.challengeKey)
	mac.Write(text)
	return mac.Sum(nil)
}

// open checks and decodes a challenge.
func (a *Accounts) open(challenge string) (c seal, err error) {
	signed, err := base64.RawURLEncoding.DecodeString(challenge)
	if err != nil || base64.RawURLEncoding.EncodeToString(signed) != challenge || len(signed) < sha256.Size || !hmac.Equal(signed[:sha256.Size], a.sign(signed[sha256.Size:])) {
		return c, wire.Errorf(wire.BadRequest, "challenge: no answer of this broker had it")
	}
	if err := json.Unmarshal(signed[sha256.Size:], &c); err != nil {
		return c, err
	}
	if c.Expires < now() {
		return c, wire.Errorf(wire.Expired, "challenge: it is older than %v", challengeLife)
	}
	return c, nil
}

func malformed() error {
	return wire.Errorf(wire.BadRequest, "message: it is not a SCRAM message (RFC 5802) without channel binding")
}

// errParsed ends a conversation after the first message was parsed.
var errParsed = errors.New("parsed")

// name returns the name in the client's first message.
func (c *seal) name() (n name, err error) {
	var text string
	server, err := scram.SHA256.NewServer(func(username string) (scram.StoredCredentials, error) {
		text = username
		return scram.StoredCredentials{}, errParsed
	})
	if err != nil {
		return n, err
	}
	_, _ = server.NewConversation().Step(c.First) // fails with errParsed, or before text is set
	if text == "" || len(c.First) > 8*MaxName {
		return n, malformed()
	}
	return parseName(text)
}

// converse replays the first step of a conversation. The server's nonce is the one in the seal, so
// the conversation is the same on every broker.
func (a *Accounts) converse(c seal, of *credentials) (*scram.ServerConversation, string, error) {
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return of.stored(), nil })
	if err != nil {
		return nil, "", err
	}
	conversation := server.WithNonceGenerator(func() string { return c.Nonce }).NewConversation()
	first, err := conversation.Step(c.First)
	return conversation, first, err
}

// credentials returns those of an account, or others that nothing fits.
func (a *Accounts) credentials(s *snapshot, n name) *credentials {
	if s.scram.ID == 0 {
		return a.passwords.dummy(n)
	}
	return &s.scram.Value
}

// proof is what a caller shows to log in: a password, or the answer to a challenge.
type proof struct {
	a        *Accounts
	name     name
	password string
	message  string // the client's second message
	seal     *seal  // nil for a password
	field    string // $$proof/{digest}

	// The account and the field $$scram that a password fits: it need not be computed again if another
	// change came in between.
	account string
	scram   int64
}

func (a *Accounts) newProof(c Credentials) (*proof, error) {
	if c.Challenge == "" && c.Message != "" {
		return nil, wire.Errorf(wire.BadRequest, "challenge: it is missing")
	}
	if c.Challenge == "" {
		n, err := parseName(c.Name)
		if err != nil {
			return nil, wrong() // no account has such a name
		}
		return &proof{a: a, name: n, password: c.Password}, nil
	}
	s, err := a.open(c.Challenge)
	if err != nil {
		return nil, err
	}
	n, err := s.name()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(s.Nonce))
	return &proof{a: a, name: n, message: c.Message, seal: &s, field: proofPrefix + hex.EncodeToString(sum[:16])}, nil
}

// check returns the server's last message if the proof fits the account, and an error otherwise.
func (p *proof) check(ctx context.Context, s *snapshot, from Caller) (message string, err error) {
	c := p.a.credentials(s, p.name)
	if p.seal == nil {
		return "", p.checkPassword(ctx, s, c, from)
	}
	conversation, _, err := p.a.converse(*p.seal, c)
	if err != nil {
		return "", malformed()
	}
	message, err = conversation.Step(p.message)
	if err != nil || !conversation.Valid() {
		return "", wrong()
	}
	return message, nil
}

func (p *proof) checkPassword(ctx context.Context, s *snapshot, c *credentials, from Caller) error {
	if s.scram.ID != 0 && p.account == s.id && p.scram == s.scram.ID {
		return nil
	}
	ok, err := p.a.passwords.verify(ctx, p.password, c, from.network(), p.name.digest)
	if err == nil && !ok {
		err = wrong()
	}
	if err == nil {
		p.account, p.scram = s.id, s.scram.ID
	}
	return err
}

// spend makes an edit remember the answer to a challenge. It is refused if the store does already.
func (p *proof) spend(e *edit) {
	if p.seal != nil {
		e.expect(p.field, 0)
		e.set(p.field, true, proofLease)
	}
}

// spent reports whether an update was refused because the challenge was answered before.
func (p *proof) spent(err error) bool {
	refusal, ok := errors.AsType[*state.Refusal](err)
	return ok && p.seal != nil && refusal.Fields[p.field] != nil
}
