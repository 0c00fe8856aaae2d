// Links to the places where workloads, projects and nodes are shown.
import { Link } from "wouter";

import type { WorkloadName } from "../api/types";

/** To a workload; its name alone where it is gone. */
export function WorkloadLink({ of }: { of: WorkloadName }): React.ReactNode {
  const name = `${of.projectName}/${of.name}`;
  return of.id ? <Link href={`/workloads/${encodeURIComponent(of.id)}`}>{name}</Link> : name;
}

/** To the workloads of a project; the name alone of a department. */
export function ProjectLink({ name }: { name: string }): React.ReactNode {
  if (name.startsWith("department:")) return name.replace(":", " ");
  const query = encodeURIComponent(`projectName==${name}`);
  return <Link href={`/workloads?f=${query}`}>{name}</Link>;
}

/** To the page of nodes, where this one is marked. */
export function NodeLink({ name }: { name: string }): React.ReactNode {
  return <Link href={`/nodes/${encodeURIComponent(name)}`}>{name}</Link>;
}
