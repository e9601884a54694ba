import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Reducer } from "../src/reducer.js";
import type { Incoming } from "../src/wire.js";

type Step = Incoming & { held: boolean; at: number; expect: Record<string, [number, unknown, number, boolean]> };

const vectors = process.env["SWITCHBOARD_VECTORS"];

test(
  "pages and messages give the states of package internal/state",
  { skip: !vectors && "go test makes the vectors" },
  () => {
    const runs = JSON.parse(readFileSync(vectors!, "utf8")) as Step[][];
    let compared = 0;
    for (const run of runs) {
      const reducer = new Reducer();
      for (const step of run) {
        if (step.type === "state") reducer._page(step.id!, step.fields ?? {}, step.first, step.more);
        else reducer._message(step.id!, step);
        const got = [...reducer._fields]
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([name, e]) => [name, [e.id, e.value, e.until ?? 0, e.away]]);
        assert.deepEqual(
          got,
          Object.entries(step.expect).sort(([a], [b]) => (a < b ? -1 : 1)),
        );
        assert.deepEqual([reducer._held, reducer._id], [step.held, step.at]);
        compared++;
      }
    }
    assert.ok(compared > 1000);
  },
);
