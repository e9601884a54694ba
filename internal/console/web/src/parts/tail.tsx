// The live tail of a channel: its last messages, and each new one as it is stored.
import { useEffect, useState } from "preact/hooks";
import { Refusal, get, path, query } from "../api";
import { plural, timeID } from "../format";
import { useSamples } from "../samples";
import type { History } from "../types";
import { MessageRow, type Row, withoutErased } from "./messages";
import { repeat, sleep } from "./repeat";
import { Badge, Card, Empty, Loading, Problem } from "./ui";

const waitSeconds = 25;
const shownRows = 200;
const firstRows = 50;
const pause = 250; // ms between two pages with messages, however fast the channel is

export function Tail({ channel }: { channel: string }) {
  const [rows, setRows] = useState<Row[]>();
  const [error, setError] = useState<Refusal>();
  const [paused, setPaused] = useState(false);
  const [held, setHeld] = useState<Row[]>([]);
  const [attempt, setAttempt] = useState(0);
  const { skew } = useSamples();

  useEffect(() => {
    const abort = new AbortController();
    setError(undefined);
    const add = (more: Row[]) => {
      // The channel is read, even if it has no message. What is erased leaves a paused tail, too.
      setRows((r) => withoutErased(r ?? [], more));
      setHeld((h) => withoutErased([...h, ...more], more));
    };
    void follow(channel, skew, abort.signal, add, setError);
    return () => abort.abort();
  }, [channel, attempt]);
  // While the tail is paused, rows are held. The oldest ones give way.
  useEffect(() => {
    if (paused || held.length === 0) {
      if (held.length > shownRows) setHeld(held.slice(-shownRows));
      return;
    }
    setRows((r) => [...(r ?? []), ...held].slice(-shownRows));
    setHeld([]);
  }, [paused, held]);
  const loaded = rows !== undefined || error !== undefined;
  const newest = [...(rows ?? [])].reverse();
  return (
    <Card
      title={<>Messages {!error && (paused ? <Badge tone="warn">paused</Badge> : <Badge tone="good">live</Badge>)}</>}
      flush
      note={paused && held.length > 0 ? plural(held.length, "new message") : undefined}
      actions={
        <>
          <button type="button" class="button" aria-pressed={paused} onClick={() => setPaused(!paused)}>
            {paused ? "Continue" : "Pause"}
          </button>
          <button type="button" class="button" disabled={!rows?.length} onClick={() => setRows([])}>
            Clear
          </button>
        </>
      }
    >
      <Problem error={error} retry={() => setAttempt(attempt + 1)} />
      {!loaded && <Loading />}
      {loaded && newest.length === 0 && !error && (
        <Empty title="No message is stored.">New messages appear here as soon as they are pushed.</Empty>
      )}
      <div
        class="tail"
        role="log"
        aria-live="polite"
        aria-relevant="additions"
        aria-label={`Messages of ${channel}, newest first`}
      >
        {newest.map((row) =>
          row.kind === "message" ? (
            <MessageRow key={row.message.id} channel={channel} message={row.message} />
          ) : (
            <p key={`gap-${row.id}`} class="gap">
              Messages before this one are no longer stored.
            </p>
          ),
        )}
      </div>
    </Card>
  );
}

/**
 * follow reads the last messages, and then each new one, until the signal aborts or the broker
 * refuses it.
 */
function follow(
  channel: string,
  skew: number,
  signal: AbortSignal,
  add: (rows: Row[]) => void,
  fail: (error?: Refusal) => void,
) {
  let after: number | undefined;
  const step = async () => {
    if (after === undefined) {
      const last = await lastMessages(channel, Date.now() + skew, signal);
      add(last.messages.slice(-firstRows).map((message) => ({ kind: "message", message })));
      after = last.id;
      return;
    }
    const page = await readHistory(channel, after, 1000, waitSeconds, signal);
    const gap: Row[] = page.recovered ? [] : [{ kind: "gap", id: page.id }];
    const messages: Row[] = page.messages.map((message) => ({ kind: "message", message }));
    after = page.id;
    if (gap.length + messages.length > 0) {
      add([...gap, ...messages]);
      await sleep(pause);
    }
  };
  return repeat(signal, step, fail);
}

const readHistory = (channel: string, after: number, limit: number, wait: number, signal: AbortSignal) =>
  get<History>(path("channels", channel, "history") + query({ after, limit, wait: wait || undefined }), {
    signal,
    exact: true,
    timeout: (wait + 15) * 1000,
  });

/**
 * lastMessages returns the end of the history. An id has the time of its message, so a page that
 * starts a minute, an hour or a day ago has few messages too many.
 */
async function lastMessages(channel: string, now: number, signal: AbortSignal): Promise<History> {
  for (const age of [60_000, 3_600_000, 86_400_000, Infinity]) {
    let page = await readHistory(channel, age === Infinity ? 0 : timeID(now - age), 1000, 0, signal);
    if (page.messages.length < firstRows && age !== Infinity) continue;
    while (page.more) page = await readHistory(channel, page.id, 1000, 0, signal);
    return page;
  }
  throw new Error("unreachable");
}
