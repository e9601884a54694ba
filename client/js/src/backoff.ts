import { now } from "./clock.js";

/**
 * Backoff draws delays uniformly from `min` to an upper bound ("full jitter", with a floor). The
 * bound is `first` at the beginning: all clients of a dead instance fail in the same millisecond,
 * and the first delay already spreads them. Then it is the time for which something has failed, up
 * to five times `first`, and later a third of that time, up to `max`. So outages of seconds in a row
 * do not add up to long delays.
 */
export class Backoff {
  private _since: number | undefined; // when the failures began

  constructor(
    private readonly _min: number,
    private readonly _max: number,
    private readonly _first = 4 * _min,
  ) {}

  /** For how long it has failed, in ms. */
  get _age(): number {
    return now() - (this._since ?? now());
  }

  /** The delay in ms after another failure. */
  _next(): number {
    this._since ??= now();
    const most = Math.min(Math.max(this._first, Math.min(this._age, 5 * this._first), this._age / 3), this._max);
    return this._min + Math.random() * Math.max(0, most - this._min);
  }

  /** Forgets `ms` of the time for which it has failed. Returns whether nothing is left. */
  _forget(ms = Infinity): boolean {
    if (this._age <= ms) this._since = undefined;
    else this._since! += ms;
    return !this._since;
  }
}
