// The fields of a channel as they change: a page of the state, and then a call that waits for the
// next message.
import { useEffect, useState } from "preact/hooks";
import { type Refusal, get, path, query } from "../api";
import { toRefusal } from "../hooks";
import type { History, State } from "../types";

const waitSeconds = 25;
const pause = 300; // ms between two reads, however fast the channel changes
const retryAfter = 2000; // ms

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
    Object.assign(state.fields, next.fields);
    if (next.cursor) state.cursor = next.cursor;
    else delete state.cursor;
  }
  return state;
}

/** useLiveState returns up to `most` fields whose names begin with prefix. */
export function useLiveState(
  channel: string,
  prefix: string,
  most: number,
): { data: State | undefined; error: Refusal | undefined } {
  const [shown, setShown] = useState<{ data?: State; error?: Refusal }>({});
  useEffect(() => {
    const abort = new AbortController();
    const { signal } = abort;
    const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
    const follow = async () => {
      while (!signal.aborted) {
        try {
          const data = await loadState(channel, prefix, most, signal);
          setShown({ data });
          await get<History>(
            path("channels", channel, "history") + query({ after: data.id, limit: 1, wait: waitSeconds }),
            {
              signal,
              timeout: (waitSeconds + 15) * 1000,
            },
          );
          await sleep(pause);
        } catch (error) {
          if (signal.aborted) return;
          setShown((s) => ({ ...s, error: toRefusal(error) }));
          await sleep(retryAfter);
        }
      }
    };
    void follow();
    return () => abort.abort();
  }, [channel, prefix, most]);
  return { data: shown.data, error: shown.error };
}
