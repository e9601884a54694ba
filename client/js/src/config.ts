/**
 * urlsOf returns the URLs that an application has given, with a scheme. A URL for WebSockets
 * without a path gets the one of the broker. It throws if a URL cannot be right.
 */
export function urlsOf(urls: unknown, scheme: "ws" | "http"): string[] {
  const list = [urls].flat().map(String);
  return [...new Set(list.length ? list : [""])].map((url) => {
    const [, host, path = ""] = /^(?:ws|http)(s?:\/\/[^/?#\s]+)([^#\s]*)$/i.exec(url) ?? [];
    if (!host) throw new TypeError(`"${url}" is no URL of a broker, such as wss://push.example.com`);
    return scheme + host + (scheme === "ws" ? path.replace(/^\/?(?=\?|$)/, "/ws") : path.replace(/\/+$/, ""));
  });
}
