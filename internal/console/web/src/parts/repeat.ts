// Calls that repeat for as long as a page is shown.
import type { Refusal } from "../api";
import { toRefusal } from "../hooks";

const firstRetry = 2000; // ms
const lastRetry = 60_000; // ms

/**
 * repeat calls step again and again, until the signal aborts or the broker refuses a call for good.
 * It passes each error to fail, and undefined when a step succeeds again. The time between two
 * attempts that fail doubles, up to a minute.
 */
export async function repeat(
  signal: AbortSignal,
  step: () => Promise<void>,
  fail: (error: Refusal | undefined) => void,
): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await step();
      if (failures > 0) fail(undefined);
      failures = 0;
    } catch (thrown) {
      if (signal.aborted) return;
      const error = toRefusal(thrown);
      fail(error);
      if (isFinal(error)) return;
      await sleep(Math.min(firstRetry * 2 ** failures++, lastRetry));
    }
  }
}

/** isFinal reports whether the same call is refused again: its rights or its names are wrong. */
const isFinal = ({ status }: Refusal) => status >= 400 && status < 500 && status !== 408 && status !== 429;

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
