import { Chart } from "../parts/chart";
import { get } from "../api";
import { Badge, Card, Empty, Facts, Loading, Page, Problem, Table, When } from "../parts/ui";
import { bytes, compact, count, duration, latency, moment, plural, rate } from "../format";
import { useLoad, useNow } from "../hooks";
import { link } from "../router";
import { type Seen, useSamples } from "../samples";
import { useSession } from "../session";
import type { HealthReport } from "../types";

const late = 6000; // ms without a heartbeat that are worth a warning; they come every 2 s

/** Overview shows the instances, and graphs of what they do. */
export function Overview() {
  const { series, servers, error, skew, ready } = useSamples();
  const health = useLoad((signal) => get<HealthReport>("/v1/health", { signal }), [], 5000);
  const now = useNow() + skew;
  const alive = servers.filter((s) => s.alive);
  const sum = (of: (s: Seen) => number | undefined) => alive.reduce((n, s) => n + (of(s) ?? 0), 0);
  const connections = sum((s) => s.stats?.connections ?? s.connections);
  return (
    <Page title="Overview" about={health.data && <Verdict report={health.data} />}>
      <Problem error={error ?? health.error} />
      {health.data && <Findings report={health.data} />}
      {!ready && !error && <Loading />}
      {ready && (
        <>
          {connections === 0 && (
            <Card>
              <Empty title="No client is connected.">
                <a class="button primary" href={link("start")}>
                  Connect one and push to it
                </a>
              </Empty>
            </Card>
          )}
          <div class="grid three">
            <Chart
              title="Connections"
              times={series.times}
              lines={[{ values: series.connections }]}
              whole
              format={compactAbove}
              empty="Waiting for the first sample"
            />
            <Chart
              title="Deliveries"
              unit="/s"
              times={series.times}
              lines={[{ values: series.delivered }]}
              format={rateAxis}
              empty="Waiting for the second sample"
            />
            <Chart
              title="Pushes"
              unit="/s"
              times={series.times}
              lines={[{ values: series.pushes }]}
              format={rateAxis}
              empty="Waiting for the second sample"
            />
          </div>
          <div class="grid two">
            <Chart
              title="Append: store a message"
              times={series.times}
              format={latency}
              decades
              empty="No message was stored in the last 10 s"
              lines={[
                { label: "p50", values: series.append50 },
                { label: "p99", values: series.append99 },
              ]}
            />
            <Chart
              title="Drain: read for a client"
              times={series.times}
              format={latency}
              decades
              empty="Nothing was read from the store in the last 10 s"
              lines={[
                { label: "p50", values: series.drain50 },
                { label: "p99", values: series.drain99 },
              ]}
            />
          </div>
          <Instances servers={servers} now={now} />
          <Card title="Totals" note="counters since the start of each instance">
            <Facts
              items={[
                ["Users online", count(sum((s) => s.stats?.users ?? s.users))],
                ["Channels", count(sum((s) => s.stats?.channels ?? s.channels))],
                ["Subscriptions", count(sum((s) => s.stats?.subscriptions))],
                ["Connections accepted", count(sum((s) => s.stats?.accepted))],
                ["Messages delivered", count(sum((s) => s.stats?.delivered))],
                ["Pushes", count(sum((s) => s.stats?.pushes))],
                ["Pushes refused", count(sum((s) => s.stats?.push_errors))],
              ]}
            />
            {alive.length > 1 && <p class="hint">A user or a channel on several instances counts on each of them.</p>}
          </Card>
        </>
      )}
    </Page>
  );
}

const compactAbove = (n: number) => (n >= 100_000 ? compact(n) : count(n));
const rateAxis = (n: number) => (n >= 100_000 ? compact(n) : rate(n));

const tones = { problem: "bad", warning: "warn" } as const;

/** Verdict says in one sentence whether something needs attention. */
function Verdict({ report }: { report: HealthReport }) {
  const problems = report.findings.filter((f) => f.level === "problem").length;
  if (problems > 0)
    return (
      <>
        <Badge tone="bad">attention</Badge> {plural(problems, "problem")}
      </>
    );
  if (report.findings.length > 0)
    return (
      <>
        <Badge tone="warn">warning</Badge> {plural(report.findings.length, "thing")} to look at
      </>
    );
  return (
    <>
      <Badge tone="good">healthy</Badge> Nothing needs attention
    </>
  );
}

/** Findings lists what needs attention. The broker finds it in the store and on all instances. */
function Findings({ report }: { report: HealthReport }) {
  if (report.findings.length === 0) return null;
  return (
    <Card title="Needs attention" flush>
      <Table caption="Findings" columns={["Level", "About", "What", "When?"]}>
        {report.findings.map((f) => (
          <tr key={f.code + " " + f.subject}>
            <td>
              <Badge tone={tones[f.level]}>{f.level}</Badge>
            </td>
            <th scope="row">
              {f.subject || "all"}
              <span class="under">{f.code}</span>
            </th>
            <td>
              {f.message}
              <span class="under">{f.remedy}</span>
            </td>
            <td class="wide">{f.at ? <When at={f.at} /> : "–"}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function Instances({ servers, now }: { servers: Seen[]; now: number }) {
  const { self } = useSession();
  const sorted = [...servers].sort((a, b) => Number(b.alive) - Number(a.alive) || a.server.localeCompare(b.server));
  return (
    <Card title="Instances" flush>
      <Table
        caption="Instances"
        columns={[
          "Instance",
          "State",
          "Heartbeat?",
          "Version?",
          "Age?",
          "+Connections",
          "+Users?",
          "+Channels?",
          "+Append p99?",
          "+Memory?",
        ]}
      >
        {sorted.map((s) => (
          <tr key={s.server} class={s.alive ? "" : "gone"}>
            <th scope="row">
              {s.server}
              <span class="under">
                {s.host}
                {s.server === self.server && " · serves this page"}
              </span>
            </th>
            <td>
              <InstanceState server={s} now={now} />
            </td>
            <td class="wide">
              <time title={moment(s.last_active)}>{duration(now - s.last_active)} ago</time>
            </td>
            <td class="wide">{s.version || "–"}</td>
            <td class="wide">
              <time title={moment(s.started_at)}>{duration(now - s.started_at)}</time>
            </td>
            <td class="num">{s.alive ? count(s.stats?.connections ?? s.connections) : "–"}</td>
            <td class="num wide">{s.alive ? count(s.stats?.users ?? s.users) : "–"}</td>
            <td class="num wide">{s.alive ? count(s.stats?.channels ?? s.channels) : "–"}</td>
            <td class="num wide">{s.alive ? latency(s.stats?.append.p99 ?? 0) : "–"}</td>
            <td class="num wide">{s.alive && s.stats?.rss ? bytes(s.stats.rss) : "–"}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function InstanceState({ server, now }: { server: Seen; now: number }) {
  if (!server.alive) return <Badge tone="bad">gone</Badge>;
  if (now - server.last_active > late) return <Badge tone="warn">no heartbeat</Badge>;
  if (!server.stats) return <Badge tone="warn">does not answer</Badge>;
  return <Badge tone="good">alive</Badge>;
}
