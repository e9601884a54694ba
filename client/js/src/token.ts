import { SwitchboardError } from "./errors.js";
import { within } from "./timeout.js";

/** A token, or a function that returns one. */
export type TokenSource = string | (() => string | Promise<string>);

/** The longest delay of setTimeout. */
const maxDelay = 2 ** 31 - 1;

/** The text of a bearer token (RFC 6750 §2.1), or none. An error page has other characters. */
const tokenText = /^[\w.~+/-]*=*$/;

/** Tokens keeps the current token. It asks the token function again before the token expires. */
export class Tokens {
  private _value: string | undefined;
  private _used = false; // a connection was made with it
  private _renewAt = Infinity;

  /** `_timeout` is the longest wait for the token function in ms; 0 for no limit. */
  constructor(
    private readonly _source: TokenSource | undefined,
    private readonly _timeout: number,
  ) {
    if (_source != null && typeof _source !== "string" && typeof _source !== "function")
      throw new TypeError("token: no text and no function");
  }

  /** The current token. */
  get _current(): string | undefined {
    return this._value ?? (typeof this._source === "function" ? undefined : this._source);
  }

  /** Asks for a token if there is none that can be used. It rejects with the code `token`. */
  async _ensure(): Promise<void> {
    if (typeof this._source === "function" && (this._value === undefined || Date.now() >= this._renewAt))
      await this._fetch();
  }

  /** Asks the token function. */
  async _fetch(): Promise<string> {
    try {
      const value = await within(this._timeout, (this._source as () => string | Promise<string>)(), "token");
      this._set(value);
    } catch (error) {
      throw new SwitchboardError("token", "the token function failed", {}, error);
    }
    return this._value!;
  }

  _set(value: string): void {
    if (typeof value !== "string" || !tokenText.test(value)) {
      throw new SwitchboardError("bad_request", "refresh: this is no token");
    }
    this._value = value;
    this._used = false;
    const { exp = NaN, iat = NaN } = claimsOf(value);
    // The device's clock may be wrong, so the lifetime counts from now, and not the time of expiry.
    const left = exp - Date.now() / 1000;
    const life = exp - iat;
    const seconds = left > 0 && !(left > life) ? left : life > 0 ? life : left;
    this._renewAt = seconds > 0 ? Date.now() + seconds * 800 : Infinity;
  }

  _accepted(): void {
    this._used = true;
  }

  /** The time in ms until the token should be renewed; undefined if it cannot be. */
  get _renewIn(): number | undefined {
    if (typeof this._source !== "function" || this._renewAt === Infinity) return undefined;
    return Math.min(maxDelay, Math.max(1000, this._renewAt - Date.now()));
  }

  /** Discards a token that the broker does not accept. Returns whether there may be another one. */
  _refused(expired: boolean): boolean {
    const again = typeof this._source === "function" && (expired || this._used);
    if (again) this._value = undefined;
    return again;
  }

  /** Reports whether the token is for one client only. */
  get _namesClient(): boolean {
    return claimsOf(this._current).client !== undefined;
  }
}

/** claimsOf returns the claims of a JWT, without verifying it. Of another token it has none. */
function claimsOf(token: unknown): { exp?: number; iat?: number; client?: string } {
  try {
    const part = String(token).split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(atob(part));
  } catch {
    return {};
  }
}
