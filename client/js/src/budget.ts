import { now } from "./clock.js";
import type { Limits } from "./wire.js";

/**
 * The client uses this part of a rate, and of the burst of four seconds. The rest is for pings, and
 * for what it cannot count.
 */
const part = 0.9;
const burst = 3000;

/**
 * Bucket is a token bucket, as the broker has one for each rate (the generic cell rate algorithm,
 * ITU-T I.371).
 */
class Bucket {
  private _full = 0; // the time at which it is full again
  private readonly _interval: number; // ms for a token; 0 for no limit

  constructor(rate = 0) {
    this._interval = rate && 1000 / (rate * part);
  }

  /** Takes tokens. It may leave a debt. */
  _take(tokens: number): void {
    this._full = Math.max(this._full, now()) + tokens * this._interval;
  }

  /** The time in ms until a token is there. */
  get _wait(): number {
    return this._interval && Math.max(0, this._full + this._interval - burst - now());
  }
}

/**
 * Budget is what a connection may send, by the limits of `connected`. An older broker names none.
 */
export class Budget {
  readonly _requests: Bucket;
  private readonly _messages: Bucket;
  private readonly _bytes: Bucket;

  constructor(readonly _limits: Limits = {}) {
    this._requests = new Bucket(_limits.request_rate);
    this._messages = new Bucket(_limits.message_rate);
    this._bytes = new Bucket(_limits.byte_rate);
  }

  /** Takes messages and bytes. */
  _take(messages: number, bytes: number): void {
    this._messages._take(messages);
    this._bytes._take(bytes);
  }

  /** The time in ms until another message may be sent. */
  get _wait(): number {
    return Math.max(this._messages._wait, this._bytes._wait);
  }
}
