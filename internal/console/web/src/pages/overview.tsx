import { Chart } from "../parts/chart";
import { Badge, Card, Empty, Facts, Loading, Page, Problem, Table } from "../parts/ui";
import { bytes, compact, count, duration, latency, moment, plural, rate } from "../format";
import { useNow } from "../hooks";
import { link } from "../router";
import { type Seen, useSamples } from "../samples";
import { useSession } from "../session";

const late = 6000; // ms without a heartbeat that are worth a warning; they come every 2 s

/** Overview shows the instances, and graphs of what they do. */
export function Overview() {
  const { series, servers, partial, error, skew, ready } = useSamples();
  const now = useNow() + skew;
  const alive = servers.filter((s) => s.alive);
  const sum = (of: (s: Seen) => number | undefined) => alive.reduce((n, s) => n + (of(s) ?? 0), 0);
  const connections = sum((s) => s.stats?.connections ?? s.connections);
  return (
    <Page title="Overview" about={ready ? <Health servers={servers} now={now} partial={partial} /> : undefined}>
      <Problem error={error} />
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

/** Health says in one sentence whether something needs attention. */
function Health({ servers, now, partial }: { servers: Seen[]; now: number; partial: boolean }) {
  const { self } = useSession();
  const alive = servers.filter((s) => s.alive);
  const dead = servers.length - alive.length;
  const silent = alive.filter((s) => now - s.last_active > late).length;
  const store = self.redis ? "on Redis" : "in memory";
  if (dead > 0)
    return (
      <>
        <Badge tone="bad">attention</Badge> {plural(dead, "instance")} gone, {plural(alive.length, "instance")} left
      </>
    );
  if (silent > 0)
    return (
      <>
        <Badge tone="warn">attention</Badge> {plural(silent, "instance")} without a heartbeat
      </>
    );
  if (partial)
    return (
      <>
        <Badge tone="warn">attention</Badge> An instance does not answer the others; its numbers are missing
      </>
    );
  return (
    <>
      <Badge tone="good">healthy</Badge> {plural(alive.length, "instance")} {store}, every heartbeat on time
    </>
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
