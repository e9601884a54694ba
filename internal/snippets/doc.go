// Package snippets tests the code blocks of the documentation. Its tests read README.md and the
// other pages of the root, client/js/README.md and all pages in docs, and do with each block what
// its language asks for:
//
//   - sh: the blocks of a page run in order, in one shell. The directory is like a clone of the
//     repository, and the ports are free ones. A command that fails fails the test. Lines that
//     begin with a brace after a command are its answer, and compared by their shape. After nc
//     they are what the user types.
//   - json answer: the answer of the last command before it. A "json received" is what the clients
//     on the page have received by then, and a "json log" is in the log of the page's broker.
//   - wire: an exchange of clients, a backend and a broker, in the notation of docs/protocol.md.
//     The exchanges of a page run in order, with a broker of their own. Its configuration may be in
//     testdata/wire. Answers are compared by their shape, and a number that a page shows twice is
//     the same. A GET is repeated until its answer is right, since lists follow after a moment.
//   - yaml: loaded like a configuration of the broker or, by its name, of the janitor.
//   - go: compiled, in a function if it is not a whole file.
//   - js, ts, html: compiled by tsc with the types of the client.
//   - redis: a Redis starts with this configuration.
//   - text: not run. It has no messages.
//
// A comment whose first line is "<!-- wire" or "<!-- sh" has steps that readers do not need. A
// block without a language, or with another one, fails the test.
//
// A block whose first line is a comment with the name of a file is saved under that name, so that
// later blocks of the page can use it. The tables in exceptions_test.go list blocks that are not
// run, each with a reason, and the tests of other packages that run blocks in their own way.
package snippets
