// The fields of a channel as they change: a page of the state, and then a call that waits for the
// next message.
import { useEffect, useState } from "preact/hooks";
import { type Refusal, get, path, query } from "../api";
import type { History, State } from "../types";
import { repeat, sleep } from "./repeat";

const waitSeconds = 25;
const pause = 300; // ms between two reads, however fast the channel changes

/** merged returns the fields of both pages. Object.assign would lose a field named __proto__. */
export const merged = (a: State["fields"], b: State["fields"]): State["fields"] =>
  Object.fromEntries([...Object.entries(a), ...Object.entries(b)]);

/** loadState reads pages of a state until it has `most` fields. cursor is set if there are more. */
async function loadState(channel: string, prefix: string, most: number, signal: AbortSignal): Promise<State> {
  const page = (cursor?: string) =>
    get<State>(path("channels", channel, "state") + query({ prefix, cursor, limit: Math.min(most, 1000) }), {
      signal,
      exact: true,
    });
  const state = await page();
  while (state.cursor && Object.keys(state.fields).length < most) {
    const next = await page(state.cursor);
    state.fields = merged(state.fields, next.fields);
    if (next.cursor) state.cursor = next.cursor;
    else delete state.cursor;
  }
  return state;
}

/** LiveState is a state as it changes. After an error, data is the last that was read. */
export interface LiveState {
  data: State | undefined;
  error: Refusal | undefined;
  /** Reads again after the broker has refused it. */
  retry: () => void;
}

/** useLiveState returns up to `most` fields whose names begin with prefix. */
export function useLiveState(channel: string, prefix: string, most: number): LiveState {
  const [shown, setShown] = useState<{ data?: State; error?: Refusal }>({});
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const step = async () => {
      const data = await loadState(channel, prefix, most, signal);
      setShown({ data });
      const changes = path("channels", channel, "history") + query({ after: data.id, limit: 1, wait: waitSeconds });
      await get<History>(changes, { signal, timeout: (waitSeconds + 15) * 1000 });
      await sleep(pause);
    };
    void repeat(signal, step, (error) => setShown(({ data }) => ({ ...(data && { data }), ...(error && { error }) })));
    return () => abort.abort();
  }, [channel, prefix, most, attempt]);
  return { data: shown.data, error: shown.error, retry: () => setAttempt(attempt + 1) };
}
