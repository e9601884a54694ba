// Samples of /v1/stats while the console is open, so that the graphs have a past on every page.
import { useEffect, useState } from "preact/hooks";
import { get, type Refusal } from "./api";
import { toRefusal } from "./hooks";
import type { Latency, Server, ServerStats, Stats } from "./types";

const interval = 2000; // ms between two samples
const kept = 300; // samples: ten minutes

/** Series has a value for each of `times`. Null is a time without a value. */
export interface Series {
  times: number[]; // Unix seconds
  connections: (number | null)[];
  delivered: (number | null)[]; // a second
  pushes: (number | null)[]; // a second
  append50: (number | null)[]; // seconds
  append99: (number | null)[];
  drain50: (number | null)[];
  drain99: (number | null)[];
}

/** Seen is a server that answered while the console was open. */
export interface Seen extends Server {
  stats: ServerStats | undefined;
  /** False after the server has lost its lease. */
  alive: boolean;
  /** The time of this browser when the server was last listed, Unix ms. */
  listed: number;
}

export interface Samples {
  series: Series;
  servers: Seen[];
  partial: boolean;
  error: Refusal | undefined;
  /** Milliseconds that the clock of the servers is ahead of this browser. */
  skew: number;
  ready: boolean;
}

const series: Series = {
  times: [],
  connections: [],
  delivered: [],
  pushes: [],
  append50: [],
  append99: [],
  drain50: [],
  drain99: [],
};
let samples: Samples = { series, servers: [], partial: false, error: undefined, skew: 0, ready: false };
let previous: Map<string, ServerStats>[] = []; // the last two samples, by server
let seen: Seen[] = [];
const listeners = new Set<() => void>();

/**
 * startSampling samples until the returned function is called. It skips times when the page is
 * hidden.
 */
export function startSampling(): () => void {
  const abort = new AbortController();
  let timer = 0;
  const run = async () => {
    if (document.visibilityState === "visible") {
      try {
        const { signal } = abort;
        const [stats, list] = await Promise.all([
          get<Stats>("/v1/stats", { signal }),
          get<{ servers: Server[] }>("/v1/servers", { signal }),
        ]);
        add(stats, list.servers);
      } catch (error) {
        if (abort.signal.aborted) return;
        samples = { ...samples, error: toRefusal(error) };
      }
      for (const listener of listeners) listener();
    }
    timer = window.setTimeout(run, interval);
  };
  void run();
  return () => {
    abort.abort();
    clearTimeout(timer);
  };
}

/**
 * add adds a sample. Rates are differences to the sample before the last one, so that bursts do not
 * make a comb.
 */
function add({ servers, partial }: Stats, list: Server[]) {
  const rateOf = (counter: "delivered" | "pushes") => {
    let total: number | null = null;
    for (const s of servers) {
      const before = previous[0]?.get(s.server) ?? previous[1]?.get(s.server);
      if (before && s.at > before.at)
        total = (total ?? 0) + Math.max(0, s[counter] - before[counter]) / ((s.at - before.at) / 1000);
    }
    return total;
  };
  const slowest = (latency: (s: ServerStats) => Latency, quantile: "p50" | "p99") => {
    const values = servers.map((s) => latency(s)[quantile]).filter((v) => v !== undefined);
    return values.length ? Math.max(...values) : null;
  };
  push(series.times, Date.now() / 1000);
  push(
    series.connections,
    servers.reduce((n, s) => n + s.connections, 0),
  );
  push(series.delivered, rateOf("delivered"));
  push(series.pushes, rateOf("pushes"));
  push(
    series.append50,
    slowest((s) => s.append, "p50"),
  );
  push(
    series.append99,
    slowest((s) => s.append, "p99"),
  );
  push(
    series.drain50,
    slowest((s) => s.drain, "p50"),
  );
  push(
    series.drain99,
    slowest((s) => s.drain, "p99"),
  );
  const latest = new Map(servers.map((s) => [s.server, s]));
  previous = [...previous.slice(-1), latest];

  const skew = servers.length ? Math.max(...servers.map((s) => s.at)) - Date.now() : samples.skew;
  const now = Date.now();
  const listed = list.map((s) => ({ ...s, stats: latest.get(s.server), alive: true, listed: now }));
  seen = merge(seen, listed, now);
  samples = { series: { ...series }, servers: seen, partial, error: undefined, skew, ready: true };
}

/**
 * merge returns the listed servers, and those that were listed before and are still in the graphs.
 */
export function merge(before: Seen[], listed: Seen[], now: number): Seen[] {
  const alive = new Set(listed.map((s) => s.server));
  const gone = before.filter((s) => !alive.has(s.server) && now - s.listed < kept * interval);
  return [...listed, ...gone.map((s) => ({ ...s, alive: false }))];
}

function push<T>(values: T[], value: T) {
  values.push(value);
  if (values.length > kept) values.shift();
}

/** useSamples returns the samples, and renders again after each one. */
export function useSamples(): Samples {
  const [, setRound] = useState(0);
  useEffect(() => {
    const listener = () => setRound((r) => r + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return samples;
}
