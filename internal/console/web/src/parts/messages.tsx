// Messages as rows that open. Payloads are text: nothing in them becomes an element of the page.
import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";
import { idTime, json } from "../format";
import type { Changes, Message } from "../types";
import { At, Badge } from "./ui";

const preview = 240; // characters of a payload on one line

/** A Row of the tail: a message, or a note about the channel. */
export type Row = { kind: "message"; message: Message } | { kind: "gap"; id: number };

/** Entry is a line that opens. Its body is made only while it is open. */
export function Entry({
  at,
  badge,
  summary,
  children,
}: {
  at: number; // ms since 1970
  badge?: ComponentChild;
  summary: string;
  children: () => ComponentChild;
}) {
  const [open, setOpen] = useState(false);
  return (
    <details class="message" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <span class="message-head">
          <At ms={at} /> {badge}
        </span>
        <span class="mono payload">{summary.length > preview ? summary.slice(0, preview) + "…" : summary}</span>
      </summary>
      {open && <div class="message-body">{children()}</div>}
    </details>
  );
}

export function MessageRow({ message }: { message: Message }) {
  const { id, data, by, from, exclude, erased, ...changes } = message;
  const summary = [data === undefined ? "" : json(data), summaryOf(changes)].filter(Boolean).join("  ");
  return (
    <Entry
      at={idTime(id)}
      summary={summary}
      badge={
        <>
          {by && <span class="soft">by {by}</span>} {erased && <Badge tone="warn">erased</Badge>}
        </>
      }
    >
      {() => (
        <>
          <p class="soft mono">
            id {id}
            {by && ` · by ${by}`}
            {from && ` · from ${from}`}
            {exclude && ` · not to ${exclude}`}
          </p>
          {erased && (
            <p class="soft">
              Erased <At ms={erased} />
            </p>
          )}
          {data !== undefined && (
            <pre class="mono" tabIndex={0}>
              {json(data, 2)}
            </pre>
          )}
          {Object.keys(changes).length > 0 && (
            <>
              <p class="soft">Changes of the state</p>
              <pre class="mono" tabIndex={0}>
                {json(changes, 2)}
              </pre>
            </>
          )}
        </>
      )}
    </Entry>
  );
}

/** summaryOf names the fields that a message changed. */
function summaryOf(changes: Changes): string {
  return ["set", "del", "add", "touch", "gone"]
    .map((kind) => [kind, changes[kind]] as const)
    .filter(([, value]) => typeof value === "object" && value !== null)
    .map(([kind, value]) => `${kind} ${(Array.isArray(value) ? value : Object.keys(value as object)).join(", ")}`)
    .join("; ");
}
