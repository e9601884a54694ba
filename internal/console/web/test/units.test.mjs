// Tests of functions that need no browser.
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { mock, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** load compiles source files and imports what they export. */
async function load(...names) {
  const resolveDir = join(dirname(fileURLToPath(import.meta.url)), "../src");
  const contents = names.map((name) => `export * from "./${name}";`).join("\n");
  const { outputFiles } = await build({ stdin: { contents, resolveDir }, bundle: true, format: "esm", write: false });
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

test("a server that is gone is forgotten when the graphs no longer show it", async () => {
  globalThis.sessionStorage = { getItem: () => null };
  const { merge } = await load("samples.ts");
  const server = (name, listed) => ({ server: name, alive: true, listed });
  const shown = (list) => list.map((s) => `${s.server} ${s.alive}`).join(", ");
  let seen = merge([], [server("a", 0), server("b", 0)], 0);
  seen = merge(seen, [server("b", 1000)], 1000);
  assert.equal(shown(seen), "b true, a false");
  seen = merge(seen, [server("b", 599_999)], 599_999);
  assert.equal(shown(seen), "b true, a false");
  seen = merge(seen, [server("b", 600_000)], 600_000);
  assert.equal(shown(seen), "b true");
  assert.equal(shown(merge(seen, [server("a", 600_001)], 600_001)), "a true, b false");
});

test("a page that follows something waits longer after each failure, and stops when it is refused", async () => {
  globalThis.sessionStorage = { getItem: () => null };
  const { Refusal, repeat } = await load("parts/repeat.ts", "api.ts");
  const waits = [];
  const timer = mock.method(globalThis, "setTimeout", (done, ms) => {
    waits.push(ms);
    queueMicrotask(done);
  });
  /** run makes steps that end with these statuses, and returns how many there were, and the errors. */
  const run = async (statuses) => {
    const abort = new AbortController();
    const errors = [];
    let steps = 0;
    const step = async () => {
      const status = statuses[steps++];
      if (steps === statuses.length) abort.abort();
      if (status !== 200) throw new Refusal(status, "test", "no");
    };
    await repeat(abort.signal, step, (error) => errors.push(error?.status));
    return { steps, errors, waits: waits.splice(0) };
  };
  try {
    assert.deepEqual(await run([200, 503, 0, 429, 200, 503, 200]), {
      steps: 7,
      errors: [503, 0, 429, undefined, 503, undefined],
      waits: [2000, 4000, 8000, 2000],
    });
    assert.deepEqual((await run(Array(8).fill(500))).waits, [2000, 4000, 8000, 16000, 32000, 60000, 60000]);
    for (const status of [400, 401, 403, 404])
      assert.deepEqual(await run([200, status, 200]), { steps: 2, errors: [status], waits: [] });
  } finally {
    timer.mock.restore();
  }
});

test("fields of two pages, also one named __proto__", async () => {
  globalThis.sessionStorage = { getItem: () => null };
  const { merged } = await load("parts/livestate.ts");
  const both = merged(JSON.parse('{"a": [1, 2]}'), JSON.parse('{"__proto__": [3, 4], "b": [5, 6]}'));
  assert.deepEqual(Object.entries(both), [
    ["a", [1, 2]],
    ["__proto__", [3, 4]],
    ["b", [5, 6]],
  ]);
});
