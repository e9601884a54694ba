import { useState } from "preact/hooks";
import { get, path, post } from "../api";
import { useAction, useLoad } from "../hooks";
import { Badge, Card, Code, Page, Problem } from "../parts/ui";
import { link } from "../router";
import { useSession } from "../session";
import type { Channel, PushResult } from "../types";

const channel = "hello";

/** Start leads to the first push: connect a client, push to it, see it arrive. */
export function Start() {
  const { self, may } = useSession();
  const [language, setLanguage] = useState<"curl" | "js">("curl");
  const push = useAction<PushResult>();
  const subscribers = useSubscribers();
  const { origin } = location;
  const socket = origin.replace(/^http/, "ws") + "/ws";
  const key = self.open ? "" : ' \\\n  -H "Authorization: Bearer $SWITCHBOARD_KEY"';
  const authorization = self.open ? "" : "\n    Authorization: `Bearer ${process.env.SWITCHBOARD_KEY}`,";
  const token = self.tokens ? `, token: "…"` : `, user: "alice"`;
  const client = `const ws = new WebSocket("${socket}");
ws.onmessage = (e) => console.log(e.data);
ws.onopen = () => {
  ws.send(JSON.stringify({ type: "connect", client: "tab-1"${token} }));
  ws.send(JSON.stringify({ type: "subscribe", channel: "${channel}" }));
};`;
  const backend = {
    curl: `curl ${origin}/v1/push${key} \\\n  -d '{"channel": "${channel}", "data": {"text": "hi"}}'`,
    js: `await fetch("${origin}/v1/push", {
  method: "POST",
  headers: {
    "Content-Type": "application/json",${authorization}
  },
  body: JSON.stringify({ channel: "${channel}", data: { text: "hi" } }),
});`,
  };
  const pushNow = () =>
    push.run(() => post<PushResult>("/v1/push", { channel, data: { text: "hi from the console" } }));
  return (
    <Page
      title="First push"
      about={
        <>
          This broker is at <code>{origin}</code>. Three steps, two minutes.
        </>
      }
    >
      <ol class="steps">
        <li>
          <Card title="Connect a client">
            <p>
              Paste this into the developer tools of a browser, for instance of this page. It subscribes to the channel{" "}
              <code>{channel}</code>.
            </p>
            {self.tokens && (
              <p>
                This broker verifies tokens: put one of your login service into <code>token</code>.{" "}
                <a href={link("access")}>Check what a token may do</a>.
              </p>
            )}
            <Code label="A client in a browser" text={client} />
            {subscribers !== undefined && (
              <p role="status">
                {subscribers > 0 ? (
                  <>
                    <Badge tone="good">connected</Badge> {subscribers} subscribed to {channel}.
                  </>
                ) : (
                  <>
                    <Badge>waiting</Badge> No client has subscribed to {channel} yet.
                  </>
                )}
              </p>
            )}
          </Card>
        </li>
        <li>
          <Card
            title="Push from your backend"
            actions={
              <div class="switch" role="group" aria-label="Language">
                <button
                  type="button"
                  class="button quiet"
                  aria-pressed={language === "curl"}
                  onClick={() => setLanguage("curl")}
                >
                  curl
                </button>
                <button
                  type="button"
                  class="button quiet"
                  aria-pressed={language === "js"}
                  onClick={() => setLanguage("js")}
                >
                  JavaScript
                </button>
              </div>
            }
          >
            {!self.open && (
              <p>
                Put an API key with the scope <code>push</code> into <code>SWITCHBOARD_KEY</code>. Keep it on your
                servers: pages never need one.
              </p>
            )}
            <Code label="A push" text={backend[language]} />
            {may("push") && (
              <div class="form-end">
                <button type="button" class="button primary" disabled={push.busy} onClick={pushNow}>
                  Push it from here
                </button>
                <span role="status" class="soft">
                  {push.result && "Accepted and stored. The client has it now."}
                </span>
              </div>
            )}
            <Problem error={push.error} />
          </Card>
        </li>
        <li>
          <Card title="Look at it">
            <p>
              {may("read") ? <a href={link("channels", channel)}>The page of {channel}</a> : `The page of ${channel}`}{" "}
              shows the message, and each new one as it arrives. A client that was away sends <code>after</code> with
              the last id that it has, and receives what it missed.
            </p>
          </Card>
        </li>
      </ol>
    </Page>
  );
}

/**
 * useSubscribers returns the number of subscribers of the channel, or undefined for a key that may
 * not read it.
 */
function useSubscribers(): number | undefined {
  const { may } = useSession();
  const reads = may("read");
  const { data } = useLoad(
    (signal) => (reads ? get<Channel>(path("channels", channel), { signal }) : Promise.resolve(undefined)),
    [],
    2000,
  );
  return data?.subscribers;
}
