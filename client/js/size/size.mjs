// Measures the client and others: bundled for browsers and minified by esbuild, compressed by gzip -9.
// It prints the table and writes it to ../README.md. Run it with: npm ci && npm run size
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { gzipSync } from "node:zlib";
import { fileURLToPath } from "node:url";

const { build } = createRequire(new URL("../package.json", import.meta.url))("esbuild");

const entries = [
  ["switchboard-client", `export * from "../dist/index.js"`],
  ["switchboard-client with the kit", `export * from "../dist/index.js"; export * from "../dist/kit/index.js"`],
  ["centrifuge", `export { Centrifuge } from "centrifuge"`],
  ["pusher-js", `export { default } from "pusher-js"`],
  ["socket.io-client", `export { io } from "socket.io-client"`],
  ["ably", `export { Realtime } from "ably"`],
  ["ably, modular", `export { BaseRealtime, WebSocketTransport, FetchRequest } from "ably/modular"`],
];

const lines = ["| client | version | minified | gzipped |", "|---|---|---|---|"];
for (const [name, contents] of entries) {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    bundle: true,
    minify: true,
    write: false,
    platform: "browser",
    format: "esm",
    target: "es2021",
    logLevel: "error",
  });
  const text = outputFiles[0].contents;
  const gzipped = gzipSync(text, { level: 9 }).length;
  lines.push(`| ${name} | ${versionOf(name)} | ${kilobytes(text.length)} | ${kilobytes(gzipped)} |`);
}
const table = lines.join("\n");
console.log(table);
const readme = new URL("../README.md", import.meta.url);
const text = readFileSync(readme, "utf8");
writeFileSync(
  readme,
  text.replace(/(<!-- sizes -->\n)[^]*?(<!-- end -->)/, (_, begin, end) => `${begin}\n${table}\n\n${end}`),
);

function kilobytes(bytes) {
  return `${(bytes / 1000).toFixed(1)} KB`;
}

function versionOf(name) {
  const folder = name.startsWith("switchboard") ? ".." : `node_modules/${name.split(",")[0]}`;
  return JSON.parse(readFileSync(new URL(`${folder}/package.json`, import.meta.url), "utf8")).version;
}
