// Hooks: load and repeat a call, follow a clock.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Refusal } from "./api";

/** Loaded is the state of a call. After a failed repetition, data is that of the last success. */
export interface Loaded<T> {
  data: T | undefined;
  error: Refusal | undefined;
  reload: () => void;
}

/**
 * useLoad calls load at once, when deps change, and after `every` ms while the page is visible (0:
 * never).
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, deps: unknown[], every = 0): Loaded<T> {
  const [state, setState] = useState<{ data?: T; error?: Refusal }>({});
  const [round, setRound] = useState(0);
  const identity = JSON.stringify(deps);
  const shown = useRef(identity);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    if (shown.current !== identity) {
      shown.current = identity;
      setState({});
    }
    const run = async () => {
      if (document.visibilityState === "visible") {
        try {
          const data = await load(abort.signal);
          if (abort.signal.aborted) return;
          setState({ data });
        } catch (error) {
          if (abort.signal.aborted) return;
          setState((s) => ({ ...s, error: toRefusal(error) }));
        }
      }
      if (every > 0) timer = window.setTimeout(run, every);
    };
    void run();
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [identity, round, every]);
  const reload = useCallback(() => setRound((r) => r + 1), []);
  const stale = shown.current !== identity; // the first render after a change of deps
  return { data: stale ? undefined : state.data, error: stale ? undefined : state.error, reload };
}

/** toRefusal makes any error a Refusal, so that there is one way to show it. */
export const toRefusal = (error: unknown) =>
  error instanceof Refusal ? error : new Refusal(0, "console", error instanceof Error ? error.message : String(error));

/** Action is a call that a button starts. */
export interface Action<T> {
  busy: boolean;
  result: T | undefined;
  error: Refusal | undefined;
  run: (call: () => Promise<T>) => Promise<T | undefined>;
  clear: () => void;
}

export function useAction<T>(): Action<T> {
  const [state, setState] = useState<{ busy: boolean; result?: T; error?: Refusal }>({ busy: false });
  const run = useCallback(async (call: () => Promise<T>) => {
    setState({ busy: true });
    try {
      const result = await call();
      setState({ busy: false, result });
      return result;
    } catch (error) {
      setState({ busy: false, error: toRefusal(error) });
      return undefined;
    }
  }, []);
  const clear = useCallback(() => setState({ busy: false }), []);
  return { busy: state.busy, result: state.result, error: state.error, run, clear };
}

/** useNow returns the current time, and renders again every interval ms. */
export function useNow(interval = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), interval);
    return () => clearInterval(timer);
  }, [interval]);
  return now;
}

/** useDelayed returns value when it has not changed for ms. */
export function useDelayed<T>(value: T, ms = 250): T {
  const [delayed, setDelayed] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return delayed;
}
