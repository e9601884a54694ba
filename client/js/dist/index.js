// src/clock.ts
function now() {
  return performance.now();
}

// src/backoff.ts
var Backoff = class {
  // when the failures began
  constructor(_min, _max, _first = 4 * _min) {
    this._min = _min;
    this._max = _max;
    this._first = _first;
  }
  /** How long the failures have lasted, in ms. */
  get _age() {
    return now() - (this._since ?? now());
  }
  /** The delay in ms after another failure. */
  _next() {
    this._since ??= now();
    const most = Math.min(Math.max(this._first, Math.min(this._age, 5 * this._first), this._age / 3), this._max);
    return this._min + Math.random() * Math.max(0, most - this._min);
  }
  /** Subtracts `ms` from the time for which it has failed. Returns whether no time is left. */
  _forget(ms = Infinity) {
    if (this._age <= ms) this._since = void 0;
    else this._since += ms;
    return !this._since;
  }
};

// src/budget.ts
var part = 0.9;
var burst = 3e3;
function bucket(rate = 0) {
  const interval = rate && 1e3 / (rate * part);
  let full = 0;
  return {
    _take: (tokens) => full = Math.max(full, now()) + tokens * interval,
    _wait: () => interval && Math.max(0, full + interval - burst - now())
  };
}

// src/errors.ts
var SwitchboardError = class extends Error {
  constructor(code, message, from = {}, cause) {
    super(message, cause === void 0 ? void 0 : { cause });
    this.name = "SwitchboardError";
    this.code = code;
    this.data = from.data;
    this.fields = from.fields && entriesOf(from.fields);
    this.group = from.group;
    this.max = from.max;
    this.id = from.id;
    this.retryable = from.retry ?? /^(rate_limited|unavailable|timeout|not_sent|queue_full)$/.test(code);
    this.retryIn = from.after_ms;
  }
};
var SignedOutError = class extends Error {
  constructor() {
    super(...arguments);
    this.name = "SignedOutError";
  }
};
function refusal(m) {
  return new SwitchboardError(m.code ?? "", m.message ?? m.code ?? "", m);
}
function entryOf(field) {
  return { id: field[0], value: field[1], until: field[2] || void 0, away: field[3] === "away" };
}
function entriesOf(fields) {
  return Object.fromEntries(Object.entries(fields).map(([name, f]) => [name, f && entryOf(f)]));
}
var remedies = {
  unauthorized: "Is the token one for this broker?",
  superseded: "Give each tab and each device another `client`",
  lost: "Is the URL right, with the path /ws, and does the broker allow this origin?",
  forbidden: "Does the token, or the namespace, allow it?",
  ignored: "It has no keys for tokens: set `auth` of the broker, or state a `user`",
  ended: "Handle `unsubscribed`"
};

// src/json.ts
function jsonOf(value, what) {
  let cause;
  try {
    const text = JSON.stringify(value);
    if (text !== void 0) return text;
  } catch (error) {
    cause = error;
  }
  const why = cause ? String(cause).split("\n")[0] : typeof value;
  throw new SwitchboardError("bad_request", `${what}: the data is not JSON: ${why}`, {}, cause);
}

// src/calls.ts
var repeatWithin = 6e4;
var maxOpen = 64;
var maxOpenSize = 128 << 10;
var part2 = 0.75;
var maxWaiting = 1e4;
var maxWaitingSize = 16 << 20;
var minPause = 10;
var Calls = class {
  constructor() {
    this._calls = /* @__PURE__ */ new Map();
    this._queue = [];
    // to be sent, in order
    this._queueSize = 0;
    // in bytes
    this._open = /* @__PURE__ */ new Map();
    // size by ref, of those without an answer
    this._openSize = 0;
    this._limits = {};
    // of the connection; an older broker names none
    this._messages = bucket();
    this._bytes = bucket();
    this._requests = bucket();
    // Replies to a dead process may reach this one under the same client id, so the refs start at
    // random. 2^52 more of them are exact.
    this._ref = Math.floor(Math.random() * 2 ** 52);
  }
  _nextRef() {
    return ++this._ref;
  }
  /**
   * Sends a message as soon as possible. The answer is passed on before the next message is read.
   * It throws if the message cannot be encoded.
   */
  _submit(message, timeout, _resolve, _reject) {
    const { type: _type } = message;
    const _ref = this._nextRef();
    const _text = `{"ref":${_ref},${jsonOf(message, _type).slice(1)}`;
    const _keyed = _type === "publish" && !!message["key"];
    const call = {
      _ref,
      _type,
      _keyed,
      _weight: weightOf(message),
      _text,
      _size: sizeOf(_text),
      _resolve,
      _reject
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
  _count(messages, bytes) {
    this._messages._take(messages);
    this._bytes._take(bytes);
  }
  /** Starts a connection. `first` makes the calls that must be sent before those that wait. */
  _connected(limits = {}, send, first) {
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
  _lost() {
    if (!this._send) return;
    this._send = void 0;
    this._open.clear();
    this._openSize = 0;
    for (const call of this._calls.values()) {
      const { _type: type, _keyed: keyed, _firstSent: firstSent } = call;
      if (type === "unsubscribe") {
        this._end(call, void 0, { type });
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
  _answer(m, size) {
    this._openSize -= this._open.get(m.ref) ?? 0;
    this._open.delete(m.ref);
    const call = this._calls.get(m.ref);
    this._count(call ? Math.max(0, size / 1024 - call._weight) : 0, size);
    if (call && m.type !== "accepted") this._end(call, m.type === "error" ? refusal(m) : void 0, m);
    this._pump();
  }
  /** Rejects all calls, also later ones. */
  _stop(error) {
    this._lost();
    this._stopped = error;
    for (const call of this._calls.values()) {
      this._end(call, call._firstSent && call._keyed ? unknownOutcome() : error);
    }
  }
  _pump() {
    clearTimeout(this._timer);
    const { waiting = maxOpen, waiting_bytes = maxOpenSize } = this._limits;
    while (this._send && this._queue.length) {
      const requestWait = this._requests._wait();
      const i = requestWait ? this._queue.findIndex((call2) => call2._type !== "request") : 0;
      const wait = i < 0 ? requestWait : Math.max(this._messages._wait(), this._bytes._wait());
      if (wait) this._timer = setTimeout(() => this._pump(), Math.max(wait, minPause));
      if (wait || this._open.size >= waiting * part2) return;
      const call = this._queue[i];
      if (this._openSize && this._openSize + call._size > waiting_bytes * part2) return;
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
  _unqueue(i) {
    for (const { _size } of this._queue.splice(i, 1)) this._queueSize -= _size;
  }
  _refusal({ _type: type, _size: size }) {
    const { message = Infinity } = this._limits;
    const { length } = this._queue;
    if (size > message) return new SwitchboardError("too_large", `${size} bytes, at most ${message} are allowed`);
    if (/subscribe|refresh|ping/.test(type)) return;
    if (!length || length < maxWaiting && this._queueSize + size <= maxWaitingSize) return;
    return new SwitchboardError("queue_full", "too many calls wait");
  }
  _timedOut(call) {
    const { _type: type, _firstSent: sent } = call;
    const code = sent ? "timeout" : "not_sent";
    const error = new SwitchboardError(code, `${type} was not ${sent ? "answered" : "sent"} in time`);
    this._end(call, sent && changes(type) ? unknownOutcome() : error);
  }
  /** Ends a call with an error, or else with an answer. */
  _end(call, error, answer) {
    clearTimeout(call._timer);
    this._calls.delete(call._ref);
    const i = call._sent ? -1 : this._queue.indexOf(call);
    if (i >= 0) this._unqueue(i);
    if (error) call._reject(error);
    else call._resolve(answer);
  }
};
function changes(type) {
  return /publish|request/.test(type);
}
function weightOf(m) {
  if (/history|presence/.test(m.type)) return 10;
  const changes2 = ["set", "del", "add", "touch", "if"].flatMap((part3) => Object.keys(m[part3] ?? {}));
  return changes2.length || 1;
}
function sizeOf(text) {
  return /[^\0-\x7f]/.test(text) ? new TextEncoder().encode(text).length : text.length;
}
function unknownOutcome() {
  return new SwitchboardError("unknown_outcome", "it was sent, and the answer did not arrive");
}

// src/change.ts
function randomText() {
  const bytes = new Uint8Array(20);
  if (canDrawSecrets()) crypto.getRandomValues(bytes);
  else bytes.forEach((_, i) => bytes[i] = Math.random() * 256);
  return Array.from(bytes, (b) => (b % 32).toString(32)).join("");
}
function canDrawSecrets() {
  return typeof globalThis.crypto?.getRandomValues === "function";
}
function encode(change) {
  const { timeout: _, key, if: conditions, ...rest } = change;
  return {
    ...rest,
    key: key === true ? randomText() : key,
    if: conditions && Object.fromEntries(Object.entries(conditions).map(([name, want]) => [name, want ?? 0]))
  };
}

// src/emitter.ts
var Emitter = class {
  /** @internal `_failed` receives the errors of handlers. */
  constructor(_failed) {
    this._failed = _failed;
    /** @internal */
    this._handlers = /* @__PURE__ */ new Map();
  }
  /** Adds a handler. Returns a function that removes it. */
  on(event, handler) {
    let set = this._handlers.get(event);
    if (!set) this._handlers.set(event, set = /* @__PURE__ */ new Set());
    set.add(handler);
    this._added(event);
    return () => this.off(event, handler);
  }
  /** Adds a handler that is called once. */
  once(event, handler) {
    const wrapped = (...args2) => {
      off();
      return handler(...args2);
    };
    wrapped._of = handler;
    const off = this.on(event, wrapped);
    return off;
  }
  /** Removes a handler. */
  off(event, handler) {
    const set = this._handlers.get(event);
    for (const h of set ?? []) if (h === handler || h._of === handler) set.delete(h);
  }
  /** @internal */
  _has(event) {
    return !!this._handlers.get(event)?.size;
  }
  /** @internal Is called after a handler was added. */
  _added(_event) {
  }
  /** @internal Calls the handlers. Returns a promise if one of them did; it never rejects. */
  _emit(event, ...args2) {
    let pending;
    for (const handler of [...this._handlers.get(event) ?? []]) {
      const result = this._run(event, handler, args2);
      if (result) pending = pending ? Promise.all([pending, result]) : result;
    }
    return pending;
  }
  /**
   * @internal Calls one handler. The promise is that of the handler and resolves to whether it
   * succeeded.
   */
  _run(event, handler, args2, done) {
    const failed2 = (error) => this._failed(error, event);
    try {
      const result = handler(...args2);
      if (result && typeof result.then === "function") {
        return Promise.resolve(result).then(done, failed2);
      }
      done?.();
    } catch (error) {
      failed2(error);
    }
    return;
  }
};
var Queue = class {
  constructor() {
    this._tasks = [];
    this._busy = false;
  }
  /** The number of tasks that wait or run. */
  get _length() {
    return this._tasks.length + Number(this._busy);
  }
  _push(task) {
    this._tasks.push(task);
    this._next();
  }
  _next() {
    while (!this._busy) {
      const task = this._tasks.shift();
      if (!task) return;
      this._busy = true;
      const result = task();
      if (result) {
        void result.then(() => {
          this._busy = false;
          this._next();
        });
        return;
      }
      this._busy = false;
    }
  }
};

// src/feed.ts
var Feed = class extends Emitter {
  /** @internal */
  constructor(name, _sb) {
    super((error, event) => _sb._report(error, event, name));
    this.name = name;
    this._sb = _sb;
    /** @internal Grows when ids become meaningless: then earlier messages move no position. */
    this._epoch = 0;
    /** @internal Grows when what waits must not be delivered. */
    this._generation = 0;
    /** @internal */
    this._queue = new Queue();
  }
  /** @internal Starts at a position. */
  _start(position) {
    this.position = this._received = position;
  }
  /** @internal */
  _message(m) {
    if (this._received !== void 0 && m.id <= this._received) return this._duplicate();
    this._received = m.id;
    this._enqueue(
      m.id,
      this._current(() => this._deliver(m))
    );
  }
  /**
   * @internal Moves the position to the end of a gap. If it is higher already, it stays: a gap may
   * arrive after a later message. An id below `after` is a reset: the store has forgotten ids, and
   * everything above the id arrives again.
   */
  _gap(after, id) {
    after ??= this._received;
    const reset = after !== void 0 && id < after;
    if (reset) this._epoch++;
    if (reset || this._received === void 0 || id > this._received) this._received = id;
    this._enqueue(
      id,
      this._current(() => this._missed({ after, id })),
      reset
    );
  }
  /**
   * @internal Sets the position by the answer to a subscribe or connect with `asked` as `after`.
   */
  _answered(asked2, m) {
    const lost = asked2 !== void 0 && m.recovered === false;
    if (m.id === void 0 || asked2 !== void 0 && !lost) return;
    if (!lost) {
      this._received = m.id;
      this._enqueue(m.id, () => {
      });
    } else if (m.id !== asked2) {
      this._received = m.id;
      this._epoch++;
      this._enqueue(
        m.id,
        this._current(() => this._missed({ after: asked2, id: m.id })),
        true
      );
    }
  }
  /** @internal Calls `run` after all earlier messages, and then moves the position. */
  _enqueue(id, run, reset = false) {
    const epoch = this._epoch;
    const done = () => {
      if (epoch !== this._epoch) return;
      this.position = reset || this.position === void 0 ? id : Math.max(id, this.position);
      this._moved();
    };
    this._queue._push(() => {
      const result = run();
      if (result) return result.then(done);
      return done();
    });
    this._sb._waits(this._queue._length);
  }
  /** @internal */
  _deliver(m) {
    if (m.erase !== void 0) return this._emit("erase", ...args(m.erase, infoOf(m)));
    if (m.data === void 0) return;
    return this._emit("message", ...args(m.data, infoOf(m)));
  }
  /** @internal Messages are gone. */
  _missed(gap) {
    return this._emit("gap", ...args(gap));
  }
  _current(run) {
    const generation = this._generation;
    return () => generation === this._generation ? run() : void 0;
  }
  /** @internal Is called after `position` has changed. */
  _moved() {
    this._sb._store._changed();
  }
  /** @internal Is called for a message that was received before. */
  _duplicate() {
  }
};
function args(...list) {
  return list;
}
function infoOf(m) {
  return { id: m.id, channel: m.channel ?? "", by: m.by };
}

// src/channelcalls.ts
var ChannelCalls = class extends Feed {
  /** Publishes data, and returns the id of the message. */
  publish(data, options = {}) {
    return this.update({ ...options, data });
  }
  /** Changes fields, all of them or none. A refusal by the state has the current `fields`. */
  async update(change) {
    const m = await this._ask({ type: "publish", ...encode(change) }, change.timeout);
    return { id: m.id, fields: m.fields ?? {} };
  }
  /** Sets one field. */
  set(name, value, options = {}) {
    return this.update({ ...options, set: { [name]: value } });
  }
  /** Removes fields. An absent one is no error. */
  del(names, options = {}) {
    return this.update({ ...options, del: listOf(names) });
  }
  /** Adds to a whole number, within bounds, and returns the result. */
  async add(name, by, options = {}) {
    const { min, max, ...rest } = options;
    const add = { [name]: { by, min, max } };
    return (await this.update({ ...rest, add })).fields[name];
  }
  /** Gives fields a new lease of `ttl` seconds. */
  touch(names, options = {}) {
    return this.update({ ...options, touch: listOf(names) });
  }
  /** Reads stored messages, the oldest first, without a subscription. */
  async history(options = {}) {
    const m = await this._ask({ type: "history", after: 0, ...options });
    const messages = m.messages ?? [];
    const last = m.id ?? messages.at(-1)?.id ?? options.after ?? 0;
    return { messages, more: !!m.more, last, recovered: m.recovered !== false };
  }
  /**
   * Reads a page of the clients in the channel, without a subscription. In a channel that shows
   * aliases, `alias` is that of this client, or empty.
   */
  async presence(options = {}) {
    const m = await this._ask({ type: "presence", ...options });
    return { clients: m.clients ?? [], count: m.count ?? 0, users: m.users, next: m.next, alias: m.alias };
  }
  /** Reads a page of the fields, without a subscription. */
  async readState(options = {}) {
    const m = await this._ask({ type: "state", ...options });
    const fields = Object.entries(m.fields ?? {}).map(([name, f]) => [name, entryOf(f)]);
    return { id: m.id, fields: Object.fromEntries(fields), cursor: m.cursor };
  }
  /** @internal */
  _ask(message, timeout) {
    return this._sb._call({ ...message, channel: this.name }, timeout);
  }
};
function listOf(names) {
  return Array.isArray(names) ? names : [names];
}

// src/timeout.ts
async function within(ms, promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    const error = new SwitchboardError("timeout", `no ${what} in time`);
    if (ms) timer = setTimeout(() => reject(error), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// src/load.ts
var Loader = class {
  constructor(_host, _backoff) {
    this._host = _host;
    this._backoff = _backoff;
    /** The subscription that begins next has no data yet. */
    this._due = true;
    /** The messages up to this position are in the data. */
    this._loadedTo = 0;
  }
  /**
   * Loads for messages above `from`. Those up to `oldest` are gone, so a position below is too old.
   * `isCurrent` reports whether the subscription is still the same.
   */
  async _run(from, oldest, isCurrent) {
    const host = this._host;
    let snapshot2;
    try {
      snapshot2 = await within(host._timeout, host._load(), "answer of load");
      if (typeof snapshot2 !== "object" || !snapshot2) throw new TypeError("load: it returned no object");
      checkPosition(snapshot2.after);
      if (snapshot2.after && snapshot2.after < oldest) {
        throw new RangeError(`load: the position ${snapshot2.after} is before the oldest message, ${oldest}`);
      }
    } catch (error) {
      if (!isCurrent()) return;
      host._loadFailed(error);
      return this._restart(void 0, this._backoff._next());
    }
    if (!isCurrent()) return;
    this._backoff._forget();
    const { after = from } = snapshot2;
    this._loadedTo = after;
    const start = Math.max(after, oldest);
    if (start < from) {
      this._restart(start, 0);
      this._due = false;
    }
    await host._loaded(snapshot2);
  }
  _restart(after, delay) {
    this._due = true;
    this._host._rewind(after, delay);
  }
};
function checkPosition(after) {
  if (after !== void 0 && !(Number.isSafeInteger(after) && after >= 0)) {
    throw new TypeError(`after: ${String(after)} is no position`);
  }
}

// src/members.ts
var readAll = 1e3;
var readAgainAfter = () => 5e3 + 1e4 * Math.random();
var Members = class extends Emitter {
  /** @internal */
  constructor(_channel) {
    super(_channel._failed);
    this._channel = _channel;
    /** The number of clients. */
    this.count = 0;
    /** All clients are in the map. In a channel of more than 200 clients they may not be. */
    this.complete = false;
    this._map = /* @__PURE__ */ new Map();
  }
  get(client) {
    return this._map.get(client);
  }
  has(client) {
    return this._map.has(client);
  }
  /** The number of clients in the map. */
  get size() {
    return this._map.size;
  }
  /** Iterates over the members. */
  [Symbol.iterator]() {
    return this._map.values();
  }
  /**
   * @internal Reads all pages, and then applies the events that arrived meanwhile. The broker may
   * answer before it has stored that this client is a member, and sends a client no event about
   * itself: then it reads again after `delay` ms. In a channel that shows aliases, the broker does
   * send the join of this client's alias.
   */
  async _read(delay = 50) {
    this._stop();
    const events = this._reading = [];
    const map = /* @__PURE__ */ new Map();
    let complete = true;
    let count = 0;
    let ids = false;
    try {
      for (let cursor; ; ) {
        const page = await this._channel.presence({ cursor });
        for (const m of page.clients) map.set(m.client, m);
        count = page.count;
        ids = page.alias === void 0;
        cursor = page.next;
        if (!cursor) break;
        if (count > readAll) {
          complete = false;
          break;
        }
      }
    } catch (error) {
      if (this._reading !== events) return;
      if (error.retryable) {
        this._timer = setTimeout(() => void this._read(), 1e3 + 4e3 * Math.random());
        return;
      }
      this._reading = void 0;
      this._channel._failed(error, "members");
      return;
    }
    if (this._reading !== events) return;
    this._reading = void 0;
    this._replace(map, count, complete);
    for (const event of events) this._apply(event);
    const { _sb } = this._channel;
    if (!complete || !ids || map.has(_sb.client) || delay >= 5e3) return;
    clearTimeout(this._timer);
    this._timer = setTimeout(() => _sb._isConnected && void this._read(2 * delay), delay);
  }
  /** @internal */
  _apply(m) {
    if (this._reading) {
      this._reading.push(m);
      return;
    }
    if (m.type === "here") return this._here(m.client, m.data);
    if (m.clients)
      return this._replace(new Map(m.clients.map((c) => [c.client, c])), m.count ?? m.clients.length, true);
    const before = this._map.size;
    if (m.type === "join") this._join({ client: m.client, user: m.user, info: m.info });
    else if (m.type === "leave") this._leave(m.client);
    else {
      m.left?.forEach((c) => this._leave(c.client));
      m.joined?.forEach((c) => this._join(c));
      this.complete = m.count === this._map.size;
    }
    this.count = m.count ?? (this.complete ? this._map.size : this.count + this._map.size - before);
    if (!this.complete && this.count <= readAll) this._timer ??= setTimeout(() => void this._read(), readAgainAfter());
    this._emit("change");
  }
  /** @internal Reads no more pages. */
  _stop() {
    clearTimeout(this._timer);
    this._timer = this._reading = void 0;
  }
  /** @internal Nothing is known any more. */
  _forget() {
    this._stop();
    this._replace(/* @__PURE__ */ new Map(), 0, false);
  }
  _replace(map, count, complete) {
    const before = this._map;
    this._map = map;
    this.count = count;
    this.complete = complete;
    for (const [client, m] of before) if (!map.has(client)) this._emit("leave", m);
    for (const [client, m] of map) {
      if (!before.has(client)) this._emit("join", m);
      const shown = before.get(client)?.here;
      if (JSON.stringify(shown) !== JSON.stringify(m.here)) this._emit("here", m.here, m);
    }
    this._emit("change");
  }
  _join(m) {
    const known = this._map.has(m.client);
    this._map.set(m.client, { ...this._map.get(m.client), ...m });
    if (!known) this._emit("join", m);
  }
  _leave(client) {
    const m = this._map.get(client);
    if (!m) return;
    this._map.delete(client);
    this._emit("leave", m);
  }
  _here(client, value) {
    const m = this._map.get(client);
    if (!m) return;
    m.here = value ?? void 0;
    this._emit("here", m.here, m);
    this._emit("change");
  }
};

// src/reducer.ts
var Reducer = class {
  constructor() {
    /** The fields at `_id`. A new series replaces the map; it never changes the old one. */
    this._fields = /* @__PURE__ */ new Map();
    this._id = 0;
    /** The last page of the newest series has arrived. */
    this._held = false;
    this._series = 0;
    // the id of the series whose last page is missing
    this._later = [];
  }
  // messages after the first page of a series
  /** Applies a page. It ignores a page of another series than the newest. */
  _page(id, fields, first = false, more = false) {
    if (first) {
      this._fields = /* @__PURE__ */ new Map();
      this._id = this._series = id;
      this._held = false;
      this._later = [];
    } else if (!this._series || id !== this._series) {
      return;
    }
    for (const [name, field] of Object.entries(fields)) if (field) this._fields.set(name, entryOf(field));
    if (more) return;
    this._series = 0;
    this._held = true;
    for (const [later, changes2] of this._later.splice(0)) this._message(later, changes2);
  }
  /** Applies a message. Returns whether it has changed a complete map. */
  _message(id, changes2) {
    if (this._series) {
      this._later.push([id, changes2]);
      return false;
    }
    if (id <= this._id) return false;
    this._id = id;
    apply(this._fields, id, changes2);
    return this._held;
  }
};
function apply(fields, id, c) {
  const edit = (name, change) => {
    const entry = fields.get(name);
    if (entry) fields.set(name, { ...entry, ...change });
  };
  const ends = new Map(Object.entries(c.until ?? {}));
  if (c.cleared) fields.clear();
  for (const name in c.gone) fields.delete(name);
  for (const name of c.del ?? []) fields.delete(name);
  for (const name in c.set) {
    fields.set(name, { id, value: c.set[name], until: void 0, away: fields.get(name)?.away ?? false });
  }
  for (const [name, until] of ends) edit(name, { until: until || void 0 });
  for (const name in c.away) edit(name, { away: true, until: c.away[name] || void 0 });
  for (const name of c.back ?? []) edit(name, { away: false, until: ends.get(name) || void 0 });
}
function namesIn(c) {
  return [
    ...new Set(
      [c.gone, c.set, c.until, c.away].flatMap((part3) => Object.keys(part3 ?? {})).concat(c.del ?? [], c.back ?? [])
    )
  ];
}

// src/state.ts
var State = class extends Emitter {
  /** @internal `_closed` returns the error after which nothing arrives. */
  constructor(failed2, _closed) {
    super(failed2);
    this._closed = _closed;
    /** The id to which the fields correspond. */
    this.id = 0;
    /** All fields have arrived at least once. */
    this.complete = false;
    this._shown = /* @__PURE__ */ new Map();
    this._reducer = new Reducer();
    this._waiters = [];
  }
  /** The value of a field, undefined if it is absent. Do not modify it. */
  get(name) {
    return this._shown.get(name)?.value;
  }
  /** A field with its id, end and absence of owners. */
  entry(name) {
    return this._shown.get(name);
  }
  has(name) {
    return this._shown.has(name);
  }
  get size() {
    return this._shown.size;
  }
  keys() {
    return this._shown.keys();
  }
  entries() {
    return this._shown.entries();
  }
  /** Iterates over names and values: `Object.fromEntries(room.state)` is a plain object. */
  *[Symbol.iterator]() {
    for (const [name, entry] of this._shown) yield [name, entry.value];
  }
  /**
   * Resolves when all fields have arrived, and rejects if the subscription was refused or has
   * ended.
   */
  ready() {
    if (this.complete) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const closed = this._closed();
      if (closed) reject(closed);
      else this._waiters.push({ resolve, reject });
    });
  }
  /** @internal Something waits in `ready`. */
  get _waited() {
    return this._waiters.length > 0;
  }
  /** @internal The subscription has ended. */
  _ended(error) {
    for (const w of this._waiters.splice(0)) w.reject(error);
  }
  /** @internal Forgets everything. */
  _restart() {
    this._reducer = new Reducer();
    this._shown = /* @__PURE__ */ new Map();
    this.complete = false;
  }
  /** @internal */
  _page(m) {
    const before = this._shown;
    const reducer = this._reducer;
    reducer._page(m.id, m.fields ?? {}, m.first, m.more);
    if (m.more || !reducer._held || reducer._fields === before) return;
    this._shown = reducer._fields;
    this.id = reducer._id;
    this.complete = true;
    for (const w of this._waiters.splice(0)) w.resolve();
    const names = [.../* @__PURE__ */ new Set([...before.keys(), ...this._shown.keys()])].filter(
      (name) => JSON.stringify(before.get(name)) !== JSON.stringify(this._shown.get(name))
    );
    return this._emit("change", { id: this.id, names, full: true });
  }
  /** @internal */
  _message(m) {
    const names = m.cleared ? [...this._shown.keys()] : [];
    if (!this._reducer._message(m.id, m)) return;
    this.id = m.id;
    names.push(...namesIn(m).filter((name) => !names.includes(name)));
    if (!names.length && !m.cleared) return;
    const { type, channel, ...parts } = m;
    return this._emit("change", { ...parts, id: this.id, names, full: false });
  }
};

// src/transact.ts
var attempts = 50;
async function transact(channel, change, options) {
  const { state } = channel;
  if (!channel._wanted) await channel.subscribe();
  await state.ready();
  const backoff = new Backoff(1, 250);
  const newer = /* @__PURE__ */ new Map();
  for (let attempt = 1; ; attempt++) {
    const [draft, changes2] = record(state, newer);
    const result = await change(draft);
    const { set, del, if: conditions } = changes2();
    if (!Object.keys(set).length && !del.length) return result;
    try {
      const all = { ...options, set, del, if: conditions, key: true };
      await channel.update(all);
      return result;
    } catch (error) {
      const { code, fields = {} } = error;
      const read = Object.entries(code === "conflict" ? fields : {}).filter(
        ([name, entry]) => name in conditions && (entry?.id ?? 0) !== conditions[name]
      );
      if (!read.length || attempt === attempts) throw error;
      for (let [name, entry] of read) {
        if (entry?.value === void 0 && entry) {
          const page = await channel.readState({ prefix: name, limit: 1 });
          entry = new Map(Object.entries(page.fields)).get(name) ?? null;
        }
        newer.set(name, entry);
      }
      await new Promise((resolve) => setTimeout(resolve, backoff._next()));
    }
  }
}
function record(state, newer) {
  const fields = /* @__PURE__ */ new Map();
  const get = (name) => {
    if (typeof name === "symbol") return void 0;
    let field = fields.get(name);
    if (!field) {
      const shown = state.entry(name);
      const late = newer.get(name);
      const entry = late === void 0 || late && shown && shown.id > late.id ? shown : late;
      const json = entry ? JSON.stringify(entry.value) : "";
      field = { _id: entry?.id ?? 0, _read: json, _value: json ? JSON.parse(json) : void 0 };
      fields.set(name, field);
    }
    return field._value;
  };
  const set = (name, _value) => !!fields.set(String(name), { _id: fields.get(String(name))?._id, _value, _written: true });
  const draft = new Proxy(/* @__PURE__ */ Object.create(null), {
    get: (_, name) => get(name),
    has: (_, name) => get(name) !== void 0,
    set: (_, name, value) => set(name, value),
    deleteProperty: (_, name) => set(name, void 0),
    ownKeys: () => [.../* @__PURE__ */ new Set([...state.keys(), ...newer.keys(), ...fields.keys()])].filter((name) => get(name) !== void 0),
    getOwnPropertyDescriptor: (_, name) => {
      const value = get(name);
      return value === void 0 ? void 0 : { value, writable: true, enumerable: true, configurable: true };
    }
  });
  const changes2 = () => {
    const found = { set: /* @__PURE__ */ Object.create(null), del: [], if: /* @__PURE__ */ Object.create(null) };
    for (const [name, { _id, _read, _value, _written }] of fields) {
      if (_id !== void 0) found.if[name] = _id;
      if (_written && _value === void 0) found.del.push(name);
      else if (_written || _read && jsonOf(_value, name) !== _read) found.set[name] = _value;
    }
    return found;
  };
  return [draft, changes2];
}

// src/channel.ts
var Channel = class extends ChannelCalls {
  /** @internal */
  constructor(name, sb) {
    super(name, sb);
    /** @internal The subscription is wanted. */
    this._wanted = false;
    // until the subscription is wanted again
    this._active = false;
    // the subscribe without an answer
    this._due = false;
    // a subscribe will be made in a microtask
    this._holders = /* @__PURE__ */ new Set();
    this._waiters = [];
    this._series = 0;
    // id of the newest series of pages; 0 if another one follows
    this._seriesDone = false;
    this._hereDue = false;
    this._retry = sb._newBackoff();
  }
  /** @internal */
  _configure(o) {
    checkPosition(o.after);
    if (o.load) this._keepLoaded(o.load, o.after);
    if (o.after !== void 0 && !this._wanted) this._restartAt(o.after);
    if (o.state !== void 0 && o.state !== false) this._keepState(o.state === true ? "" : o.state);
    if (o.presence) this._keepMembers();
    if (o.subscribe !== false) this._hold(this, o.subscribe);
  }
  /** The live fields. The first use adds them to the subscription. */
  get state() {
    return this._state ?? this._keepState("");
  }
  /** The live members. The first use adds them to the subscription. */
  get members() {
    return this._members ?? this._keepMembers();
  }
  /** Resolves when the broker has accepted the subscription, and rejects if it refuses it. */
  async subscribe(options = {}) {
    this._configure({ ...options, subscribe: true });
    if (this._active && !this._due && !this._pending) return { id: this._received, recovered: true };
    if (this._sb._closed) throw this._sb._closed;
    return new Promise((resolve, reject) => this._waiters.push({ resolve, reject }));
  }
  /**
   * Subscribes for one part of the application. The returned function ends the subscription, unless
   * another part holds it, or you have subscribed by `channel` or `subscribe`.
   */
  hold() {
    const holder = {};
    this._hold(holder);
    return async () => {
      if (this._holders.delete(holder) && !this._holders.size) await this.unsubscribe();
    };
  }
  /** Ends the subscription for all parts, and forgets the position, the state and the members. */
  async unsubscribe() {
    const sent = this._active || this._pending;
    this._end(new SwitchboardError("unsubscribed", `${this.name} was unsubscribed`));
    if (sent) await this._ask({ type: "unsubscribe" });
  }
  /**
   * Reads and writes fields as properties of a draft: `await room.transact((s) => { s.turn =
   * next(s.turn); })`. It is published under the condition that no field that was read has changed.
   * After a conflict, `change` is called again with the current values. Returns its result.
   */
  transact(change, options = {}) {
    return transact(this, change, options);
  }
  /**
   * Shows a value to the members that watch: a cursor, or "is typing". It is not stored. At most
   * every 50 ms the newest value is sent, and again after a reconnect. null ends it.
   */
  here(value) {
    this._shown = jsonOf(value ?? null, "here");
    this._hereDue = true;
    if (!this._hereTimer) this._sendHere();
  }
  // What follows is called by the Switchboard.
  /** @internal */
  _receive(m) {
    if (!this._active) return;
    switch (m.type) {
      case "message":
        return this._message(m);
      case "gap":
        this._series = 0;
        return this._gap(m.after, m.id);
      case "state":
        return this._page(m);
      case "unsubscribed":
        if (!this._pending) this._refused(new SwitchboardError(m.code ?? "", m.message ?? "", m), "ended");
        return;
      default:
        if (this._onPresence) this._onPresence(m);
        else this._members?._apply(m);
    }
  }
  /** @internal A connection is open. */
  _connected() {
    if (this._wanted) this._subscribe();
  }
  /** @internal The connection has ended. */
  _lost() {
    this._active = false;
    this._pending = void 0;
    clearTimeout(this._timer);
  }
  /**
   * @internal The backend has subscribed the client: from now on the subscription is wanted. A
   * channel with a position, a loader, the state or the members subscribes by itself.
   */
  _adopt(m) {
    if (this._wanted) return;
    this._hold(this);
    const kept = this._loader ?? this._selector ?? this._members ?? this._received;
    if ((kept ?? this._sb._savedPosition(this.name)) === void 0) {
      this._due = false;
      this._subscribed(m, m);
    }
    this._sb._emit("subscribed", this);
  }
  /** @internal Ends the subscription. With `forget`, also what it knows. */
  _end(error, forget = true) {
    this._lost();
    this._wanted = this._due = false;
    this._endedBy = error;
    this._holders.clear();
    clearTimeout(this._hereTimer);
    this._hereTimer = this._shown = void 0;
    this._members?._stop();
    if (forget) {
      if (this._loader) this._loader._due = true;
      this._restartAt(void 0);
      this._sb._forgetPosition(this.name);
      this._members?._forget();
      this._state?._restart();
    }
    this._state?._ended(error);
    for (const w of this._waiters.splice(0)) w.reject(error);
  }
  /** @internal */
  _deliver(m) {
    const changed = this._state?._message(m);
    if (this._loader && m.id <= this._loader._loadedTo) return changed;
    return changed && m.data !== void 0 ? changed.then(() => super._deliver(m)) : super._deliver(m) ?? changed;
  }
  /** @internal */
  _missed(gap) {
    const handled = super._missed(gap);
    if (!this._loader) return handled;
    const from = gap.id < gap.after ? gap.id : Math.max(gap.id, this.position ?? 0);
    return Promise.resolve(handled).then(() => this._runLoad(from, gap.id));
  }
  _restartAt(after) {
    this._epoch++;
    if (this._loader) this._generation++;
    this._series = 0;
    this._active = false;
    this._start(after);
  }
  _keepLoaded(load, after) {
    if (after !== void 0) throw new TypeError("after: with `load`, it returns the position");
    if (this._loader) return;
    const host = {
      _load: load,
      _timeout: this._sb._timeout,
      _loaded: (snapshot2) => this._emit("loaded", snapshot2),
      _rewind: (position, delay) => this._rewind(position, delay),
      _loadFailed: (error) => this._sb._report(error, "load", this.name)
    };
    this._loader = new Loader(host, this._sb._newBackoff());
    if (this._active) this._startLoad();
  }
  /** Loads, before the messages that follow. */
  _startLoad() {
    if (!this._loader?._due) return;
    this._loader._due = false;
    const from = this._received ?? 0;
    this._queue._push(() => this._runLoad(from, 0));
  }
  async _runLoad(from, oldest) {
    const generation = this._generation;
    await this._loader?._run(from, oldest, () => generation === this._generation);
  }
  /** Ends the subscription, and begins another one at a position after a delay in ms. */
  _rewind(after, delay) {
    const sent = this._active || this._pending;
    this._restartAt(after);
    this._lost();
    if (sent) void this._ask({ type: "unsubscribe" }).catch(() => {
    });
    if (delay) this._timer = setTimeout(() => this._subscribe(), delay);
    else if (this._sb._isConnected) this._subscribe();
  }
  _keepState(prefix) {
    this._state ??= new State(this._failed, () => this._sb._closed ?? this._endedBy);
    if (this._selector !== prefix) {
      const state = this._state;
      this._selector = prefix;
      this._queue._push(() => state._restart());
      this._series = 0;
      if (this._wanted) this._want();
    }
    return this._state;
  }
  _keepMembers() {
    if (!this._members) {
      this._members = new Members(this);
      if (this._wanted) this._want();
    }
    return this._members;
  }
  _hold(holder, again = false) {
    this._holders.add(holder);
    if (again || !this._wanted) this._want();
  }
  /** Subscribes when the code that configures the channel has run. */
  _want() {
    this._wanted = true;
    this._endedBy = void 0;
    if (this._due) return;
    this._due = true;
    queueMicrotask(() => {
      if (!this._due) return;
      this._due = false;
      if (this._sb._isConnected) this._subscribe();
    });
  }
  _subscribe() {
    this._due = false;
    clearTimeout(this._timer);
    if (this._received === void 0 && !this._loader) this._start(this._sb._savedPosition(this.name));
    const message = {
      type: "subscribe",
      channel: this.name,
      after: this._received,
      presence: this._members ? true : void 0,
      state: this._selector === void 0 ? void 0 : this._selector || true,
      held: this._holds() || void 0
    };
    this._pending = message;
    this._sb._calls._submit(
      message,
      0,
      (m) => this._pending === message && this._subscribed(message, m),
      (error) => this._pending === message && this._subscribeFailed(error)
    );
  }
  /** Reports whether the queued pages and messages give all fields at the position. */
  _holds() {
    return this._selector !== void 0 && this._series > 0 && this._seriesDone && this._received >= this._series;
  }
  _subscribed(asked2, m) {
    const continues = this._active && m.recovered === void 0;
    this._pending = void 0;
    this._active = true;
    this._answeredSelector = asked2["state"] === true ? "" : asked2["state"];
    this._retry._forget();
    if (!continues && !(asked2["held"] && m.recovered)) this._series = 0;
    this._answered(asked2["after"], m);
    this._startLoad();
    if (this._members) void this._members._read();
    if (this._shown !== void 0) {
      this._hereDue = true;
      this._sendHere();
    }
    const subscribed = { id: m.id, recovered: m.recovered !== false };
    for (const w of this._waiters.splice(0)) w.resolve(subscribed);
    this._emit("subscribed", subscribed);
  }
  _subscribeFailed(error) {
    this._pending = void 0;
    if (error.code === "lost" || error.code === "closed") return;
    if (error.retryable) {
      this._timer = setTimeout(() => this._subscribe(), Math.max(this._retry._next(), error.retryIn ?? 0));
    } else this._refused(error);
  }
  _refused(error, how = "refused") {
    const handled = this._has("unsubscribed") || this._waiters.length || this._state?._waited;
    this._end(error);
    const remedy = how === "refused" ? error.code : how;
    this._sb._warn(remedy, `the broker has ${how} the subscription to ${this.name}: ${error.message}`, handled);
    this._emit("unsubscribed", error);
  }
  _page(m) {
    if (this._answeredSelector !== this._selector) return;
    if (!this._state || !m.first && (this._series !== m.id || this._seriesDone)) return;
    this._series = m.id;
    this._seriesDone = !m.more;
    const state = this._state;
    this._queue._push(() => state._page(m));
  }
  _sendHere() {
    clearTimeout(this._hereTimer);
    this._hereTimer = void 0;
    if (!this._hereDue || !this._active) return;
    this._hereDue = false;
    this._sb._send(`{"type":"here","channel":${JSON.stringify(this.name)},"data":${this._shown}}`, 1);
    if (this._shown === "null") this._shown = void 0;
    this._hereTimer = setTimeout(() => this._sendHere(), 50);
  }
};

// src/config.ts
function urlsOf(urls, scheme) {
  const list = [urls].flat().map(String);
  return [...new Set(list.length ? list : [""])].map((url) => {
    const [, host, path = ""] = /^(?:ws|http)(s?:\/\/[^/?#\s]+)([^#\s]*)$/i.exec(url) ?? [];
    if (!host) throw new TypeError(`"${url}" is no URL of a broker, such as wss://push.example.com`);
    return scheme + host + (scheme === "ws" ? path.replace(/^\/?(?=\?|$)/, "/ws") : path.replace(/\/+$/, ""));
  });
}

// src/wire.ts
var closeCodes = [
  "draining",
  "superseded",
  "unauthorized",
  "expired",
  "disconnected",
  "bad_request",
  "slow",
  "idle",
  "overloaded"
];

// src/connection.ts
var finalCodes = ["superseded", "unauthorized", "expired", "disconnected", "bad_request"];
var closeGrace = 1e3;
var maxAfter = 6e5;
var Connection = class {
  // what the socket says about its failure
  /**
   * `_silence` is the longest wait for the opening, and then for the answer to `connect`, in ms.
   */
  constructor(socketClass, url, _silence, _times, _onOpen, _onMessage, _onEnd) {
    this._silence = _silence;
    this._times = _times;
    this._onOpen = _onOpen;
    this._onMessage = _onMessage;
    this._onEnd = _onEnd;
    this._ended = false;
    this._open = false;
    this._why = "";
    const socket = this._socket = new socketClass(url);
    this._waitForAnswer();
    socket.onopen = () => this._onOpen();
    socket.onmessage = (event) => this._receive(String(event.data));
    socket.onerror = (event) => {
      this._why = event?.message ?? "";
    };
    socket.onclose = (event) => {
      const code = closeCodes[(event.code ?? 0) - 4001];
      if (code) this._closed(code, event.reason || code);
      else this._lost(`the connection was closed with ${event.code} ${this._why}`.trim());
    };
  }
  /** Sends `connect`. */
  _connect(message) {
    this._waitForAnswer();
    this._sendText(JSON.stringify(message));
  }
  _sendText(text) {
    try {
      this._socket.send(text);
    } catch (error) {
      this._lost(String(error));
    }
  }
  /** Verifies at once that the server answers. */
  _check() {
    if (!this._open || this._ended) return;
    this._wait(this._times.pingTimeout, () => this._lost("the server is silent"));
    this._sendText('{"type":"ping"}');
  }
  /** Ends the connection. Nothing is called after it. */
  _close() {
    this._ended = true;
    clearTimeout(this._timer);
    this._socket.onopen = this._socket.onmessage = this._socket.onclose = null;
    try {
      this._socket.close(1e3);
    } catch {
    }
  }
  _receive(text) {
    let m;
    try {
      m = JSON.parse(text);
    } catch {
      return;
    }
    if (typeof m?.type !== "string") return;
    if (this._open) this._heard();
    switch (m.type) {
      case "ping":
        return this._sendText(JSON.stringify({ type: "pong", ref: m.ref }));
      case "closing":
        return this._closed(m.code, m.message ?? m.code, m.reconnect, m.after_ms);
      case "connected":
        if (this._open) return;
        this._open = true;
        this._heard();
        break;
      case "error":
        if (this._open) break;
        this._refused = refusal(m);
        this._wait(closeGrace, () => this._lost(""));
        return;
      default:
        if (!this._open) return;
    }
    this._onMessage(m, text.length);
  }
  _waitForAnswer() {
    this._wait(this._silence, () => this._lost(`no answer within ${Math.round(this._silence)} ms`));
  }
  _wait(ms, then) {
    clearTimeout(this._timer);
    this._timer = setTimeout(then, ms);
  }
  _heard() {
    this._wait(this._times.pingAfter, () => this._check());
  }
  _closed(code, message, reconnect = !finalCodes.includes(code), afterMs = 0) {
    this._end({ code, message, reconnect, afterMs: Math.min(Math.max(afterMs, 0), maxAfter) });
  }
  _lost(message) {
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
  _end(end) {
    if (this._ended) return;
    this._close();
    this._onEnd(end);
  }
};

// src/dialer.ts
var stagger = 1e3;
var patience = 3e3;
var minUptime = 3e3;
var Dialer = class {
  constructor(urls, _socketClass, _times, _host) {
    this._socketClass = _socketClass;
    this._times = _times;
    this._host = _host;
    // the one that has been sent `connect`
    this._since = 0;
    // when the connection was accepted
    this._notBefore = 0;
    // for all targets
    this._byServer = false;
    this._targets = urls.map((_url) => ({ _url, _backoff: _host._newBackoff(urls.length), _failures: 0, _notBefore: 0, _began: 0 })).sort(() => Math.random() - 0.5);
  }
  /**
   * Makes the next attempt if it is due. Returns the time until then in ms; 0 if one is being made.
   */
  _next() {
    clearTimeout(this._timer);
    if (this._current || this._preparing) return 0;
    const at = now();
    const due = (t) => Math.max(t._notBefore, at);
    const [target] = this._targets.filter((t) => !t._attempt).sort((a, b) => due(a) - due(b) || a._failures - b._failures);
    if (!target) return 0;
    const silent = this._targets.filter((t) => t._attempt).map((t) => t._began + stagger);
    const wait = Math.max(due(target), this._notBefore, ...silent) - at;
    if (wait > 0) this._timer = setTimeout(() => this._next(), wait);
    else void this._dial(target);
    return silent[0] || this._preparing ? 0 : wait;
  }
  /** Ends the connection and all attempts. */
  _stop() {
    clearTimeout(this._timer);
    this._connection = this._current = this._preparing = void 0;
    this._targets.forEach(close);
  }
  /** The broker has accepted the connection. */
  _accepted() {
    this._connection = this._current._attempt;
    this._current._failures = 0;
    this._since = now();
  }
  /**
   * Goes on after the end of a connection or an attempt. The broker may ask for a delay. `same`
   * prefers the same URL. Returns the time until the next attempt in ms.
   */
  _again(afterMs, same) {
    const at = now();
    const lost = this._connection && this._current;
    if (lost) {
      const uptime = at - this._since;
      for (const t of this._targets) if (uptime >= minUptime && t._backoff._forget(3 * uptime)) t._failures = 0;
      this._connection = this._current = void 0;
      close(lost);
      if (same) lost._failures = -1;
      else failed(lost);
      this._notBefore = at + this._host._newBackoff()._next();
    }
    this._byServer = afterMs > 0;
    if (afterMs) this._reset(at + afterMs);
    return this._next();
  }
  /** The network may be back: forgets all delays, except one that the broker has asked for. */
  _wake() {
    if (this._current || this._byServer && now() < this._notBefore) return;
    this._reset(0);
    for (const t of this._targets) {
      t._failures = 0;
      t._backoff._forget();
      if (now() - t._began >= stagger) close(t);
    }
    this._next();
  }
  _reset(notBefore) {
    this._notBefore = notBefore;
    for (const t of this._targets) t._notBefore = 0;
  }
  async _dial(t) {
    const preparing = this._preparing = {};
    const wait = await this._host._prepare();
    if (this._preparing !== preparing) return;
    this._preparing = void 0;
    if (wait) this._notBefore = now() + wait;
    else this._open(t);
    this._next();
  }
  _open(t) {
    const host = this._host;
    const { connectTimeout } = this._times;
    const most = this._targets.length > 1 ? Math.max(patience, t._backoff._age / 3) : connectTimeout;
    t._began = now();
    host._emit("connecting", t._url);
    const ended = (end) => {
      if (!this._connection) {
        if (t === this._current) this._current = void 0;
        t._attempt = void 0;
        failed(t);
      }
      host._ended(end);
    };
    try {
      t._attempt = new Connection(
        this._socketClass(),
        t._url,
        Math.min(most, connectTimeout),
        this._times,
        () => this._opened(t),
        (m, size) => host._receive(m, size, t._url),
        ended
      );
    } catch (error) {
      ended({ code: "lost", message: String(error), reconnect: true, afterMs: 0 });
    }
  }
  _opened(t) {
    this._current = t;
    for (const other of this._targets) {
      if (other === t) continue;
      if (other._attempt && now() - other._began >= stagger) failed(other);
      close(other);
    }
    t._attempt._connect(this._host._hello());
  }
};
function failed(t) {
  t._failures++;
  t._notBefore = now() + t._backoff._next();
}
function close(t) {
  t._attempt?._close();
  t._attempt = void 0;
}

// src/foreground.ts
function listen(appState, wake, leave) {
  const removers = [];
  const on = (target, event, handler) => {
    if (typeof target?.addEventListener !== "function") return;
    target.addEventListener(event, handler);
    removers.push(() => target.removeEventListener(event, handler));
  };
  const page = typeof document === "undefined" ? void 0 : document;
  on(page && globalThis, "online", wake);
  on(page && globalThis, "pagehide", leave);
  on(page, "visibilitychange", () => page.visibilityState === "visible" ? wake() : leave());
  const application = appState?.addEventListener("change", (state) => state === "active" ? wake() : leave());
  if (application) removers.push(() => application.remove());
  return removers;
}

// src/inbox.ts
var ackEvery = 64;
var ackWithin = 100;
var Inbox = class extends Feed {
  constructor() {
    super(...arguments);
    this._unacked = 0;
    this._lastGap = "";
  }
  // a message waits for a handler
  /** @internal */
  _added() {
    this._wake?.();
  }
  /** @internal Calls no handler again. */
  _stop() {
    clearTimeout(this._retryTimer);
    this._ack();
    this._handlers.clear();
  }
  /** @internal Another client id has another queue. */
  _changed() {
    this._epoch++;
    this._unacked = 0;
    this._lastGap = "";
    this._start(void 0);
  }
  /** @internal */
  async _deliver(m) {
    const backoff = new Backoff(250, 3e4);
    const done = /* @__PURE__ */ new Set();
    for (; ; ) {
      const handlers = [...this._handlers.get("message") ?? []];
      if (!handlers.length) {
        await new Promise((resolve) => this._wake = resolve);
        continue;
      }
      for (const handler of handlers) {
        if (!done.has(handler)) await this._run("message", handler, [m.data, infoOf(m)], () => done.add(handler));
      }
      if (this._sb._acksFailures) return;
      if (handlers.every((handler) => done.has(handler))) return;
      await new Promise((resolve) => this._retryTimer = setTimeout(resolve, backoff._next()));
    }
  }
  /** @internal */
  _gap(after, id) {
    const gap = `${after} ${id}`;
    if (gap === this._lastGap && id >= (after ?? 0)) return;
    this._lastGap = gap;
    super._gap(after, id);
  }
  /** @internal */
  _moved() {
    super._moved();
    if (++this._unacked >= ackEvery || this._queue._length <= 1) this._ack();
    else this._ackTimer ??= setTimeout(() => this._ack(), ackWithin);
  }
  /** @internal The broker sends unacknowledged messages again: its ack was lost. */
  _duplicate() {
    this._ack();
  }
  /** @internal Acknowledges all messages that are handled. */
  _ack() {
    this._unacked = 0;
    clearTimeout(this._ackTimer);
    this._ackTimer = void 0;
    if (this.position !== void 0) this._sb._send(`{"type":"ack","id":${this.position}}`);
  }
};

// src/positions.ts
var keepFor = 30 * 864e5;
var keepNumber = 1e3;
var keepBusy = 7 * 864e5;
function usesToKeep({ channels = {}, used = {} }, now2) {
  return Object.keys(channels).map((name) => [name, Math.min(Number(used[name]) || now2, now2)]).sort((a, b) => b[1] - a[1]).filter(([, at], i) => now2 - at < (i < keepNumber ? keepFor : keepBusy));
}
function snapshot(saved, inbox, all, feeds) {
  const now2 = Date.now();
  const used = new Map(usesToKeep(saved, now2));
  const channels = new Map([...used.keys()].map((name) => [name, saved.channels[name]]));
  for (const { name, position = channels.get(name) } of feeds) {
    if (position === void 0) continue;
    channels.set(name, position);
    used.set(name, now2);
  }
  return {
    ...saved,
    inbox: inbox.position,
    all: all.position,
    channels: Object.fromEntries(channels),
    used: Object.fromEntries(used)
  };
}

// src/storage.ts
var writeDelay = 100;
var readTimeout = 1e4;
var Store = class {
  constructor(_storage, _key, _snapshot, _failed) {
    this._storage = _storage;
    this._key = _key;
    this._snapshot = _snapshot;
    this._failed = _failed;
  }
  async _load() {
    const s = this._storage;
    if (!s) return {};
    let text;
    try {
      text = await within(
        readTimeout,
        "getItem" in s ? s.getItem(this._key) : s.get(this._key),
        "answer of the storage"
      );
    } catch (error) {
      this._storage = void 0;
      this._failed(error);
    }
    try {
      return JSON.parse(text ?? "{}") ?? {};
    } catch (error) {
      this._failed(error);
      return {};
    }
  }
  /** Notes that there is something to write. */
  _changed() {
    if (this._storage) this._timer ??= setTimeout(() => void this._flush(), writeDelay);
  }
  /** Writes at once what waits. */
  async _flush() {
    const s = this._storage;
    if (!s || this._timer === void 0) return;
    clearTimeout(this._timer);
    this._timer = void 0;
    try {
      const text = JSON.stringify(this._snapshot());
      await ("setItem" in s ? s.setItem(this._key, text) : s.set(this._key, text));
    } catch (error) {
      this._failed(error);
    }
  }
};

// src/token.ts
var maxDelay = 2 ** 31 - 1;
var tokenText = /^[\w.~+/-]*=*$/;
var Tokens = class {
  /** `_timeout` is the longest wait for the token function in ms; 0 for no limit. */
  constructor(_source, _timeout) {
    this._source = _source;
    this._timeout = _timeout;
    this._used = false;
    // a connection was made with it
    this._renewAt = Infinity;
    if (_source != null && typeof _source !== "string" && typeof _source !== "function")
      throw new TypeError("token: no text and no function");
  }
  /** The current token. */
  get _current() {
    return this._value ?? (typeof this._source === "function" ? void 0 : this._source);
  }
  /** Asks for a token if there is none that can be used. It rejects with the code `token`. */
  async _ensure() {
    if (typeof this._source === "function" && (this._value === void 0 || Date.now() >= this._renewAt))
      await this._fetch();
  }
  /** Asks the token function. */
  async _fetch() {
    try {
      const value = await within(this._timeout, this._source(), "token");
      this._set(value);
    } catch (error) {
      throw new SwitchboardError("token", "the token function failed", {}, error);
    }
    return this._value;
  }
  _set(value) {
    if (typeof value !== "string" || !tokenText.test(value)) {
      throw new SwitchboardError("bad_request", "refresh: this is no token");
    }
    this._value = value;
    this._used = false;
    const { exp = NaN, iat = NaN } = claimsOf(value);
    const left = exp - Date.now() / 1e3;
    const life = exp - iat;
    const seconds = left > 0 && !(left > life) ? left : life > 0 ? life : left;
    this._renewAt = seconds > 0 ? Date.now() + seconds * 800 : Infinity;
  }
  _accepted() {
    this._used = true;
  }
  /** The time in ms until the token should be renewed; undefined if it cannot be. */
  get _renewIn() {
    if (typeof this._source !== "function" || this._renewAt === Infinity) return void 0;
    return Math.min(maxDelay, Math.max(1e3, this._renewAt - Date.now()));
  }
  /** Discards a token that the broker does not accept. Returns whether there may be another one. */
  _refused(expired) {
    const again = typeof this._source === "function" && (expired || this._used);
    if (again) this._value = void 0;
    return again;
  }
  /** Reports whether the token is for one client only. */
  get _namesClient() {
    return claimsOf(this._current).client !== void 0;
  }
};
function claimsOf(token) {
  try {
    const part3 = String(token).split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(atob(part3));
  } catch {
    return {};
  }
}

// src/user.ts
var User = class extends Emitter {
  /** @internal */
  constructor(name, sb) {
    super((error, event) => sb._report(error, event, name));
    this.name = name;
    this._channel = sb.channel(`$user:${name}`);
    let joined = false;
    this._channel._onPresence = (m) => {
      joined = m.type === "join";
      this._set(joined);
    };
    this._channel.on("subscribed", () => {
      joined = false;
      sb._call({ type: "ping" }).then(
        () => this._set(joined),
        () => {
        }
      );
    });
    this._channel.on("unsubscribed", (error) => {
      this.online = void 0;
      sb._warn(error.code, `whether ${name} is online is not known: ${error.message}`, this._has("unsubscribed"));
      this._emit("unsubscribed", error);
    });
  }
  /** @internal Subscribes again, after `unsubscribe` or a refusal. */
  _subscribe() {
    this._channel._configure({});
  }
  /** Ends the subscription. */
  unsubscribe() {
    this.online = void 0;
    return this._channel.unsubscribe();
  }
  _set(online) {
    if (this.online === online) return;
    this.online = online;
    this._emit(online ? "online" : "offline");
  }
};

// src/switchboard.ts
var sameInstance = ["expired", "unauthorized", "slow", "idle"];
var asked = ["token", "disconnected"];
var maxWaiting2 = 1e4;
var Switchboard = class extends Emitter {
  constructor(urls, options = {}) {
    super((error, event) => this._report(error, event));
    /** "idle" before `connect`, "waiting" between two attempts. */
    this.phase = "idle";
    /** Messages to this device. */
    this.inbox = new Inbox("", this);
    /** Messages to all clients. */
    this.all = new Feed("$all", this);
    /** @internal */
    this._calls = new Calls();
    this._channels = /* @__PURE__ */ new Map();
    this._users = /* @__PURE__ */ new Map();
    // of the token function, and of handlers that are too slow
    this._instance = randomText();
    this._attempt = 0;
    // of attempts before the first connection, until they are reported
    this._warned = /* @__PURE__ */ new Set();
    this._tokenIgnored = false;
    this._unlisten = [];
    this._socketClass = () => {
      const found = this._o.WebSocket ?? globalThis.WebSocket;
      if (typeof found === "function") return found;
      throw new TypeError("there is no WebSocket: give the class of the package ws as the option WebSocket");
    };
    const list = urlsOf(urls, "ws");
    this._o = options;
    this._info = options.info === void 0 ? void 0 : JSON.parse(jsonOf(options.info, "info"));
    this._failures = list.length;
    const { connectTimeout = 1e4, pingAfter = 1e4, pingTimeout = 5e3 } = options;
    this._dialer = new Dialer(list, this._socketClass, { connectTimeout, pingAfter, pingTimeout }, this);
    this._tokens = new Tokens(options.token, options.tokenTimeout ?? 3e4);
    this._backoff = this._newBackoff();
    this._store = new Store(
      options.storage,
      options.storageKey ?? "switchboard",
      () => snapshot(this._saved, this.inbox, this.all, this._channels.values()),
      (e) => this._report(e, "storage")
    );
    if (options.autoConnect === false) return;
    this._socketClass();
    queueMicrotask(() => this.phase === "idle" && this.connect());
  }
  /** Connects, unless `autoConnect` has done so. */
  connect() {
    if (this.phase !== "idle") return;
    this._socketClass();
    this.phase = "connecting";
    this._unlisten = listen(
      this._o.appState,
      () => this.wake(),
      () => void this._store._flush()
    );
    void this._store._load().then((saved) => {
      this._saved = saved;
      this.inbox._start(saved.inbox);
      this.all._start(saved.all);
      if (this.phase !== "closed") this._dialer._next();
    });
  }
  /** Acknowledges what is handled, and ends the connection for good. */
  async close() {
    this._stop("closed", "the Switchboard was closed");
    await this._store._flush();
  }
  /**
   * Connects now instead of after the backoff, or verifies the connection. In a browser this
   * happens when the page becomes visible or the network returns, and with the option `appState`
   * when an application becomes active. Call it elsewhere. A delay that the broker has asked for
   * stays.
   */
  wake() {
    if (this._isConnected) this._dialer._connection._check();
    else if (this._saved && this.phase !== "closed") this._dialer._wake();
  }
  /**
   * A channel, subscribed at once unless `subscribe` is false. The same name is the same channel.
   */
  channel(name, options = {}) {
    if (!name || typeof name !== "string") throw new TypeError(`channel: ${name} is no name`);
    let channel = this._channels.get(name);
    if (!channel) this._channels.set(name, channel = new Channel(name, this));
    channel._configure(options);
    return channel;
  }
  /** Whether a user is online. */
  user(name) {
    let user = this._users.get(name);
    if (!user) this._users.set(name, user = new User(name, this));
    else user._subscribe();
    return user;
  }
  /** Asks your backend, and returns its answer. */
  async request(data, options = {}) {
    return (await this._call({ type: "request", data }, options.timeout)).data;
  }
  /** Calls a method of the broker, and returns its answer. */
  async call(method, data, options = {}) {
    return (await this._call({ type: "request", method, data }, options.timeout)).data;
  }
  /** Replaces the token, of this connection and of later ones. */
  async refresh(token) {
    if (this._isConnected) await this._call({ type: "refresh", token });
    this._tokens._set(token);
    this._tokens._accepted();
    this._scheduleRenewal(this._tokens._renewIn);
  }
  // What follows is for the other classes.
  /** @internal */
  get _isConnected() {
    return this.phase === "connected";
  }
  /** @internal */
  _newBackoff(urls = 1) {
    const { backoffMin = 200, backoffMax = 2e4 } = this._o;
    return new Backoff(backoffMin, backoffMax, 4 * backoffMin * (2 * urls - 1));
  }
  /** @internal */
  get _timeout() {
    return this._o.timeout ?? 3e4;
  }
  /** @internal */
  async _call(message, timeout = this._timeout) {
    try {
      return await new Promise((resolve, reject) => this._calls._submit(message, timeout, resolve, reject));
    } catch (error) {
      Error.captureStackTrace?.(error);
      throw error;
    }
  }
  /** @internal Sends a message that has no answer. */
  _send(text, weight = 0) {
    if (!this._isConnected) return;
    this._calls._count(weight, text.length);
    this._dialer._connection._sendText(text);
  }
  /** @internal A message of the inbox whose handler has failed is acknowledged. */
  get _acksFailures() {
    return this._o.ack === "auto";
  }
  /** @internal */
  _savedPosition(channel) {
    const position = this._saved?.channels?.[channel];
    return typeof position === "number" ? position : void 0;
  }
  /** @internal */
  _forgetPosition(channel) {
    delete this._saved?.channels?.[channel];
    if (this._saved) this._store._changed();
  }
  /** @internal */
  _log(level, text) {
    try {
      this._o.logger?.[level]?.(`switchboard: ${text}`);
    } catch (error) {
      console.error(error);
    }
  }
  /** @internal Reports something, on the console if the application does not handle it, once. */
  _warn(code, text, handled) {
    if (remedies[code]) text += `. ${remedies[code]}`;
    this._log("warn", text);
    if (handled || this._o.logger || this._warned.has(text)) return;
    this._warned.add(text);
    console.warn(`switchboard: ${text}`);
  }
  /** @internal An error for which no call waits, such as that of a handler. */
  _report(error, event, channel) {
    if (event !== "error" && this._has("error")) this._emit("error", error, { event, channel });
    else if (event === "token") {
      const { cause } = error;
      this._warn(event, `${error}: ${cause}`, cause instanceof SignedOutError);
    } else if (typeof reportError === "function") reportError(error);
    else console.error(error);
  }
  /**
   * @internal Ends the connection until the handlers of a channel have caught up. The broker keeps
   * the rest.
   */
  _waits(length) {
    if (length > maxWaiting2 && this._isConnected) {
      this._ended({ code: "lost", message: "the handlers are too slow", reconnect: true, afterMs: 0 });
    }
  }
  /** @internal */
  async _prepare() {
    if ([this.all, ...this._channels.values()].some(({ _queue }) => _queue._length > maxWaiting2 / 2)) {
      return this._backoff._next();
    }
    this.phase = "connecting";
    try {
      await this._tokens._ensure();
      this._backoff._forget();
      return 0;
    } catch (error) {
      if (this.phase === "closed") return 0;
      this._report(error, "token");
      const { message, cause } = error;
      const retryIn = this._backoff._next();
      this.phase = "waiting";
      if (cause instanceof SignedOutError) this._stop("token", String(cause));
      else this._emit("disconnected", { code: "token", message, retryIn });
      return retryIn;
    }
  }
  /** @internal */
  _hello() {
    const { client = "auto", user } = this._o;
    const token = this._tokens._current;
    const saved = this._saved;
    if (saved.asked !== client) this._saved = { ...saved, asked: client, name: void 0, secret: void 0 };
    let name = this._saved.name;
    if (client !== "auto") name ??= client.slice(client.lastIndexOf("/") + 1);
    else if (this._tokens._namesClient) name = void 0;
    else name ??= this._saved.name = `c-${randomText()}`;
    const anonymous = token === void 0 && user === void 0;
    if (anonymous && canDrawSecrets()) this._saved.secret ??= randomText();
    return {
      type: "connect",
      ref: this._calls._nextRef(),
      token,
      user,
      info: this._info,
      client: name,
      secret: anonymous ? this._saved.secret : void 0,
      after: this.all._received,
      instance: this._instance,
      attempt: ++this._attempt
    };
  }
  /** @internal */
  _receive(m, size, url) {
    if (m.type === "connected") return this._connected(m, url);
    if (m.ref !== void 0) return this._calls._answer(m, size);
    const { type, channel } = m;
    if (type === "state") this._calls._count(size / 1024, 0);
    const feed = channel === void 0 ? this.inbox : channel === this.all.name ? this.all : void 0;
    if (type === "subscribed") this.channel(channel, { subscribe: false })._adopt(m);
    else if (!feed) this._channels.get(channel)?._receive(m);
    else if (type === "message") feed._message(m);
    else if (type === "gap") feed._gap(m.after, m.id);
    else if (type === "error") this._log("info", `refused: ${m.code} ${m.message}`);
  }
  _connected(m, url) {
    const saved = this._saved;
    const client = this.client = m.client;
    if (saved.client !== void 0 && saved.client !== client) this.inbox._changed();
    saved.client = client;
    saved.name = client.slice(client.lastIndexOf("/") + 1);
    saved.secret = m.secret ?? saved.secret;
    this._store._changed();
    this.phase = "connected";
    this._failures = 0;
    this._dialer._accepted();
    this._tokens._accepted();
    this._scheduleRenewal(this._tokens._renewIn);
    this.all._answered(this.all._received, m);
    this.inbox._ack();
    this._log("info", `connected to ${url} as ${client}`);
    if (m.token_ignored && !this._tokenIgnored) {
      this._tokenIgnored = true;
      this._warn("ignored", "the broker has ignored the token", false);
    }
    this._calls._connected(
      m.limits,
      (text) => this._dialer._connection?._sendText(text),
      () => {
        for (const channel of this._channels.values()) channel._connected();
      }
    );
    this._emit("connected", { url, client, user: m.user, server: m.server, queued: m.queued ?? 0 });
  }
  /** @internal */
  _ended(end) {
    this._disconnect();
    const { code, message, afterMs } = end;
    let { reconnect } = end;
    if (code === "expired" || code === "unauthorized") reconnect = this._tokens._refused(code === "expired");
    if (code === "superseded" && (this._o.client ?? "auto") === "auto" && !this._tokens._namesClient) {
      this._saved.name = void 0;
      reconnect = true;
    }
    if (!reconnect) return this._stop(code, message);
    const retryIn = this._dialer._again(afterMs, sameInstance.includes(code));
    if (!retryIn) this.phase = "connecting";
    if (--this._failures === 0) {
      this._warn("lost", `cannot connect: ${message}`, this._has("disconnected"));
    }
    this._log("warn", `${code}: ${message}; next attempt in ${Math.round(retryIn)} ms`);
    this._emit("disconnected", { code, message, retryIn });
  }
  _disconnect() {
    if (this.phase !== "closed") this.phase = "waiting";
    clearTimeout(this._renewTimer);
    this._calls._lost();
    for (const channel of this._channels.values()) channel._lost();
  }
  _stop(code, message) {
    if (this.phase === "closed") return;
    this.inbox._stop();
    this.phase = "closed";
    this._dialer._stop();
    this._disconnect();
    const error = this._closed = new SwitchboardError("closed", `closed: ${message}`);
    this._calls._stop(error);
    for (const channel of this._channels.values()) channel._end(error, false);
    for (const remove of this._unlisten.splice(0)) remove();
    if (code === "closed") this._log("info", message);
    else this._warn(code, `closed, ${code}: ${message}`, this._has("closed") || asked.includes(code));
    this._emit("closed", { code, message });
  }
  _scheduleRenewal(delay) {
    clearTimeout(this._renewTimer);
    if (delay !== void 0) this._renewTimer = setTimeout(() => void this._renew(), delay);
  }
  /** Renews the token before it expires. If that fails, the connection stays until it does. */
  async _renew() {
    const attempt = this._attempt;
    try {
      await this.refresh(await this._tokens._fetch());
    } catch (error) {
      if (attempt !== this._attempt || !this._isConnected) return;
      this._report(error, "token");
      this._scheduleRenewal(1e3 + 29e3 * Math.random());
    }
  }
};
export {
  SignedOutError,
  Switchboard,
  SwitchboardError
};
//# sourceMappingURL=index.js.map
