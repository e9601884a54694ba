/** The part of the AppState of React Native that this library uses. */
export interface AppState {
  addEventListener(type: "change", handler: (state: string) => void): { remove(): void };
}

/**
 * listen calls `wake` when a page becomes visible, an application becomes active, or the network
 * returns, and `leave` when it may end soon. Returns functions that remove the handlers.
 */
export function listen(appState: AppState | undefined, wake: () => void, leave: () => void): (() => void)[] {
  const removers: (() => void)[] = [];
  const on = (target: EventTarget | undefined, event: string, handler: () => void) => {
    if (typeof target?.addEventListener !== "function") return;
    target.addEventListener(event, handler);
    removers.push(() => target.removeEventListener(event, handler));
  };
  const page = typeof document === "undefined" ? undefined : document;
  on(page && globalThis, "online", wake);
  on(page && globalThis, "pagehide", leave);
  on(page, "visibilitychange", () => (page!.visibilityState === "visible" ? wake() : leave()));
  const application = appState?.addEventListener("change", (state) => (state === "active" ? wake() : leave()));
  if (application) removers.push(() => application.remove());
  return removers;
}
