// The form that pushes to a channel, a user or a device.
import { useState } from "preact/hooks";
import { JSONText, post } from "../api";
import { json, plural } from "../format";
import { useAction } from "../hooks";
import type { PushResult } from "../types";
import { Card, Field, Problem } from "./ui";

export type Target = { channel: string } | { user: string } | { client: string };

/** PushForm pushes JSON. With fields, it also offers changes of the channel's state. */
export function PushForm({ target, fields = false }: { target: Target; fields?: boolean }) {
  const [data, setData] = useState('{"hello": "world"}');
  const [set, setSet] = useState("");
  const [del, setDel] = useState("");
  const [ttl, setTTL] = useState("");
  const [exclude, setExclude] = useState("");
  const push = useAction<PushResult>();
  const dataProblem = problemOf(data);
  const setProblem =
    set.trim() && (problemOf(set) || (set.trim().startsWith("{") ? "" : "It must be an object of names and values."));
  const empty = !data.trim() && !set.trim() && !del.trim();
  const submit = (event: Event) => {
    event.preventDefault();
    const members: Record<string, string> = {
      data: data.trim(),
      set: set.trim(),
      del: del.trim() && json(del.split(/[\s,]+/).filter(Boolean)),
      ttl: ttl.trim(),
      exclude: exclude.trim() && json(exclude.trim()),
    };
    for (const [name, value] of Object.entries(target)) members[name] = json(value);
    void push.run(() => post<PushResult>("/v1/push", new JSONText(members)));
  };
  return (
    <Card title="Push">
      <form onSubmit={submit} class="stack">
        <Field label="Data (JSON)" hint={dataProblem && data.trim() ? dataProblem : undefined}>
          {(id) => (
            <textarea
              id={id}
              class="mono"
              rows={4}
              spellcheck={false}
              value={data}
              aria-invalid={!!data.trim() && !!dataProblem}
              onInput={(e) => setData(e.currentTarget.value)}
            />
          )}
        </Field>
        {fields && (
          <details class="more">
            <summary>Change fields of the state</summary>
            <div class="stack">
              <Field label="Set (JSON object)" hint={setProblem || undefined}>
                {(id) => (
                  <textarea
                    id={id}
                    class="mono"
                    rows={2}
                    spellcheck={false}
                    placeholder='{"turn": "amy"}'
                    value={set}
                    aria-invalid={!!setProblem}
                    onInput={(e) => setSet(e.currentTarget.value)}
                  />
                )}
              </Field>
              <div class="pair">
                <Field label="Remove">
                  {(id) => (
                    <input
                      id={id}
                      class="mono"
                      placeholder="seat/A1"
                      value={del}
                      onInput={(e) => setDel(e.currentTarget.value)}
                    />
                  )}
                </Field>
                <Field label="Lease (seconds)">
                  {(id) => (
                    <input
                      id={id}
                      type="number"
                      min="1"
                      placeholder="none"
                      value={ttl}
                      onInput={(e) => setTTL(e.currentTarget.value)}
                    />
                  )}
                </Field>
              </div>
            </div>
          </details>
        )}
        {!("client" in target) && (
          <Field label="Not to (client)">
            {(id) => (
              <input
                id={id}
                class="mono"
                spellcheck={false}
                placeholder="amy/phone"
                value={exclude}
                onInput={(e) => setExclude(e.currentTarget.value)}
              />
            )}
          </Field>
        )}
        <Problem error={push.error} />
        <div class="form-end">
          <button
            type="submit"
            class="button primary"
            disabled={push.busy || empty || (!!data.trim() && !!dataProblem) || !!setProblem}
          >
            {push.busy ? "Pushing…" : "Push"}
          </button>
          <span role="status" class="soft">
            {push.result && outcomeOf(push.result)}
          </span>
        </div>
      </form>
    </Card>
  );
}

/** problemOf says why a text is not JSON, or "". */
export function problemOf(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch {
    return 'This is not JSON. A text needs quotes: "hello".';
  }
}

function outcomeOf(answer: PushResult): string {
  const result = answer.results?.[0];
  if (!result) return "Accepted.";
  if (result.error) return `${result.error.code}: ${result.error.message}`;
  if (result.clients)
    return result.clients.length
      ? `Stored for ${plural(result.clients.length, "device")}.`
      : "The user has no device: nothing is stored.";
  if (result.client)
    return result.online ? "Stored; the device is online." : "Stored; the device gets it when it connects.";
  return `Stored, id ${result.id}; ${plural(result.servers ?? 0, "instance has", "instances have")} subscribers.`;
}
