import { SwitchboardError, refusal } from "./errors.js";
import { closeCodes, type CloseCode, type Incoming, type Outgoing } from "./wire.js";

/** The part of a WebSocket that this library uses. */
export interface Socket {
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  send(text: string): void;
  close(code?: number): void;
}

/** A class such as the browser's WebSocket, or that of the package `ws`. */
export type SocketClass = new (url: string) => Socket;

/** Why a connection has ended. */
export interface End {
  /** The broker's reason, or `lost` if it gave none. */
  code: CloseCode | "lost";
  message: string;
  /** Whether the client may connect again. */
  reconnect: boolean;
  /** The least time in ms before that; 0 if the broker leaves it to the client. */
  afterMs: number;
}

export interface Times {
  /** The longest wait for a connection, in ms. With several URLs it is shorter at first. */
  connectTimeout: number;
  /** The silence after which a ping is sent, in ms. */
  pingAfter: number;
  /** The longest wait for anything after a ping, in ms. */
  pingTimeout: number;
}

/** The reasons after which another attempt is useless, unless the token changes. */
const finalCodes: string[] = ["superseded", "unauthorized", "expired", "disconnected", "bad_request"];

/** How long the broker may take to close after it has refused `connect`, in ms. */
const closeGrace = 1000;

/** The longest delay that a broker may ask for, in ms. A wrong number cannot stop a client. */
const maxAfter = 600_000;

/** Connection is one WebSocket. It notices a server that is silent. */
export class Connection {
  private readonly _socket: Socket;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _ended = false;
  private _open = false; // the broker has answered connect
  private _refused: SwitchboardError | undefined;
  private _why = ""; // what the socket says about its failure

  /**
   * `_silence` is the longest wait for the opening, and then for the answer to `connect`, in ms.
   */
  constructor(
    socketClass: SocketClass,
    url: string,
    private readonly _silence: number,
    private readonly _times: Times,
    private readonly _onOpen: () => void,
    private readonly _onMessage: (m: Incoming, size: number) => void,
    private readonly _onEnd: (end: End) => void,
  ) {
    const socket = (this._socket = new socketClass(url));
    this._waitForAnswer();
    socket.onopen = () => this._onOpen();
    socket.onmessage = (event: { data: unknown }) => this._receive(String(event.data));
    socket.onerror = (event: { message?: string } | undefined) => {
      this._why = event?.message ?? ""; // onclose follows
    };
    socket.onclose = (event: { code?: number; reason?: string }) => {
      const code = closeCodes[(event.code ?? 0) - 4001];
      if (code) this._closed(code, event.reason || code);
      else this._lost(`the connection was closed with ${event.code} ${this._why}`.trim());
    };
  }

  /** Sends `connect`. */
  _connect(message: Outgoing): void {
    this._waitForAnswer();
    this._sendText(JSON.stringify(message));
  }

  _sendText(text: string): void {
    try {
      this._socket.send(text);
    } catch (error) {
      this._lost(String(error));
    }
  }

  /** Verifies at once that the server answers. */
  _check(): void {
    if (!this._open || this._ended) return;
    this._wait(this._times.pingTimeout, () => this._lost("the server is silent"));
    this._sendText('{"type":"ping"}');
  }

  /** Ends the connection. Nothing is called after it. */
  _close(): void {
    this._ended = true;
    clearTimeout(this._timer);
    this._socket.onopen = this._socket.onmessage = this._socket.onclose = null; // onerror stays: ws throws without one
    try {
      this._socket.close(1000);
    } catch {
      // A socket that cannot be closed is left alone: its handlers are gone.
    }
  }

  private _receive(text: string): void {
    let m: Incoming | null;
    try {
      m = JSON.parse(text) as Incoming | null;
    } catch {
      return; // perhaps of a later version: keep the connection
    }
    if (typeof m?.type !== "string") return;
    if (this._open) this._heard();
    switch (m.type) {
      case "ping":
        return this._sendText(JSON.stringify({ type: "pong", ref: m.ref }));
      case "closing":
        return this._closed(m.code as CloseCode, m.message ?? m.code!, m.reconnect, m.after_ms);
      case "connected":
        if (this._open) return;
        this._open = true;
        this._heard();
        break;
      case "error":
        if (this._open) break;
        // The broker closes the connection next, perhaps with a more precise reason.
        this._refused = refusal(m);
        this._wait(closeGrace, () => this._lost(""));
        return;
      default:
        if (!this._open) return;
    }
    this._onMessage(m, text.length);
  }

  private _waitForAnswer(): void {
    this._wait(this._silence, () => this._lost(`no answer within ${Math.round(this._silence)} ms`));
  }

  private _wait(ms: number, then: () => void): void {
    clearTimeout(this._timer);
    this._timer = setTimeout(then, ms);
  }

  private _heard(): void {
    this._wait(this._times.pingAfter, () => this._check());
  }

  private _closed(code: CloseCode, message: string, reconnect = !finalCodes.includes(code), afterMs = 0): void {
    this._end({ code, message, reconnect, afterMs: Math.min(Math.max(afterMs, 0), maxAfter) });
  }

  private _lost(message: string): void {
    const refused = this._refused;
    switch (refused?.code) {
      case "unauthorized":
      case "forbidden":
        return this._closed("unauthorized", refused.message);
      case "bad_request":
      case "not_found":
      case "too_large":
        return this._closed("bad_request", refused.message);
    }
    this._end({ code: "lost", message: refused?.message ?? message, reconnect: true, afterMs: 0 });
  }

  private _end(end: End): void {
    if (this._ended) return;
    this._close();
    this._onEnd(end);
  }
}
