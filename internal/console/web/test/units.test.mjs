// Tests of functions that need no browser.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** load compiles a source file and imports it. */
async function load(name) {
  const entry = join(dirname(fileURLToPath(import.meta.url)), "../src", name);
  const { outputFiles } = await build({ entryPoints: [entry], bundle: true, format: "esm", write: false });
  return import("data:text/javascript;base64," + Buffer.from(outputFiles[0].contents).toString("base64"));
}

test("seats", async () => {
  const { expand, rowsOf } = await load("kit/seats.ts");
  assert.deepEqual(expand(["A9..A11", "B01..B02", "box-left"]), ["A9", "A10", "A11", "B01", "B02", "box-left"]);
  assert.deepEqual(rowsOf(["A1", "A2", "B-1", "box"]), [
    { label: "A", seats: ["A1", "A2"] },
    { label: "B", seats: ["B-1"] },
    { label: "", seats: ["box"] },
  ]);
});

test("format", async () => {
  const f = await load("format.ts");
  assert.deepEqual([0.000312, 0.0021, 0.25, 1.5, 0].map(f.latency), ["312 µs", "2.1 ms", "250 ms", "1.5 s", "–"]);
  assert.deepEqual([999, 48_234_496, 2_100].map(f.bytes), ["999 B", "48 MB", "2.1 KB"]);
  assert.deepEqual([4_000, 61_000, 3_700_000, 90_000_000].map(f.duration), ["4 s", "1 min", "1 h 1 min", "1 d 1 h"]);
  assert.deepEqual([0, 61_000, 3_600_000].map(f.countdown), ["0:00", "1:01", "1 h 0 min"]);
  assert.equal(f.idTime(f.timeID(1_795_386_716_881)), 1_795_386_716_881);
  assert.equal(f.plural(1, "message") + f.plural(1000, "message"), "1 message1,000 messages");
});

test("a body of JSON texts is sent as it is", async () => {
  globalThis.sessionStorage = { getItem: () => null };
  const { JSONText, query } = await load("api.ts");
  assert.equal(
    String(new JSONText({ channel: '"a"', data: "12345678901234567890", set: "" })),
    '{"channel":"a","data":12345678901234567890}',
  );
  assert.equal(query({ after: 0, limit: undefined, prefix: "" }), "?after=0");
});
