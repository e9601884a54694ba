// Messages as rows that open. Payloads are text: nothing in them becomes an element of the page.
import type { ComponentChild } from "preact";
import { useState } from "preact/hooks";
import { post } from "../api";
import { idTime, json } from "../format";
import { useAction } from "../hooks";
import { useSession } from "../session";
import type { Changes, Message } from "../types";
import { At, Badge, Confirm, Problem } from "./ui";

const preview = 240; // characters of a payload on one line

/** A Row of the tail: a message, or a note about the channel. */
export type Row = { kind: "message"; message: Message } | { kind: "gap"; id: number };

const reported = (row: Row) => (row.kind === "message" ? row.message.erase : undefined);

/** withoutErased removes the reports of erasures from rows, and from the other rows what they report. */
export function withoutErased(rows: Row[], reports: Row[]): Row[] {
  const times = new Map<number, number>(); // of erasures, by message
  for (const report of reports) {
    const id = reported(report);
    if (id !== undefined && report.kind === "message") times.set(id, idTime(report.message.id));
  }
  return rows
    .filter((row) => reported(row) === undefined)
    .map((row) => {
      const erased = row.kind === "message" ? times.get(row.message.id) : undefined;
      return row.kind === "message" && erased ? { kind: "message", message: { id: row.message.id, erased } } : row;
    });
}

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

/** MessageRow shows a message, of a channel or of a client's queue. */
export function MessageRow({ channel, message }: { channel?: string; message: Message }) {
  const { may } = useSession();
  const erasing = useAction<unknown>();
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
          {channel && data !== undefined && may("push") && (
            <Confirm
              label="Erase"
              question={`Erase message ${id} of ${channel}? Its data and its author leave the store and all histories. This cannot be undone.`}
              busy={erasing.busy}
              onConfirm={() => void erasing.run(() => post("/v1/erase", { channel, id }))}
            />
          )}
          <Problem error={erasing.error} />
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
  return (["set", "del", "gone"] as const)
    .map((kind) => [kind, changes[kind]] as const)
    .filter(([, value]) => typeof value === "object" && value !== null)
    .map(([kind, value]) => `${kind} ${(Array.isArray(value) ? value : Object.keys(value as object)).join(", ")}`)
    .join("; ");
}
