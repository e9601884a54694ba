// A client of Server-Sent Events, for the EventSource of a browser and for the package eventsource.

/** Reports every event of a stream: its name, its data and whether EventSource has given up. */
export function follow(EventSource, client, url, report) {
  const source = new EventSource(url);
  const reportEvent = (e) => report({ client, event: e.type, data: JSON.parse(e.data) });
  for (const type of ["message", "connected", "subscribed", "gap", "refused", "closing"]) {
    source.addEventListener(type, reportEvent);
  }
  source.onerror = () => report({ client, event: source.readyState === EventSource.CLOSED ? "ended" : "reconnecting" });
}
