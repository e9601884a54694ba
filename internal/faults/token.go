package main

import "github.com/golang-jwt/jwt/v5"

// tokenSecret signs the tokens of all clients. The brokers verify them, because with namespaces a
// client may follow other users only if its token grants it.
const tokenSecret = "the secret of the tokens of this ledger"

// tokenOf returns a token of the user, without an expiry: the wall clock of a broker may be wrong.
func tokenOf(user string) string {
	claims := jwt.MapClaims{"sub": user, "channels": map[string]string{userPrefix + "*": "presence"}}
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(tokenSecret))
	if err != nil {
		panic(err) // the secret and the claims are valid
	}
	return token
}
