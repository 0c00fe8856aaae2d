// The first page: is anything wrong, who has what, why do things wait, what just happened.
import { Link } from "wouter";

import { useMay } from "../api/session";
import type { Project } from "../api/types";
import { LendingBar, LendingLegend } from "../kit/LendingBar";
import page from "../kit/page.module.css";
import { projectColor } from "../kit/project-color";
import { Skeleton } from "../kit/States";
import { CodeLink, countGpus, printGpus } from "../kit/Status";
import { useAll, useCounts, useSome } from "../live/client";
import { freeGpus } from "../live/gpus";
import { useLooks } from "../live/looks";
import { NoRole } from "../live/NoRole";
import type { WorkloadCounts } from "../live/protocol";
import { PHASES, waits } from "../live/rows";
import { JustHappened } from "./JustHappened";

export default function Overview(): React.ReactNode {
  const mayRead = useMay("workloads", "read");
  const counts = useCounts();
  const sort = "status.quotaStatus.allocated.gpu";
  const projects = useSome({ kind: "project", sort, descending: true, to: SHOWN });
  if (!mayRead) return <NoRole what="workloads" resource="workloads" />;
  return (
    <>
      <div className={page.top}>
        <h1>Overview</h1>
      </div>
      <div className={page.scroll}>
        {counts && projects ? (
          <div className={page.stack}>
            <Tiles counts={counts} />
            <div className={page.columns}>
              <WhoHasWhat projects={projects.objects} total={projects.total} />
              <WhyWaiting counts={counts} />
              <JustHappened happened={counts.happened} />
            </div>
          </div>
        ) : (
          <Skeleton rows={4} height={80} />
        )}
      </div>
    </>
  );
}

function Tiles({ counts }: { counts: WorkloadCounts }): React.ReactNode {
  const mayNodes = useMay("nodes", "read");
  return (
    <ul className={page.tilesRow}>
      {mayNodes && <NodeFigures />}
      <Figure
        name="Running workloads"
        value={String(counts.phases.Running ?? 0)}
        detail={`hold ${countGpus(counts.gpusAllocated)}`}
        to="/workloads?f=phase%3D%3DRunning"
      />
      <Figure
        name="Pending workloads"
        value={String(counts.workloadsWaiting)}
        detail={counts.gpusWaiting > 0 ? `wait for ${countGpus(counts.gpusWaiting)}` : undefined}
        to={`/workloads?f=${encodeURIComponent(`phase==${PHASES.filter(waits).join("|")}`)}`}
      />
    </ul>
  );
}

/** Their places are there before their numbers. */
function NodeFigures(): React.ReactNode {
  const nodes = useAll("node", "name");
  const devices = useAll("gpu", "index");
  const ready = nodes?.filter(({ status }) => status.startsWith("Ready")).length ?? 0;
  const broken = devices?.filter(({ fault }) => fault).length ?? 0;
  const held = devices?.reduce((sum, { allocated }) => sum + allocated, 0) ?? 0;
  const isKnown = nodes && devices;
  const notReady = isKnown ? nodes.length - ready : 0;
  return (
    <>
      <Figure
        name="Ready nodes"
        value={isKnown ? `${ready} / ${nodes.length}` : "\u00A0"}
        detail={isKnown && (notReady > 0 ? `✕ ${notReady} not ready` : "all ready")}
        to="/nodes"
      />
      <Figure
        name="Allocated GPUs"
        value={isKnown ? `${printGpus(held)} / ${devices.length}` : "\u00A0"}
        detail={
          isKnown &&
          (broken > 0
            ? `× ${broken} out of service`
            : `${printGpus(freeGpus(nodes, devices))} free`)
        }
        to="/nodes"
      />
    </>
  );
}

interface FigureProps {
  name: string;
  value: string;
  detail?: string | undefined;
  to: string;
}

function Figure({ name, value, detail, to }: FigureProps): React.ReactNode {
  return (
    <li className={page.card}>
      <Link href={to}>{name}</Link>
      <p className={page.figure}>{value}</p>
      <p className="muted">{detail ?? "\u00A0"}</p>
    </li>
  );
}

/** The fair share, which the API sends beside what is described. */
function fairShare(project: Project): number | undefined {
  const { fairShare: share } = project.status.additionalStatusData as {
    fairShare?: { gpu?: number };
  };
  return share?.gpu;
}

/** Projects shown; the others are on their page. */
const SHOWN = 12;

function gpus(project: Project): number {
  return project.status.quotaStatus.allocated.gpu;
}

interface ShownProjects {
  /** The projects with the most GPUs, the largest first. */
  projects: Project[];
  total: number;
}

function WhoHasWhat({ projects, total }: ShownProjects): React.ReactNode {
  const looks = useLooks();
  const full = Math.max(
    1,
    ...projects.flatMap((project) => [
      gpus(project),
      project.totalResources.gpuQuota,
      fairShare(project) ?? 0,
    ]),
  );
  return (
    <section className={page.card}>
      <h2>Who has what</h2>
      {projects.length === 0 && (
        <p className="muted">
          There is no project yet. See <Link href="/projects">Projects</Link>.
        </p>
      )}
      <div className={page.lend}>
        {projects.map((project) => {
          const quota = project.totalResources.gpuQuota;
          return [
            <Link
              key="name"
              href={`/workloads?f=projectName%3D%3D${encodeURIComponent(project.name)}`}
            >
              {project.name}
            </Link>,
            <LendingBar
              key="bar"
              allocated={gpus(project)}
              quota={quota}
              fairShare={fairShare(project) ?? quota}
              color={projectColor(looks, project.id)}
              full={full}
            />,
            <span key="text" className="muted">
              {printGpus(gpus(project))} of {countGpus(quota)}
              {gpus(project) > quota && ` · ${printGpus(gpus(project) - quota)} borrowed`}
            </span>,
          ];
        })}
      </div>
      {projects.length > 0 && <LendingLegend />}
      {total > SHOWN && (
        <p style={{ marginTop: 8 }}>
          <Link href="/projects">{total - SHOWN} more projects</Link>
        </p>
      )}
    </section>
  );
}

function WhyWaiting({ counts }: { counts: WorkloadCounts }): React.ReactNode {
  const waiting = counts.workloadsWaiting;
  return (
    <section className={page.card}>
      <h2>
        {waiting === 0 ? "Nothing waits" : `Why ${waiting} ${waiting === 1 ? "waits" : "wait"}`}
      </h2>
      <ul className={page.lines}>
        {counts.waiting.map(({ code, message, alike, count, gpus: wanted }) => (
          <li key={code}>
            <CodeLink>{code}</CodeLink> {!alike && <span className="muted">such as: </span>}
            {message}
            <p className="muted">
              {count} {count === 1 ? "workload" : "workloads"}, {countGpus(wanted)}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
