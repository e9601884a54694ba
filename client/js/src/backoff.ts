/**
 * Backoff draws delays uniformly between `min` and a ceiling that doubles with each failure ("full
 * jitter", with a floor). The ceiling starts at four times `min`: all clients of a dead instance
 * lose their connections in the same millisecond, and the first delay already spreads them.
 */
export class Backoff {
  private _failures = 0;

  constructor(
    private readonly _min: number,
    private readonly _max: number,
  ) {}

  _next(): number {
    const ceiling = Math.min(this._max, this._min * 2 ** (this._failures++ + 2));
    return this._min + Math.random() * Math.max(0, ceiling - this._min);
  }

  _reset(): void {
    this._failures = 0;
  }
}
