// The page of projects: who has what quota, and the form of a new one.
import { useMemo, useState } from "react";
import { useParams } from "wouter";

import { may, scopesOf } from "../api/rights";
import { useMay, useSession } from "../api/session";
import type { Project } from "../api/types";
import { Button } from "../kit/Button";
import { LendingBar } from "../kit/LendingBar";
import type { Column } from "../kit/grid/columns";
import page from "../kit/page.module.css";
import { Command, Empty, Gone } from "../kit/States";
import { type Looks, projectColor } from "../kit/project-color";
import { printGpus } from "../kit/Status";
import { Age } from "../kit/time";
import { useAll, useSome } from "../live/client";
import { LiveGrid } from "../live/LiveGrid";
import { useLooks } from "../live/looks";
import { NoRole } from "../live/NoRole";
import { ProjectForm } from "./ProjectForm";

const allocated = (project: Project) => project.status.quotaStatus.allocated.gpu;

/** Columns; `full` GPUs are the whole width of every bar, so that rows compare. */
const columnsOf = (full: number, looks: Looks): Column<Project>[] => [
  {
    id: "name",
    name: "Project",
    width: 130,
    grows: 1,
    rank: 0,
    sort: "name",
    cell: (project) => <b style={{ fontWeight: 600 }}>{project.name}</b>,
  },
  {
    id: "department",
    name: "Department",
    width: 120,
    rank: 4,
    sort: "parent.name",
    cell: (project) => project.parent.name,
  },
  {
    id: "quota",
    name: "GPU quota",
    width: 96,
    rank: 1,
    isNumber: true,
    sort: "totalResources.gpuQuota",
    cell: (project) => printGpus(project.totalResources.gpuQuota),
  },
  {
    id: "allocated",
    name: "Allocated GPUs",
    width: 124,
    rank: 2,
    isNumber: true,
    sort: "status.quotaStatus.allocated.gpu",
    cell: (project) => printGpus(allocated(project)),
  },
  {
    id: "bar",
    name: "Quota and use",
    width: 200,
    grows: 1,
    rank: 3,
    cell: (project) => (
      <LendingBar
        allocated={allocated(project)}
        quota={project.totalResources.gpuQuota}
        color={projectColor(looks, project.id)}
        full={full}
      />
    ),
  },
  {
    id: "requested",
    name: "Requested GPUs",
    width: 128,
    rank: 6,
    isNumber: true,
    sort: "status.quotaStatus.requested.gpu",
    cell: (project) => printGpus(project.status.quotaStatus.requested.gpu),
  },
  {
    id: "age",
    name: "Age",
    width: 84,
    rank: 5,
    isNumber: true,
    sort: "createdAt",
    cell: (project) => <Age of={project.createdAt} />,
  },
];

/** The most GPUs that a project has as quota or holds. */
function useLargest(): number {
  const by = { kind: "project", descending: true, to: 1 } as const;
  const quota = useSome({ ...by, sort: "totalResources.gpuQuota" })?.objects[0];
  const held = useSome({ ...by, sort: "status.quotaStatus.allocated.gpu" })?.objects[0];
  return Math.max(1, quota?.totalResources.gpuQuota ?? 0, held ? allocated(held) : 0);
}

export default function Projects(): React.ReactNode {
  const mayRead = useMay("project", "read");
  const { info } = useSession();
  const departments = useAll("department", "name")?.filter(({ id }) =>
    may(info, "project", "create", { departmentId: id }),
  );
  // A project is made in a department: a role in a project alone makes none.
  const scopes = scopesOf(info, "project", "create");
  const mayCreate = !scopes || scopes.departments.length > 0;
  const full = useLargest();
  const looks = useLooks();
  const columns = useMemo(() => columnsOf(full, looks), [full, looks]);
  const [isOpen, setOpen] = useState(false);
  const [made, setMade] = useState<string>();
  // Project that a link from elsewhere leads to.
  const { name: marked = "" } = useParams<{ name?: string }>();
  const linked = useSome({
    kind: "project",
    conditions: [{ field: "name", operator: "==", value: marked }],
    sort: "name",
    to: 1,
  });
  const isMissing = marked !== "" && linked?.total === 0;
  if (!mayRead) return <NoRole what="projects" resource="project" />;
  return (
    <>
      <div className={page.top}>
        <h1>Projects</h1>
        <span className={page.grow} />
        {mayCreate && (
          <Button kind="main" onPress={() => setOpen(true)}>
            +NEW PROJECT
          </Button>
        )}
      </div>
      {isMissing && <Gone what={`project ${marked}`} />}
      <LiveGrid
        kind="project"
        label="Projects"
        columns={columns}
        filters={[
          {
            field: "parent.name",
            name: "Department",
            of: { kind: "department", field: "name" },
          },
        ]}
        sort="name"
        selected={made ?? linked?.objects[0]?.id}
        empty={
          <Empty title="No projects yet">
            <p className="muted">
              A project is a team with a quota of GPUs. Workloads belong to one.
            </p>
            {mayCreate && <Button onPress={() => setOpen(true)}>Create the first</Button>}
            <Command text="elastane project create team-a --gpu-quota 2" />
          </Empty>
        }
      />
      {isOpen && (
        <ProjectForm
          departments={departments ?? []}
          onCreated={setMade}
          onClose={() => setOpen(false)}
        />
      )}
    </>
  );
}
