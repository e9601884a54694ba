// Package certfile is a certificate, its key and the authorities to trust, in files that somebody else renews.
//
// [Files.Run] looks at them every few seconds. What has changed and is good counts for
// every handshake from then on; connections stay. What is bad is told once and changes nothing: a renewal writes two files,
// and between the two they do not fit together. The files are compared by what is in them, since neither a time nor
// an inode tells when a symbolic link on the way to them is turned, as Kubernetes does.
//
// Below TLS 1.2 nothing is spoken, and TLS 1.2 only with AEAD suites. Sessions are not resumed
// where clients show certificates: each is verified by the authorities of now.
package certfile
