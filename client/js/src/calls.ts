import { bucket } from "./budget.js";
import { now } from "./clock.js";
import { SwitchboardError, refusal } from "./errors.js";
import { jsonOf } from "./json.js";
import type { Incoming, Limits, Outgoing } from "./wire.js";

/**
 * How long after its first sending a publish with a key may be repeated, in ms. It is much less
 * than the time for which the broker knows the key.
 */
const repeatWithin = 60_000;

/**
 * The broker closes a connection with more messages or bytes without an answer. This part of them
 * is used.
 */
const maxOpen = 64;
const maxOpenSize = 128 << 10;
const part = 0.75;

/** The most calls that wait to be sent, and their bytes. */
const maxWaiting = 10_000;
const maxWaitingSize = 16 << 20;

/** The shortest pause for a rate in ms. After it, several messages go out at once. */
const minPause = 10;

interface Call {
  _ref: number;
  _type: string;
  _keyed: boolean; // the broker executes it once, however often it arrives
  _weight: number; // the messages as which it counts
  _text: string; // its JSON
  _size: number; // in bytes
  _sent?: boolean; // on this connection
  _firstSent?: number; // ms
  _timer?: ReturnType<typeof setTimeout>;
  _resolve: (answer: Incoming) => void;
  _reject: (error: SwitchboardError) => void;
}

/**
 * Calls are the messages that wait for an answer. They outlive connections. They are sent in order,
 * as fast as the limits of the broker allow. Requests have a rate of their own, so other calls
 * overtake those that wait for it.
 */
export class Calls {
  private readonly _calls = new Map<number, Call>();
  private _queue: Call[] = []; // to be sent, in order
  private _queueSize = 0; // in bytes
  private readonly _open = new Map<number, number>(); // size by ref, of those without an answer
  private _openSize = 0;
  private _limits: Limits = {}; // of the connection; an older broker names none
  private _messages = bucket();
  private _bytes = bucket();
  private _requests = bucket();
  private _send: ((text: string) => void) | undefined;
  private _timer: ReturnType<typeof setTimeout> | undefined;
  private _stopped: SwitchboardError | undefined;
  // Replies to a dead process may reach this one under the same client id, so the refs start at
  // random. 2^52 more of them are exact.
  private _ref = Math.floor(Math.random() * 2 ** 52);

  _nextRef(): number {
    return ++this._ref;
  }

  /**
   * Sends a message as soon as possible. The answer is passed on before the next message is read.
   * It throws if the message cannot be encoded.
   */
  _submit(
    message: Outgoing,
    timeout: number,
    _resolve: (answer: Incoming) => void,
    _reject: (error: SwitchboardError) => void,
  ): void {
    const { type: _type } = message;
    const _ref = this._nextRef();
    // The broker finds the ref of a message that is too large at its start.
    const _text = `{"ref":${_ref},${jsonOf(message, _type).slice(1)}`;
    const _keyed = _type === "publish" && !!message["key"];
    const call: Call = {
      _ref,
      _type,
      _keyed,
      _weight: weightOf(message),
      _text,
      _size: sizeOf(_text),
      _resolve,
      _reject,
    };
    const error = this._stopped ?? this._refusal(call);
    if (error) return _reject(error);
    if (timeout > 0) call._timer = setTimeout(() => this._timedOut(call), timeout);
    this._calls.set(_ref, call);
    this._queue.push(call);
    this._queueSize += call._size;
    this._pump();
  }

  /** Counts a message that is sent without an answer, or what the broker counts besides. */
  _count(messages: number, bytes: number): void {
    this._messages._take(messages);
    this._bytes._take(bytes);
  }

  /** Starts a connection. `first` makes the calls that must be sent before those that wait. */
  _connected(limits: Limits = {}, send: (text: string) => void, first: () => void): void {
    this._limits = limits;
    this._messages = bucket(limits.message_rate);
    this._bytes = bucket(limits.byte_rate);
    this._requests = bucket(limits.request_rate);
    const queue = this._queue;
    this._queue = [];
    first();
    this._queue.push(...queue);
    this._send = send;
    this._pump();
  }

  /** Ends a connection. What may be repeated waits for the next one. */
  _lost(): void {
    if (!this._send) return;
    this._send = undefined;
    this._open.clear();
    this._openSize = 0;
    for (const call of this._calls.values()) {
      const { _type: type, _keyed: keyed, _firstSent: firstSent } = call;
      if (type === "unsubscribe") {
        this._end(call, undefined, { type }); // a connection that is gone has no subscriptions
      } else if (/subscribe|refresh/.test(type)) {
        this._end(call, new SwitchboardError("lost", "the connection was lost"));
      } else if (keyed ? now() - (firstSent ?? Infinity) > repeatWithin : call._sent && changes(type)) {
        this._end(call, unknownOutcome());
      } else if (call._sent) {
        call._sent = false;
        this._queueSize += call._size;
      }
    }
    this._queue = [...this._calls.values()];
  }

  /** Passes an answer of `size` bytes to its call. */
  _answer(m: Incoming, size: number): void {
    this._openSize -= this._open.get(m.ref!) ?? 0;
    this._open.delete(m.ref!);
    const call = this._calls.get(m.ref!);
    // The broker counts each KiB that it has read for the client, which is at least the answer.
    this._count(call ? Math.max(0, size / 1024 - call._weight) : 0, size);
    if (call && m.type !== "accepted") this._end(call, m.type === "error" ? refusal(m) : undefined, m);
    this._pump();
  }

  /** Rejects all calls, also later ones. */
  _stop(error: SwitchboardError): void {
    this._lost();
    this._stopped = error;
    for (const call of this._calls.values()) {
      this._end(call, call._firstSent && call._keyed ? unknownOutcome() : error);
    }
  }

  private _pump(): void {
    clearTimeout(this._timer);
    const { waiting = maxOpen, waiting_bytes = maxOpenSize } = this._limits;
    while (this._send && this._queue.length) {
      const requestWait = this._requests._wait();
      const i = requestWait ? this._queue.findIndex((call) => call._type !== "request") : 0;
      const wait = i < 0 ? requestWait : Math.max(this._messages._wait(), this._bytes._wait());
      if (wait) this._timer = setTimeout(() => this._pump(), Math.max(wait, minPause));
      if (wait || this._open.size >= waiting * part) return;
      const call = this._queue[i]!;
      if (this._openSize && this._openSize + call._size > waiting_bytes * part) return;
      this._unqueue(i);
      this._open.set(call._ref, call._size);
      this._openSize += call._size;
      this._count(call._weight, call._size);
      if (call._type === "request") this._requests._take(1);
      call._sent = true;
      call._firstSent ??= now();
      this._send(call._text);
    }
  }

  private _unqueue(i: number): void {
    for (const { _size } of this._queue.splice(i, 1)) this._queueSize -= _size;
  }

  private _refusal({ _type: type, _size: size }: Call): SwitchboardError | undefined {
    const { message = Infinity } = this._limits;
    const { length } = this._queue;
    if (size > message) return new SwitchboardError("too_large", `${size} bytes, at most ${message} are allowed`);
    if (/subscribe|refresh|ping/.test(type)) return; // of the library itself
    if (!length || (length < maxWaiting && this._queueSize + size <= maxWaitingSize)) return;
    return new SwitchboardError("queue_full", "too many calls wait");
  }

  private _timedOut(call: Call): void {
    const { _type: type, _firstSent: sent } = call;
    const code = sent ? "timeout" : "not_sent";
    const error = new SwitchboardError(code, `${type} was not ${sent ? "answered" : "sent"} in time`);
    this._end(call, sent && changes(type) ? unknownOutcome() : error);
  }

  /** Ends a call with an error, or else with an answer. */
  private _end(call: Call, error: SwitchboardError | undefined, answer?: Incoming): void {
    clearTimeout(call._timer);
    this._calls.delete(call._ref);
    const i = call._sent ? -1 : this._queue.indexOf(call);
    if (i >= 0) this._unqueue(i);
    if (error) call._reject(error);
    else call._resolve(answer!);
  }
}

/** changes reports whether a call may change something, so that it must not be sent twice. */
function changes(type: string): boolean {
  return /publish|request/.test(type);
}

/** weightOf returns the messages as which the broker counts a message. */
function weightOf(m: Outgoing): number {
  if (/history|presence/.test(m.type)) return 10;
  const changes = ["set", "del", "add", "touch", "if"].flatMap((part) => Object.keys((m[part] as object) ?? {}));
  return changes.length || 1;
}

/** sizeOf returns the number of bytes of a text in UTF-8. */
function sizeOf(text: string): number {
  return /[^\0-\x7f]/.test(text) ? new TextEncoder().encode(text).length : text.length;
}

function unknownOutcome(): SwitchboardError {
  return new SwitchboardError("unknown_outcome", "it was sent, and the answer did not arrive");
}
