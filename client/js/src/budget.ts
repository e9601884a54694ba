import { now } from "./clock.js";

/**
 * The client uses this part of a rate, and of the burst of four seconds. The rest is for pings, and
 * for what it cannot count.
 */
const part = 0.9;
const burst = 3000;

/**
 * bucket returns a token bucket, as the broker has one for each rate (the generic cell rate
 * algorithm, ITU-T I.371). Without a rate there is no limit.
 */
export function bucket(rate = 0): Bucket {
  const interval = rate && 1000 / (rate * part); // ms for a token
  let full = 0; // the time at which it is full again
  return {
    _take: (tokens) => (full = Math.max(full, now()) + tokens * interval),
    _wait: () => interval && Math.max(0, full + interval - burst - now()),
  };
}

export interface Bucket {
  /** Takes tokens. It may leave a debt. */
  _take(tokens: number): void;
  /** Returns the time in ms until a token is there. */
  _wait(): number;
}
