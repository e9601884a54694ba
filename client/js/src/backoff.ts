import { now } from "./clock.js";

/**
 * Backoff draws each delay at random, uniformly from `min` to an upper bound. The bound begins at
 * `first`, because all clients of a dead instance fail in the same millisecond: the first delay
 * already spreads them. Then the bound grows with the time for which something has failed. It is
 * this time until that is five times `first`, and then stays there until a third of the time is
 * more. It is never above `max`. So several outages of seconds in a row do not lead to long delays.
 */
export class Backoff {
  private _since: number | undefined; // when the failures began

  constructor(
    private readonly _min: number,
    private readonly _max: number,
    private readonly _first = 4 * _min,
  ) {}

  /** How long the failures have lasted, in ms. */
  get _age(): number {
    return now() - (this._since ?? now());
  }

  /** The delay in ms after another failure. */
  _next(): number {
    this._since ??= now();
    const most = Math.min(Math.max(this._first, Math.min(this._age, 5 * this._first), this._age / 3), this._max);
    return this._min + Math.random() * Math.max(0, most - this._min);
  }

  /** Subtracts `ms` from the time for which it has failed. Returns whether no time is left. */
  _forget(ms = Infinity): boolean {
    if (this._age <= ms) this._since = undefined;
    else this._since! += ms;
    return !this._since;
  }
}
