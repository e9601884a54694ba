type Handler = ((...args: never[]) => unknown) & {
  /** The handler that was given to `once`. */
  _of?: unknown;
};

/** The arguments of an event. */
type Args<Events, K extends keyof Events> = Events[K] extends unknown[] ? Events[K] : never;

/**
 * Typed events. A handler that throws, or whose promise rejects, disturbs neither other handlers
 * nor the caller.
 */
export class Emitter<Events extends object> {
  /** @internal */
  readonly _handlers = new Map<keyof Events, Set<Handler>>();

  /** @internal `_failed` receives the errors of handlers. */
  constructor(/** @internal */ readonly _failed: (error: unknown, event: string) => void) {}

  /** Adds a handler. Returns a function that removes it. */
  on<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): () => void {
    let set = this._handlers.get(event);
    if (!set) this._handlers.set(event, (set = new Set()));
    set.add(handler as Handler);
    this._added(event);
    return () => this.off(event, handler);
  }

  /** Adds a handler that is called once. */
  once<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): () => void {
    const wrapped = (...args: Args<Events, K>) => {
      off();
      return handler(...args);
    };
    (wrapped as Handler)._of = handler;
    const off = this.on(event, wrapped);
    return off;
  }

  /** Removes a handler. */
  off<K extends keyof Events>(event: K, handler: (...args: Args<Events, K>) => unknown): void {
    const set = this._handlers.get(event);
    for (const h of set ?? []) if (h === handler || h._of === handler) set!.delete(h);
  }

  /** @internal */
  _has(event: keyof Events): boolean {
    return !!this._handlers.get(event)?.size;
  }

  /** @internal Is called after a handler was added. */
  _added(_event: keyof Events): void {}

  /** @internal Calls the handlers. Returns a promise if one of them did; it never rejects. */
  _emit<K extends keyof Events>(event: K, ...args: Args<Events, K>): Promise<unknown> | undefined {
    let pending: Promise<unknown> | undefined;
    for (const handler of [...(this._handlers.get(event) ?? [])]) {
      const result = this._run(event, handler, args);
      if (result) pending = pending ? Promise.all([pending, result]) : result;
    }
    return pending;
  }

  /**
   * @internal Calls one handler. The promise is that of the handler and resolves to whether it
   * succeeded.
   */
  _run(event: keyof Events, handler: Handler, args: unknown[], done?: () => void): Promise<unknown> | undefined {
    const failed = (error: unknown) => this._failed(error, event as string);
    try {
      const result = handler(...(args as never[]));
      if (result && typeof (result as Promise<unknown>).then === "function") {
        return Promise.resolve(result as Promise<unknown>).then(done, failed);
      }
      done?.();
    } catch (error) {
      failed(error);
    }
    return;
  }
}

/** Queue runs tasks one after another. A task that returns a promise delays the next one. */
export class Queue {
  private readonly _tasks: (() => Promise<unknown> | void)[] = [];
  private _busy = false;

  /** The number of tasks that wait or run. */
  get _length(): number {
    return this._tasks.length + Number(this._busy);
  }

  _push(task: () => Promise<unknown> | void): void {
    this._tasks.push(task);
    this._next();
  }

  private _next(): void {
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
}
