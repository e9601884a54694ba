// What the native part of React Native installs in Hermes before the bundle runs: timers, and
// native modules. They exchange messages with host.js. The bundle has React Native's own WebSocket,
// fetch, URL, AppState and so on. As there, document, crypto and structuredClone are missing.
(function (global) {
  const toHost = (message) => print("\u001e" + JSON.stringify(message)); // print is of the program hermes
  const timers = new Map();
  const microtasks = [];
  let lastTimer = 0;

  const timer =
    (repeat) =>
    (run, delay, ...args) => {
      timers.set(++lastTimer, { run, args, repeat });
      toHost({ timer: lastTimer, delay: Number(delay) || 0, repeat });
      return lastTimer;
    };
  const clear = (id) => timers.delete(id) && toHost({ clear: id });

  const events = { addListener() {}, removeListeners() {} };
  global.nativeModuleProxy = {
    PlatformConstants: { getConstants: () => ({ reactNativeVersion: { major: 0, minor: 88, patch: 1 } }) },
    NativeMicrotasksCxx: { queueMicrotask: (run) => microtasks.push(run) },
    WebSocketModule: {
      ...events,
      connect: (url, _protocols, _options, socket) => toHost({ connect: url, socket }),
      send: (send, socket) => toHost({ send, socket }),
      close: (close, _reason, socket) => toHost({ close, socket }),
    },
    Networking: {
      ...events,
      sendRequest: (method, url, request, headers, body) =>
        toHost({ request, method, url, headers, body: body.string }),
      abortRequest: (abort) => toHost({ abort }),
    },
    BlobModule: { getConstants: () => ({}), addNetworkingHandler() {}, createFromParts() {}, release() {} },
    FileReaderModule: { readAsText: (blob) => Promise.resolve(blob.blobId) }, // host.js uses the text as the id
    AppState: {
      ...events,
      getConstants: () => ({ initialAppState: "active" }),
      getCurrentAppState: (then) => then({ app_state: "active" }),
    },
  };
  Object.assign(global, {
    global,
    RN$Bridgeless: true,
    nativeLoggingHook: (log) => toHost({ log }),
    setTimeout: timer(false),
    setInterval: timer(true),
    clearTimeout: clear,
    clearInterval: clear,
    requestAnimationFrame: (run) => global.setTimeout(run, 16),
    cancelAnimationFrame: clear,
    performance: { now: () => Date.now() },
    atob, // Hermes has it since React Native 0.74
    toHost,

    /** Is called by host.js. A timer runs, or a native module emits an event. */
    fromHost(event, data) {
      const due = event === "timer" ? timers.get(data) : undefined;
      if (due && !due.repeat) timers.delete(data);
      if (due) due.run(...due.args);
      else if (event !== "timer") global.__rctDeviceEventEmitter.emit(event, data);
      for (let run; (run = microtasks.shift());) run();
    },
  });
  delete global.setImmediate;

  function atob(text) {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits = 0;
    let size = 0;
    let decoded = "";
    for (const char of text.replace(/=+$/, "")) {
      bits = (bits << 6) | alphabet.indexOf(char);
      size += 6;
      if (size >= 8) decoded += String.fromCharCode((bits >> (size -= 8)) & 255);
    }
    return decoded;
  }
})(globalThis);
