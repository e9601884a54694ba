import { Backoff } from "./backoff.js";
import { within } from "./timeout.js";

/** What `load` returns: the data of the application, and where to continue. */
export interface Loaded {
  /**
   * A position of the channel that was read before the data, or together with it: the data has all
   * that was published up to there. 0: the oldest message that the
   * channel keeps. Absent: the position at which `load` was called.
   */
  after?: number | undefined;
}

/** What a Loader needs from its channel. */
export interface LoadHost<Snapshot> {
  /** Reads the application's data. */
  _load: () => Snapshot | Promise<Snapshot>;
  /** The longest wait for it in ms. */
  _timeout: number;
  /** Gives the data to the handlers. */
  _loaded(snapshot: Snapshot): Promise<unknown> | undefined;
  /** Ends the subscription, drops what waits, and subscribes at a position: now if undefined. */
  _rewind(after: number | undefined, delay: number): void;
  _loadFailed(error: unknown): void;
}

/**
 * Loader calls `load` after the subscription has begun, so nothing is published between the two
 * that is in neither. The messages of the subscription wait until the handlers have the data.
 */
export class Loader<Snapshot extends Loaded> {
  /** The subscription that begins next has no data yet. */
  _due = true;
  /** The messages up to this position are in the data. */
  _loadedTo = 0;

  constructor(
    private readonly _host: LoadHost<Snapshot>,
    private readonly _backoff: Backoff,
  ) {}

  /**
   * Loads for messages above `from`. Those up to `oldest` are gone, so a position below is too old.
   * `isCurrent` reports whether the subscription is still the same.
   */
  async _run(from: number, oldest: number, isCurrent: () => boolean): Promise<void> {
    const host = this._host;
    let snapshot: Snapshot;
    try {
      snapshot = await within(host._timeout, host._load(), "answer of load");
      if (typeof snapshot !== "object" || !snapshot) throw new TypeError("load: it returned no object");
      checkPosition(snapshot.after);
      if (snapshot.after && snapshot.after < oldest) {
        throw new RangeError(`load: the position ${snapshot.after} is before the oldest message, ${oldest}`);
      }
    } catch (error) {
      if (!isCurrent()) return;
      host._loadFailed(error);
      return this._restart(undefined, this._backoff._next());
    }
    if (!isCurrent()) return;
    this._backoff._forget();
    const { after = from } = snapshot;
    this._loadedTo = after;
    const start = Math.max(after, oldest);
    if (start < from) {
      this._restart(start, 0);
      this._due = false;
    }
    await host._loaded(snapshot);
  }

  private _restart(after: number | undefined, delay: number): void {
    this._due = true;
    this._host._rewind(after, delay);
  }
}

/** checkPosition throws for a value that cannot be a position. undefined is none. */
export function checkPosition(after: unknown): void {
  if (after !== undefined && !(Number.isSafeInteger(after) && (after as number) >= 0)) {
    throw new TypeError(`after: ${String(after)} is no position`);
  }
}
