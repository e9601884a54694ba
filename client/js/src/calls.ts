import { Budget } from "./budget.js";
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
 * The broker closes a connection with more messages or bytes without an answer. Three quarters of
 * that are used.
 */
const maxOpen = 64;
const maxOpenSize = 128 << 10;

/** The most calls that wait to be sent, and their bytes. */
const maxQueued = 10_000;
const maxQueuedSize = 16 << 20;

/** The shortest pause for a rate in ms. After it, several messages go out at once. */
const minPause = 10;

interface Call {
  ref: number;
  type: string;
  keyed: boolean; // the broker executes it once, however often it arrives
  weight: number; // the messages as which it counts
  text: string; // its JSON
  size: number; // in bytes
  queued?: boolean; // to be sent
  firstSent?: number; // ms
  timer?: ReturnType<typeof setTimeout>;
  resolve: (answer: Incoming) => void;
  reject: (error: SwitchboardError) => void;
}

/**
 * Calls are the messages that wait for an answer. They outlive connections. They are sent in order,
 * as fast as the limits of the broker allow. Requests have a rate of their own, so other calls
 * overtake those that wait for it.
 */
export class Calls {
  private readonly _calls = new Map<number, Call>();
  private _queue: Call[] = []; // to be sent, in order
  private _requests: Call[] = []; // the requests among them
  private _queued = 0;
  private _queuedSize = 0;
  private readonly _open = new Map<number, number>(); // size by ref, of those without an answer
  private _openSize = 0;
  private _budget = new Budget();
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
    resolve: (answer: Incoming) => void,
    reject: (error: SwitchboardError) => void,
  ): void {
    const { type, key } = message;
    const ref = this._nextRef();
    // The broker finds the ref of a message that is too large at its start.
    const text = `{"ref":${ref},${jsonOf(message, type).slice(1)}`;
    const call: Call = {
      ref,
      type,
      keyed: type === "publish" && !!key,
      weight: weightOf(message),
      text,
      size: sizeOf(text),
      resolve,
      reject,
    };
    const error = this._stopped ?? this._tooLarge(call) ?? this._full(call);
    if (error) return reject(error);
    if (timeout > 0) call.timer = setTimeout(() => this._timedOut(call), timeout);
    this._calls.set(ref, call);
    this._enqueue(call);
    this._pump();
  }

  /** Counts a message that is sent without an answer, or what the broker counts besides. */
  _count(messages: number, bytes: number): void {
    this._budget._take(messages, bytes);
  }

  /** Starts a connection. `first` makes the calls that must be sent before those that wait. */
  _connected(limits: Limits | undefined, send: (text: string) => void, first: () => void): void {
    this._budget = new Budget(limits);
    const queue = this._queue;
    this._queue = [];
    first();
    this._queue.push(...queue);
    for (const call of this._calls.values()) {
      const error = this._tooLarge(call);
      if (error) this._finish(call).reject(error);
    }
    this._send = send;
    this._pump();
  }

  /** Ends a connection. What may be repeated waits for the next one. */
  _lost(): void {
    if (!this._send) return;
    this._send = undefined;
    clearTimeout(this._timer);
    this._open.clear();
    this._openSize = 0;
    this._queue = [];
    this._requests = [];
    for (const call of this._calls.values()) {
      const { type, keyed, firstSent } = call;
      const wasSent = !call.queued;
      if (type === "unsubscribe") {
        this._finish(call).resolve({ type }); // a connection that is gone has no subscriptions
      } else if (type === "subscribe" || type === "refresh") {
        this._finish(call).reject(new SwitchboardError("lost", "the connection was lost"));
      } else if (wasSent && (type === "request" || (type === "publish" && !keyed))) {
        this._finish(call).reject(unknownOutcome());
      } else if (keyed && firstSent !== undefined && now() - firstSent > repeatWithin) {
        this._finish(call).reject(unknownOutcome());
      } else {
        this._enqueue(call);
      }
    }
  }

  /** Passes an answer of `size` bytes to its call. */
  _answer(m: Incoming, size: number): void {
    this._openSize -= this._open.get(m.ref!) ?? 0;
    this._open.delete(m.ref!);
    const call = this._calls.get(m.ref!);
    // The broker counts each KiB that it has read for the client, which is at least the answer.
    this._count(call ? Math.max(0, size / 1024 - call.weight) : 0, size);
    if (call && m.type !== "accepted") {
      this._finish(call);
      if (m.type === "error") call.reject(refusal(m));
      else call.resolve(m);
    }
    this._pump();
  }

  /** Rejects all calls, also later ones. */
  _stop(error: SwitchboardError): void {
    this._lost();
    this._stopped = error;
    for (const call of this._calls.values()) {
      this._finish(call).reject(call.firstSent !== undefined && call.keyed ? unknownOutcome() : error);
    }
  }

  private _pump(): void {
    clearTimeout(this._timer);
    const { _limits: limits, _requests: rate } = this._budget;
    while (this._send) {
      const [call, request] = [this._first(this._queue), this._first(this._requests)];
      const takesRequest = request && !rate._wait && (!call || (call.type !== "subscribe" && request.ref < call.ref));
      const next = takesRequest ? request : call;
      const wait = next ? this._budget._wait : request && rate._wait;
      if (wait) this._timer = setTimeout(() => this._pump(), Math.max(wait, minPause));
      if (!next || wait) return;
      if (this._open.size >= ((limits.waiting ?? maxOpen) * 3) / 4) return;
      if (this._openSize && this._openSize + next.size > ((limits.waiting_bytes ?? maxOpenSize) * 3) / 4) return;
      (takesRequest ? this._requests : this._queue).shift();
      this._dequeue(next);
      this._open.set(next.ref, next.size);
      this._openSize += next.size;
      this._budget._take(next.weight, next.size);
      if (takesRequest) rate._take(1);
      next.firstSent ??= now();
      this._send(next.text);
    }
  }

  /** The first call of a list that still waits. */
  private _first(list: Call[]): Call | undefined {
    while (list.length && !list[0]!.queued) list.shift();
    return list[0];
  }

  private _enqueue(call: Call): void {
    (call.type === "request" ? this._requests : this._queue).push(call);
    if (call.queued) return;
    call.queued = true;
    this._queued++;
    this._queuedSize += call.size;
  }

  private _dequeue(call: Call): void {
    if (!call.queued) return;
    call.queued = false;
    this._queued--;
    this._queuedSize -= call.size;
  }

  private _tooLarge({ size }: Call): SwitchboardError | undefined {
    const most = this._budget._limits.message;
    if (!most || size <= most) return;
    return new SwitchboardError("too_large", `the message has ${size} bytes, the broker allows ${most}`);
  }

  private _full({ type, size }: Call): SwitchboardError | undefined {
    if (/subscribe|refresh|ping/.test(type)) return; // of the library itself
    if (this._queued < maxQueued && (!this._queued || this._queuedSize + size <= maxQueuedSize)) return;
    return new SwitchboardError("queue_full", `${this._queued} calls wait: wait for them before you make more`);
  }

  private _timedOut(call: Call): void {
    this._finish(call);
    const { type, firstSent } = call;
    if (firstSent === undefined) call.reject(new SwitchboardError("not_sent", `${type} could not be sent in time`));
    else if (type === "publish" || type === "request") call.reject(unknownOutcome());
    else call.reject(new SwitchboardError("timeout", `no answer to ${type} in time`));
  }

  private _finish(call: Call): Call {
    clearTimeout(call.timer);
    this._dequeue(call);
    this._calls.delete(call.ref);
    return call;
  }
}

/** weightOf returns the messages as which the broker counts a message. */
function weightOf(m: Outgoing): number {
  if (/history|presence/.test(m.type)) return 10;
  const changes = ["set", "del", "add", "touch", "if"].flatMap((part) => Object.keys((m[part] as object) ?? {}));
  return changes.length || 1;
}

/** sizeOf returns the number of bytes of a text in UTF-8. */
function sizeOf(text: string): number {
  if (!/[^\0-\x7f]/.test(text)) return text.length;
  let size = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    size += unit < 0x80 ? 1 : unit < 0x800 || unit >> 11 === 0x1b ? 2 : 3; // a pair of surrogates has four bytes
  }
  return size;
}

function unknownOutcome(): SwitchboardError {
  return new SwitchboardError("unknown_outcome", "it was sent, and the answer did not arrive");
}
