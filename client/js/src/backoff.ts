import { now } from "./clock.js";

/**
 * Backoff draws delays uniformly between `min` and the time for which something has failed, up to
 * `max` ("full jitter", with a floor). The first delays are drawn up to `first`: all clients of a
 * dead instance fail in the same millisecond, and the first delay already spreads them.
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
    const most = Math.min(Math.max(this._age, this._first), this._max);
    return this._min + Math.random() * Math.max(0, most - this._min);
  }

  /** Forgets `ms` of the time for which it has failed. Returns whether nothing is left. */
  _forget(ms = Infinity): boolean {
    if (this._age <= ms) this._since = undefined;
    else this._since! += ms;
    return !this._since;
  }
}
