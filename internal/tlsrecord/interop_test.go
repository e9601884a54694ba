//go:build long

package tlsrecord

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// serve accepts connections with a config until the test ends, and gives those taken over to
// handle. It returns the address and the file with the certificate.
func serve(t *testing.T, config *tls.Config, handle func(*Conn)) (addr, certFile string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		for {
			socket, err := l.Accept()
			if err != nil {
				return
			}
			a, err := Accept(t.Context(), socket, config, always)
			if err != nil || a.Layer == nil {
				t.Errorf("no takeover: %v", err)
				socket.Close()
				continue
			}
			conn := NewConn(socket, a)
			handle(conn)
			conn.Close()
		}
	}()
	certFile = filepath.Join(t.TempDir(), "cert.pem")
	der := config.Certificates[0].Certificate[0]
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String(), certFile
}

// echo sends each line back.
func echo(c *Conn) {
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if _, err := fmt.Fprintln(c, lines.Text()); err != nil {
			return
		}
	}
}

// openssl runs s_client. The function say sends a line, which may be a command of s_client, and
// expect waits for a line.
func openssl(t *testing.T, args ...string) (say func(string), expect func(string)) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "openssl", append([]string{"s_client", "-servername", "broker"}, args...)...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	say = func(line string) {
		t.Helper()
		if _, err := fmt.Fprintln(in, line); err != nil {
			t.Fatal(err)
		}
	}
	return say, func(want string) {
		t.Helper()
		for seen := new(bytes.Buffer); ; {
			line, err := lines.ReadString('\n')
			if seen.WriteString(line); strings.Contains(line, want) {
				return
			}
			if err != nil {
				t.Fatalf("s_client did not print %q: %v\n%s", want, err, seen)
			}
		}
	}
}

// TestOpenSSL talks to openssl s_client in each suite, with KeyUpdates (k and K), and resumes its
// session.
func TestOpenSSL(t *testing.T) {
	for _, suite := range []string{"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"} {
		t.Run(suite, func(t *testing.T) {
			config, _ := newConfigs(t)
			addr, cert := serve(t, config, echo)
			session := filepath.Join(t.TempDir(), "session")
			base := []string{"-connect", addr, "-CAfile", cert, "-verify_return_error", "-ciphersuites", suite}
			say, expect := openssl(t, append(base, "-sess_out", session)...)
			expect("Verify return code: 0 (ok)")
			say("first")
			expect("first")
			say("K") // asks for one, too
			expect("KEYUPDATE")
			say("second")
			expect("second")
			say("Q")

			say, expect = openssl(t, append(base, "-sess_in", session)...)
			expect("Reused, TLSv1.3, Cipher is " + suite)
			say("k")
			expect("KEYUPDATE")
			say("third")
			expect("third")
			say("Q")
		})
	}
}

// TestPrograms has curl and Node talk HTTP with a server on taken over connections.
func TestPrograms(t *testing.T) {
	config, _ := newConfigs(t)
	config.NextProtos = []string{"http/1.1"}
	addr, cert := serve(t, config, func(c *Conn) {
		request, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil {
			t.Error(err)
			return
		}
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	})
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Repeat("0123456789", 30_000)
	node := fmt.Sprintf(`const r = require('https').request({host:'127.0.0.1',port:%s,servername:'broker',ca:require('fs').readFileSync(%q),method:'POST'},
a => a.pipe(process.stdout)); require('process').stdin.pipe(r)`, port, cert)
	for name, cmd := range map[string]*exec.Cmd{
		"curl": exec.CommandContext(t.Context(), "curl", "-sS", "--tlsv1.3", "--cacert", cert, "--resolve", "broker:"+port+":127.0.0.1", "--data-binary", "@-", "https://broker:"+port+"/"),
		"node": exec.CommandContext(t.Context(), "node", "-e", node),
	} {
		cmd.Stdin = strings.NewReader(body)
		out, err := cmd.Output()
		if err != nil || string(out) != body {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				t.Errorf("%s", exit.Stderr)
			}
			t.Errorf("%s: %d bytes came: %v", name, len(out), err)
		}
	}
}
