// Uses client/js with a broker at its limits: bad data, large data, too many channels, and
// thousands of calls at once. The address of the broker is the argument. It prints a line of JSON
// at the end.
import assert from "node:assert/strict";
import WebSocket from "ws";
import { Switchboard } from "../../../client/js/dist/index.js";

const publishes = 6000;
const sb = new Switchboard(`ws://${process.argv[2]}/ws`, { WebSocket });
let connections = 0;
const ends = [];
sb.on("connected", () => connections++);
sb.on("disconnected", (end) => ends.push(end));
const codeOf = (promise) =>
  promise.then(
    () => "done",
    (error) => error.code,
  );
const count = (codes) => codes.reduce((sums, code) => ({ ...sums, [code]: (sums[code] ?? 0) + 1 }), {});

// Data that is no JSON, before the connection is open and after.
const circular = {};
circular.self = circular;
const c = sb.channel("c", { subscribe: false });
for (let i = 0; i < 2; i++) {
  assert.deepEqual(
    await Promise.all([{ a: 1n }, circular].map((data) => codeOf(c.publish(data)))),
    ["bad_request", "bad_request"],
  );
  assert.throws(() => c.here(circular), { code: "bad_request" });
  assert.equal(await codeOf(c.publish("fine")), "done");
}

// Data over the limit is refused at once, here and by the broker.
assert.equal(await codeOf(c.publish("x".repeat(70_000))), "too_large");
const raw = new WebSocket(`ws://${process.argv[2]}/ws`);
const received = [];
await new Promise((resolve) => {
  raw.onopen = () => raw.send('{"type":"connect"}');
  raw.onmessage = ({ data }) => {
    if (received.push(JSON.parse(data)) === 2) return resolve();
    raw.send(JSON.stringify({ type: "publish", ref: 7, channel: "c", data: "x".repeat(70_000) }));
  };
});
assert.deepEqual(
  received.map(({ type, ref, code }) => [type, ref, code]),
  [
    ["connected", undefined, undefined],
    ["error", 7, "too_large"],
  ],
);
raw.close();

// Channels above the limit are refused, and one of them can take the place of another one.
const channels = Array.from({ length: 200 }, (_, i) => sb.channel(`many:${i}`));
assert.deepEqual(count(await Promise.all(channels.map((channel) => codeOf(channel.subscribe())))), {
  done: 128,
  rate_limited: 72,
});
await channels[0].unsubscribe();
assert.equal(await codeOf(channels[199].subscribe()), "done");
await Promise.all(channels.map((channel) => channel.unsubscribe()));

// Thousands of publishes at once arrive in order. Nothing is refused.
const seen = [];
const watcher = new Switchboard(`ws://${process.argv[2]}/ws`, { WebSocket });
const watched = watcher.channel("c");
await watched.subscribe();
const all = new Promise((resolve) => watched.on("message", (data) => seen.push(data) === publishes && resolve()));
assert.deepEqual(count(await Promise.all(Array.from({ length: publishes }, (_, i) => codeOf(c.publish(i))))), {
  done: publishes,
});
await all;
assert.deepEqual(
  seen,
  Array.from({ length: publishes }, (_, i) => i),
);
assert.deepEqual([connections, ends], [1, []]);
await sb.close();
await watcher.close();
console.log(JSON.stringify({ done: true }));
