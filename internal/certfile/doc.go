// Package certfile reads a certificate, its key and trusted authorities from files that another
// program renews.
//
// [Files.Run] reads the files every few seconds. If the content has changed and is valid, all new
// handshakes use it; open connections stay. If it is invalid, Run logs one error and the old
// content stays in use. That is normal for a moment: a renewal writes two files, and they do not
// match in between. Run compares the content and not the time or inode, because Kubernetes renews
// files by changing a symbolic link in their path.
//
// The minimum is TLS 1.2, with AEAD suites only. If clients must present certificates, sessions are
// not resumed, so each connection is verified by the current authorities.
package certfile
