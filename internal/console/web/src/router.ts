// The page is the part of the address after #/. A name in it is escaped like a segment of a path.
import { useEffect, useState } from "preact/hooks";

/** link returns the address of a page, as #/channels/chat%3A42. */
export const link = (...segments: string[]) => "#/" + segments.map(encodeURIComponent).join("/");

/** segments returns the unescaped parts of the current address. */
function segments(): string[] {
  return location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .map((part) => {
      try {
        return decodeURIComponent(part);
      } catch {
        return part; // typed by hand
      }
    });
}

export function useRoute(): string[] {
  const [route, setRoute] = useState(segments);
  useEffect(() => {
    const follow = () => setRoute(segments());
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return route;
}

export const go = (...parts: string[]) => {
  location.hash = link(...parts);
};
