// Package js holds the built JavaScript client. Its sources are in src; `make js` builds them.
package js

import "embed"

// Dist holds the built modules: dist/index.js (the client), dist/kit/index.js (rooms, holds,
// boards, accounts and scenes) and dist/server/index.js (for Node backends), all of them ESM.
//
//go:embed dist/index.js dist/kit/index.js dist/server/index.js
var Dist embed.FS
