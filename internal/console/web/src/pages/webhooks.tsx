import { useState } from "preact/hooks";
import { del, get, post, query } from "../api";
import { count, json, plural } from "../format";
import { useAction, useLoad } from "../hooks";
import { Entry } from "../parts/messages";
import { Ago, Badge, Card, Code, Confirm, Empty, Facts, Loading, Page, Problem, When } from "../parts/ui";
import { useSession } from "../session";
import type { DeadLetter, DeadLetters, Webhooks } from "../types";

const step = 50;

const settings = `export SWITCHBOARD_WEBHOOKS_URL=https://backend.example.com/switchboard
export SWITCHBOARD_WEBHOOKS_SECRETS=$(openssl rand -hex 32)`;

const reasons = new Map([
  ["expired", "Your backend did not accept it within webhooks.max_age."],
  ["refused", "Your backend refused it."],
  ["gone", "Your backend answered 410."],
  ["full", "Too many events were waiting."],
]);

export function WebhooksPage() {
  const { self } = useSession();
  return self.webhooks ? (
    <Configured />
  ) : (
    <Page title="Webhooks">
      <Card>
        <Empty title="This broker sends no webhooks.">
          <p>
            Your backend can learn who comes online, which channels are in use, and which messages no device
            acknowledged. Give brokers and janitors:
          </p>
          <Code label="Settings of webhooks" text={settings} />
        </Empty>
      </Card>
    </Page>
  );
}

/** loadLetters reads pages of the dead letters until there are `most` of them. */
async function loadLetters(most: number, signal: AbortSignal): Promise<DeadLetters> {
  const all: DeadLetters = { letters: [] };
  do {
    const page: DeadLetters = await get<DeadLetters>("/v1/webhooks/dead" + query({ limit: step, cursor: all.cursor }), {
      signal,
      exact: true,
    });
    all.letters.push(...page.letters);
    if (page.cursor) all.cursor = page.cursor;
    else delete all.cursor;
  } while (all.cursor && all.letters.length < most);
  return all;
}

function Configured() {
  const { may } = useSession();
  const [most, setMost] = useState(step);
  const state = useLoad((signal) => get<Webhooks>("/v1/webhooks", { signal }), [], 3000);
  const dead = useLoad((signal) => loadLetters(most, signal), [most], 5000);
  const retry = useAction<{ retried: number }>();
  const reload = () => {
    state.reload();
    dead.reload();
  };
  const retryAll = async () => {
    await retry.run(() => post("/v1/webhooks/dead/retry"));
    reload();
  };
  const { data } = state;
  return (
    <Page
      title="Webhooks"
      about={data && <Verdict webhooks={data} />}
      actions={
        may("admin") &&
        !!data?.dead && (
          <Confirm
            label="Retry dead letters"
            harmless
            busy={retry.busy}
            onConfirm={retryAll}
            question={`All ${plural(data.dead, "dead letter")} are sent again, under their old ids, after the events that wait.`}
          />
        )
      }
    >
      <Problem error={state.error ?? dead.error ?? retry.error} retry={reload} />
      <p role="status" class="soft">
        {retry.result && `${plural(retry.result.retried, "event waits", "events wait")} again.`}
      </p>
      {!data && !state.error && <Loading />}
      {data && (
        <Facts
          items={[
            ["Waiting", count(data.waiting)],
            ["Oldest waits since", data.oldest ? <Ago at={data.oldest} /> : "–"],
            ["Dead letters", count(data.dead)],
            ["Dropped", count(data.dropped)],
            ["Failed attempts", count(data.attempts)],
            ["Next attempt", data.retry_at ? <When at={data.retry_at} /> : "–"],
            ["Last answer", data.last ? <LastAnswer last={data.last} /> : "–"],
          ]}
        />
      )}
      {data?.endpoints.map((e) => (
        <Card key={e.url} title="Your backend">
          <p class="mono">{e.url}</p>
          <ul class="tags">
            {e.events.map((name) => (
              <li key={name}>
                <span>{name}</span>
              </li>
            ))}
          </ul>
        </Card>
      ))}
      <Card title="Dead letters" flush>
        {dead.data?.letters.length === 0 && (
          <Empty title="No event is dead.">
            An event comes here if your backend refuses it, or does not accept it for a day.
          </Empty>
        )}
        <div class="tail">
          {dead.data?.letters.map((l) => (
            <Letter key={l.id} letter={l} changed={reload} />
          ))}
        </div>
        {dead.data?.cursor && (
          <div class="card-foot">
            <span>The first {count(dead.data.letters.length)}</span>
            <button type="button" class="button" onClick={() => setMost(most * 4)}>
              Show more
            </button>
          </div>
        )}
      </Card>
    </Page>
  );
}

function Verdict({ webhooks: { waiting, dead, oldest, attempts } }: { webhooks: Webhooks }) {
  if (attempts > 0)
    return (
      <>
        <Badge tone="bad">attention</Badge> Your backend does not accept events
      </>
    );
  if (dead > 0)
    return (
      <>
        <Badge tone="bad">attention</Badge> {plural(dead, "event")} could not be delivered
      </>
    );
  if (waiting > 0 && oldest && Date.now() - oldest > 60_000)
    return (
      <>
        <Badge tone="warn">slow</Badge> Your backend does not accept events as fast as they happen
      </>
    );
  return (
    <>
      <Badge tone="good">healthy</Badge> Your backend accepts the events
    </>
  );
}

/** LastAnswer shows what the backend answered to the last attempt. */
function LastAnswer({ last }: { last: NonNullable<Webhooks["last"]> }) {
  return (
    <>
      {last.status ?? last.error ?? "none"} <Ago at={last.at} />
    </>
  );
}

function Letter({ letter: { id, reason, at, event }, changed }: { letter: DeadLetter; changed: () => void }) {
  const { may } = useSession();
  const action = useAction<unknown>();
  const run = async (call: () => Promise<unknown>) => {
    await action.run(call);
    changed();
  };
  const path = "/v1/webhooks/dead/" + encodeURIComponent(id ?? "");
  return (
    <Entry at={at} badge={<Badge tone="bad">{reason}</Badge>} summary={`${event.type} ${subjectOf(event)}`}>
      {() => (
        <>
          <p class="soft">
            {reasons.get(reason) ?? reason} <span class="mono">{id}</span>
          </p>
          <pre class="mono" tabIndex={0}>
            {json(event, 2)}
          </pre>
          <Problem error={action.error} />
          {may("admin") && id && (
            <div class="actions">
              <button
                type="button"
                class="button"
                disabled={action.busy}
                onClick={() => void run(() => post(path + "/retry"))}
              >
                Send again
              </button>
              <Confirm
                label="Drop"
                busy={action.busy}
                onConfirm={() => void run(() => del(path))}
                question="Your backend never receives this event."
              />
            </div>
          )}
        </>
      )}
    </Entry>
  );
}

/** subjectOf returns whom or what an event is about. */
const subjectOf = (event: DeadLetter["event"]) =>
  ["user", "channel", "room", "resource"].map((name) => event[name]).find((v) => typeof v === "string") ?? "";
