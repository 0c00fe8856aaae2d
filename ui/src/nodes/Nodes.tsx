// The page of nodes: a tile for each with its GPUs drawn, searched and filtered by the address.
import { useEffect, useRef, useState } from "react";
import { Link, useParams } from "wouter";

import { useMay } from "../api/session";
import type { Gpu, Node } from "../api/types";
import { GpuBox } from "../kit/GpuBox";
import bars from "../kit/bars.module.css";
import page from "../kit/page.module.css";
import { Menu } from "../kit/Menu";
import { Search } from "../kit/Search";
import { Empty, Gone, Skeleton } from "../kit/States";
import { type Looks, projectFill } from "../kit/project-color";
import { countGpus, printGpus, Status } from "../kit/Status";
import { type Condition, printCondition, sayCondition } from "../live/conditions";
import { useList } from "../live/address";
import { useAll, useView } from "../live/client";
import { Count } from "../live/Count";
import list from "../live/live.module.css";
import { NothingFound } from "../live/NothingFound";
import { freeGpus } from "../live/gpus";
import { useLooks } from "../live/looks";
import { NoRole } from "../live/NoRole";

/** Nodes whose GPUs are drawn at once, without waiting until they are near the screen. */
const AT_ONCE = 48;
/** How far from the screen GPUs are drawn. */
const NEAR = "800px 0px";
/** GPUs on a line: as many as the narrowest tile has room for. */
const GPUS_PER_LINE = 8;

const STATES: { name: string; condition: Condition }[] = [
  { name: "Ready", condition: { field: "status", operator: "=^", value: "Ready" } },
  { name: "NotReady", condition: { field: "status", operator: "=^", value: "NotReady" } },
  {
    name: "Not for new workloads",
    condition: { field: "scheduling", operator: "!=", value: "enabled" },
  },
];

function isSame(one: Condition, other: Condition): boolean {
  return printCondition(one) === printCondition(other);
}

/** The condition in the words of the filter, or in its own. */
function say(condition: Condition): string {
  const known = STATES.find((one) => isSame(one.condition, condition));
  return known ? `Status ${known.name}` : sayCondition(condition, condition.field);
}

export default function Nodes(): React.ReactNode {
  const mayRead = useMay("nodes", "read");
  const looks = useLooks();
  const [state, change] = useList();
  const { search, conditions } = state;
  const answer = useView({ kind: "node", sort: "name", search, conditions });
  const known = answer?.rows.map(({ object }) => object);
  const gpus = useAll("gpu", "index");
  // Whatever is searched for.
  const all = useAll("node", "name");
  // With their GPUs or not at all: the nodes below one are not to move.
  const nodes = gpus && known;
  // Node that a link from elsewhere leads to.
  const { name: marked } = useParams<{ name?: string }>();
  if (!mayRead) return <NoRole what="nodes" resource="nodes" />;
  const byNode = Map.groupBy(gpus ?? [], ({ nodeName }) => nodeName);
  const isFiltered = search !== "" || conditions.length > 0;
  const chosen = STATES.find(({ condition }) => conditions.some((one) => isSame(one, condition)));
  return (
    <>
      <div className={page.top}>
        <h1>Nodes</h1>
        {gpus && all && (
          <span className="muted">
            {printGpus(freeGpus(all, gpus))} of {gpus.length} GPUs free
          </span>
        )}
      </div>
      <div className={list.bar} role="search">
        <div className={list.search}>
          <Search
            label="Search Nodes"
            placeholder="Search   /"
            value={search}
            onChange={(words) => change({ search: words })}
          />
        </div>
        <Menu
          kind="plain"
          label={`${chosen?.name ?? "Status"} ▾`}
          name="Filter by Status"
          actions={[
            { id: "-", name: "All", isChosen: !chosen, run: () => change({ conditions: [] }) },
            ...STATES.map(({ name, condition }) => ({
              id: name,
              name,
              isChosen: name === chosen?.name,
              run: () => change({ conditions: [condition] }),
            })),
          ]}
        />
        <span className={list.grow} />
        <Count answer={answer} isFiltered={isFiltered} />
      </div>
      {/* Other filters give another list, from its beginning. */}
      <div className={page.scroll} key={answer?.order}>
        {!nodes && <Skeleton rows={4} height={90} />}
        {answer && nodes?.length === 0 && isFiltered && (
          <NothingFound answer={answer} what="nodes" list={state} say={say} onChange={change} />
        )}
        {nodes?.length === 0 && !isFiltered && (
          <Empty title="No nodes">
            <p className="muted">The server found no machine with GPUs, and simulates none.</p>
          </Empty>
        )}
        {marked && nodes && !isFiltered && !nodes.some(({ name }) => name === marked) && (
          <Gone what={`node ${marked}`} />
        )}
        <ul className={page.nodes}>
          {nodes?.map((node, at) => (
            <NodeTile
              key={node.id}
              node={node}
              gpus={byNode.get(node.name) ?? []}
              isMarked={node.name === marked}
              looks={looks}
              isAtOnce={at < AT_ONCE || node.name === marked}
            />
          ))}
        </ul>
      </div>
    </>
  );
}

interface TileProps {
  node: Node;
  gpus: Gpu[];
  isMarked: boolean;
  looks: Looks;
  /** It is drawn without waiting until it is near. */
  isAtOnce: boolean;
}

/** Brings what is marked into view, once, when it appears. */
function showOnce(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

/** Lines that take their place before anything is drawn in them: tiles are not to move. */
function lines(count: number, height: string): React.CSSProperties {
  return count > 0 ? { gridTemplateRows: `repeat(${count}, ${height})` } : {};
}

/** True from when the element is near what is on the screen. */
function useNear(element: React.RefObject<Element | null>, atOnce: boolean): boolean {
  const [near, setNear] = useState(atOnce);
  useEffect(() => {
    if (near || !element.current) return undefined;
    const watch = (seen: IntersectionObserverEntry[]) => {
      if (seen.some(({ isIntersecting }) => isIntersecting)) setNear(true);
    };
    // The margin counts from the edges of what scrolls.
    const root = element.current.closest(`.${page.scroll}`);
    const observer = new IntersectionObserver(watch, { root, rootMargin: NEAR });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [element, near]);
  return near || atOnce;
}

function NodeTile({ node, gpus, isMarked, looks, isAtOnce }: TileProps): React.ReactNode {
  const own = useRef<HTMLLIElement>(null);
  const isNear = useNear(own, isAtOnce);
  useEffect(() => {
    if (isMarked) showOnce(own.current);
  }, [isMarked]);
  const state = node.status.split(",")[0] ?? node.status;
  const held = gpus.reduce((sum, gpu) => sum + gpu.allocated, 0);
  return (
    <li className={page.card} aria-current={isMarked || undefined} ref={own}>
      <h2>{node.name}</h2>
      <p className={page.row}>
        <Status of={state} />
        {node.scheduling !== "enabled" && <span className="muted">{node.scheduling}</span>}
        <span className="muted">node pool {node.nodePool}</span>
      </p>
      <p className="muted" style={{ margin: "4px 0 8px" }}>
        {printGpus(held)} of {gpus.length} GPUs held
        {node.gpuInfo && ` · ${node.gpuInfo.gpuType}`}
      </p>
      <div className={bars.gpus} style={lines(Math.ceil(gpus.length / GPUS_PER_LINE), "34px")}>
        {isNear &&
          gpus.map((gpu) => (
            <GpuBox
              key={gpu.id}
              label={describe(gpu)}
              isBroken={gpu.fault !== undefined && gpu.fault !== null}
              parts={gpu.pods.map(({ id, projectId, share }) => ({
                id,
                share,
                fill: projectFill(looks, projectId),
              }))}
            />
          ))}
      </div>
      <Holders gpus={gpus} looks={looks} isDrawn={isNear} />
    </li>
  );
}

interface HoldersProps {
  gpus: Gpu[];
  looks: Looks;
  isDrawn: boolean;
}

/** The workloads on the GPUs of a node, in the colors in which they are drawn. */
function Holders({ gpus, looks, isDrawn }: HoldersProps): React.ReactNode {
  const pods = gpus.flatMap((gpu) => gpu.pods);
  const held = [...Map.groupBy(pods, ({ workloadId }) => workloadId)];
  return (
    <ul className={page.holders} style={lines(held.length, "minmax(24px, auto)")}>
      {isDrawn &&
        held.map(([id, [first, ...more]]) => (
          <li key={id}>
            <span
              className={page.swatch}
              style={{ background: first && projectFill(looks, first.projectId) }}
            />
            <Link href={`/workloads/${id}`}>{first?.workloadName}</Link>
            <span className="muted">
              {countGpus([first, ...more].reduce((sum, pod) => sum + (pod?.share ?? 0), 0))}
            </span>
          </li>
        ))}
    </ul>
  );
}

/** Shares of a GPU by holder, or why it is out of service. */
function describe({ index, pods, fault, allocated }: Gpu): string {
  const holders = pods.map(({ workloadName, share }) => `${workloadName} ${countGpus(share)}`);
  const rest = holders.length === 0 && allocated > 0 ? [`${countGpus(allocated)} held`] : [];
  const said = [...holders, ...rest].join(", ") || "free";
  return `GPU ${index}: ${fault ? `out of service, ${fault.message}` : said}`;
}
