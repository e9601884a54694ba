// Package samples tests the programs in docs/samples: they push, issue tokens and receive webhooks
// in PHP, Python, Ruby and Java, with the libraries that come with the language. The page
// docs/guides/languages.md shows their whole text.
package samples
