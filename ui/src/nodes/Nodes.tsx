// The page of nodes: a grid, with the GPUs of each drawn.
import { Link, useParams } from "wouter";

import { useMay } from "../api/session";
import type { Gpu, Node } from "../api/types";
import { GpuBox } from "../kit/GpuBox";
import bars from "../kit/bars.module.css";
import page from "../kit/page.module.css";
import { Empty, Gone, Skeleton } from "../kit/States";
import { type Looks, projectFill } from "../kit/project-color";
import { countGpus, printGpus, Status } from "../kit/Status";
import { useAll } from "../live/client";
import { useLooks } from "../live/looks";
import { NoRole } from "../live/NoRole";

export default function Nodes(): React.ReactNode {
  const mayRead = useMay("nodes", "read");
  const looks = useLooks();
  const known = useAll("node", "name");
  const gpus = useAll("gpu", "index");
  // With their GPUs or not at all: the nodes below one are not to move.
  const nodes = gpus && known;
  // Node that a link from elsewhere leads to.
  const { name: marked } = useParams<{ name?: string }>();
  if (!mayRead) return <NoRole what="nodes" resource="nodes" />;
  const byNode = Map.groupBy(gpus ?? [], ({ nodeName }) => nodeName);
  const free = (gpus ?? []).reduce((sum, gpu) => sum + (gpu.fault ? 0 : 1 - gpu.allocated), 0);
  return (
    <>
      <div className={page.top}>
        <h1>Nodes</h1>
        {gpus && (
          <span className="muted">
            {printGpus(free)} of {gpus.length} GPUs free
          </span>
        )}
      </div>
      <div className={page.scroll}>
        {!nodes && <Skeleton rows={4} height={90} />}
        {nodes?.length === 0 && (
          <Empty title="No nodes">
            <p className="muted">The server found no machine with GPUs, and simulates none.</p>
          </Empty>
        )}
        {marked && nodes && !nodes.some(({ name }) => name === marked) && (
          <Gone what={`node ${marked}`} />
        )}
        <ul className={page.nodes}>
          {nodes?.map((node) => (
            <NodeTile
              key={node.id}
              node={node}
              gpus={byNode.get(node.name) ?? []}
              isMarked={node.name === marked}
              looks={looks}
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
}

/** Brings what is marked into view, once, when it appears. */
function showOnce(element: HTMLElement | null): void {
  element?.scrollIntoView({ block: "nearest" });
}

function NodeTile({ node, gpus, isMarked, looks }: TileProps): React.ReactNode {
  const state = node.status.split(",")[0] ?? node.status;
  const held = gpus.reduce((sum, gpu) => sum + gpu.allocated, 0);
  return (
    <li
      className={page.card}
      aria-current={isMarked || undefined}
      ref={isMarked ? showOnce : undefined}
    >
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
      <div className={bars.gpus}>
        {gpus.map((gpu) => (
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
      <Holders gpus={gpus} looks={looks} />
    </li>
  );
}

/** The workloads on the GPUs of a node, in the colors in which they are drawn. */
function Holders({ gpus, looks }: { gpus: Gpu[]; looks: Looks }): React.ReactNode {
  const pods = gpus.flatMap((gpu) => gpu.pods);
  const held = [...Map.groupBy(pods, ({ workloadId }) => workloadId)];
  return (
    <ul className={page.holders}>
      {held.map(([id, [first, ...more]]) => (
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
  const holders = pods.map(({ workloadName, share }) => `${workloadName} ${printGpus(share)}`);
  const rest = holders.length === 0 && allocated > 0 ? [`${printGpus(allocated)} held`] : [];
  const said = [...holders, ...rest].join(", ") || "free";
  return `GPU ${index}: ${fault ? `out of service, ${fault.message}` : said}`;
}
