// The address of a workload by its project and name: leads to its pane.
import { Redirect, useParams } from "wouter";

import { Gone, Skeleton } from "../kit/States";
import { useView } from "../live/client";

export default function ByName(): React.ReactNode {
  const { project = "", name = "" } = useParams<{ project: string; name: string }>();
  const answer = useView({
    kind: "workload",
    conditions: [
      { field: "projectName", operator: "==", value: project },
      { field: "name", operator: "==", value: name },
    ],
  });
  if (!answer) return <Skeleton rows={4} height={80} />;
  const id = answer.rows[0]?.object.id;
  if (id) return <Redirect to={`/workloads/${encodeURIComponent(id)}`} replace />;
  return <Gone what={`workload ${name} in project ${project}`} />;
}
