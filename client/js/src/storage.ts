import { within } from "./timeout.js";

/** Where positions and the identity of the client are kept: localStorage, or anything like it. */
export type Storage =
  | { getItem(key: string): Awaitable<string | null | undefined>; setItem(key: string, value: string): unknown }
  | { get(key: string): Awaitable<string | null | undefined>; set(key: string, value: string): unknown };

type Awaitable<T> = T | Promise<T>;

/** What is stored, as JSON under one key. */
export interface Saved {
  /** The client id, with the user: the ids of the inbox belong to it. */
  client?: string | undefined;
  /** The option `client`, the name that the device has, and the secret of one without a user. */
  asked?: string | undefined;
  name?: string | undefined;
  secret?: string | undefined;
  /** The last id handled of the client queue, and of `$all`. */
  inbox?: number | undefined;
  all?: number | undefined;
  /** The last id handled, by channel. */
  channels?: Record<string, number>;
  /** When each of these channels was last in use, in ms since 1970. */
  used?: Record<string, number>;
}

/** How long a change may wait before it is written, in ms. */
const writeDelay = 100;

/** The longest wait for the storage when the client starts, in ms. */
const readTimeout = 10_000;

/**
 * Store writes positions, several at a time. Its failures are reported and have no other effect. A
 * storage that cannot be read is not written.
 */
export class Store {
  private _timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private _storage: Storage | undefined,
    private readonly _key: string,
    private readonly _snapshot: () => Saved,
    private readonly _failed: (error: unknown) => void,
  ) {}

  async _load(): Promise<Saved> {
    const s = this._storage;
    if (!s) return {};
    let text: string | null | undefined;
    try {
      text = await within(
        readTimeout,
        "getItem" in s ? s.getItem(this._key) : s.get(this._key),
        "answer of the storage",
      );
    } catch (error) {
      this._storage = undefined; // it may hold an identity, which must not be replaced
      this._failed(error);
    }
    try {
      return (JSON.parse(text ?? "{}") as Saved | null) ?? {};
    } catch (error) {
      this._failed(error);
      return {};
    }
  }

  /** Notes that there is something to write. */
  _changed(): void {
    if (this._storage) this._timer ??= setTimeout(() => void this._flush(), writeDelay);
  }

  /** Writes at once what waits. */
  async _flush(): Promise<void> {
    const s = this._storage;
    if (!s || this._timer === undefined) return;
    clearTimeout(this._timer);
    this._timer = undefined;
    try {
      const text = JSON.stringify(this._snapshot());
      await ("setItem" in s ? s.setItem(this._key, text) : s.set(this._key, text));
    } catch (error) {
      this._failed(error);
    }
  }
}
