package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/spf13/cobra"
)

func (a *app) tokenCommand() *cobra.Command {
	return group("token", "Issues, decodes and revokes tokens of clients",
		"Issues, decodes and revokes the tokens with which clients connect, see docs/access.md.",
		a.tokenIssueCommand(), a.tokenDecodeCommand(), a.tokenRevokeCommand())
}

// tokenFlags describe a token.
type tokenFlags struct {
	user, client, info, audience, issuer, kid string
	grants, subscribe                         []string
	ttl                                       time.Duration
	key                                       string
}

const signingKeyHelp = "`file` with the key: a secret (HS256), or a PEM file with an RSA (RS256), Ed25519 (EdDSA) or P-256 (ES256) key"

func (a *app) tokenIssueCommand() *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use: "issue --user USER --signing-key FILE", Short: "Issues a token for a client",
		Long: `Issues a token for a client, and prints it. The key decides about the algorithm. Of a file with several secrets, the
first one counts. Without --signing-key, the secret is that of SWITCHBOARD_AUTH_HS256_SECRET or
SWITCHBOARD_AUTH_HS256_SECRET_FILE.`,
		Example: `  switchboard token issue --user alice --ttl 15m --signing-key token_secret
  switchboard token issue --user alice --client phone --grant 'chat:42=sub pub' --signing-key ed25519.pem --kid 2026-11`,
		Args: args(0, 0, ""),
	}
	flags := c.Flags()
	flags.StringVarP(&f.user, "user", "u", "", "the `user` (sub)")
	flags.StringVarP(&f.client, "client", "c", "", "the token is for this client only: its own `name`, like phone")
	flags.DurationVar(&f.ttl, "ttl", time.Hour, "how long the token is valid; 0 means that it does not expire")
	flags.StringArrayVar(&f.grants, "grant", nil, "`CHANNEL=WORDS`: grants of sub, pub, presence, history, state, write, durable or *; repeat it for several")
	flags.StringArrayVar(&f.subscribe, "subscribe", nil, "`channel` to which each connection with the token is subscribed; repeat it for several")
	flags.StringVar(&f.info, "info", "", "`JSON` object that others see in presence")
	flags.StringVar(&f.audience, "audience", "", "the claim aud")
	flags.StringVar(&f.issuer, "issuer", "", "the claim iss")
	flags.StringVar(&f.kid, "kid", "", "`name` of the key in auth.token_keys")
	flags.StringVar(&f.key, "signing-key", "", signingKeyHelp)
	c.RunE = a.run(func(context.Context, []string) error {
		key, err := a.signingKey(f.key)
		if err != nil {
			return err
		}
		token, err := issue(f, key, time.Now())
		return a.show(map[string]string{"token": token}, err, func() { a.screen.Text("%s", token) })
	})
	return c
}

// issue returns the token that f describes.
func issue(f tokenFlags, key signingKey, now time.Time) (string, error) {
	if f.user == "" {
		return "", usage("--user: missing")
	}
	if key.sign == nil {
		return "", usage("--signing-key: a public key only verifies tokens")
	}
	claims := jwt.MapClaims{"sub": f.user, "iat": now.Unix()}
	if f.ttl != 0 {
		claims["exp"] = now.Add(f.ttl).Unix()
	}
	for name, value := range map[string]string{"client": f.client, "aud": f.audience, "iss": f.issuer} {
		if value != "" {
			claims[name] = value
		}
	}
	if f.info != "" {
		var info map[string]any
		if err := json.Unmarshal([]byte(f.info), &info); err != nil {
			return "", usage("--info: want a JSON object: %w", err)
		}
		claims["info"] = info
	}
	grants := map[string]string{}
	for _, pair := range f.grants {
		channel, words, found := strings.Cut(pair, "=")
		if !found {
			return "", usage("--grant: want CHANNEL=WORDS, like 'chat:42=sub pub', got %q", pair)
		}
		grants[channel] = words
	}
	if len(grants) > 0 {
		claims["channels"] = grants
	}
	if len(f.subscribe) > 0 {
		claims["subscribe"] = f.subscribe
	}
	token := jwt.NewWithClaims(key.method, claims)
	if f.kid != "" {
		token.Header["kid"] = f.kid
	}
	return token.SignedString(key.sign)
}

func (a *app) tokenDecodeCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use: "decode [TOKEN]", Short: "Prints what a token says",
		Long: `Prints the claims of a token, which is read from the standard input if it is - or missing. The signature is verified only with
--signing-key; a bad one, or an expired token, then ends with exit code 4. switchboard check --token asks a broker.`,
		Args: args(0, 1, "a token"), ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&path, "signing-key", "", signingKeyHelp)
	c.RunE = a.run(func(_ context.Context, args []string) error {
		text := ""
		if len(args) > 0 && args[0] != "-" {
			text = args[0]
		} else {
			var err error
			if text, err = a.readLine("token"); err != nil {
				return err
			}
		}
		return a.decode(text, path)
	})
	return c
}

func (a *app) decode(text, path string) error {
	token, _, err := jwt.NewParser().ParseUnverified(text, jwt.MapClaims{})
	if err != nil {
		return usage("this is not a token (JWT): %w", err)
	}
	signature := "not verified"
	if path != "" {
		key, err := a.signingKey(path)
		if err != nil {
			return err
		}
		signature = "valid"
		parser := jwt.NewParser(jwt.WithValidMethods([]string{key.method.Alg()}), jwt.WithLeeway(10*time.Second))
		if _, err = parser.Parse(text, func(*jwt.Token) (any, error) { return key.verify, nil }); err != nil {
			signature = strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\n", "; "), "token ")
		}
	}
	claims := token.Claims.(jwt.MapClaims) // as given to ParseUnverified
	header, _ := json.Marshal(token.Header)
	body, _ := json.Marshal(claims)
	value := map[string]json.RawMessage{"header": header, "claims": body}
	value["signature"], _ = json.Marshal(signature) // all were decoded from JSON
	a.screen.Value(value, func() {
		ends := "never"
		if exp, err := claims.GetExpirationTime(); err == nil && exp != nil {
			ends = a.screen.When(exp.UnixMilli(), time.Now())
		}
		subject, _ := claims.GetSubject()
		a.screen.Pairs("user", subject, "ends", ends, "signature", signature, "header", string(header), "claims", string(body))
	})
	if signature != "valid" && path != "" {
		return errDone(exitForbidden)
	}
	return nil
}
