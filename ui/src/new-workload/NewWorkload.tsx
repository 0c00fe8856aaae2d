// The form of a new training, in the two steps of the published documents.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { post } from "../api/http";
import { useMay } from "../api/session";
import { useSubmit } from "../api/submit";
import type { Project } from "../api/types";
import { Button } from "../kit/Button";
import { TextField } from "../kit/Fields";
import { useKept } from "../kit/kept";
import kit from "../kit/kit.module.css";
import page from "../kit/page.module.css";
import { Failure, NoRight, Skeleton } from "../kit/States";
import { printGpus } from "../kit/Status";
import { type Tile, TileGroup, TILES_MAX } from "../kit/TileGroup";
import { useAllowed } from "../live/allowed";
import { useAll, useSome } from "../live/client";
import type { WorkloadRow } from "../live/rows";
import { type Draft, DRAFT, EMPTY, nameProblem, toRequest } from "./draft";
import { Galleries } from "./Galleries";

const TEMPLATES: Tile[] = [
  { id: "scratch", name: "Start from scratch", detail: "Choose environment and resources" },
];

export default function NewWorkload(): React.ReactNode {
  const mayCreate = useMay("trainings", "create");
  const [draft, change] = useKept(DRAFT, EMPTY);
  const [step, setStep] = useState(1);
  if (!mayCreate) return <NoRight what="this form" />;
  return (
    <>
      <div className={page.top}>
        <h1>New training</h1>
        <span className="muted">step {step} of 2</span>
      </div>
      <div className={page.scroll}>
        {step === 1 ? (
          <StepOne draft={draft} change={change} onContinue={() => setStep(2)} />
        ) : (
          <StepTwo draft={draft} change={change} onBack={() => setStep(1)} />
        )}
      </div>
    </>
  );
}

interface StepProps {
  draft: Draft;
  change: (next: Partial<Draft>) => void;
}

/** The living workload of the project that has the name, if there is one. */
function useNamesake({ projectId, name }: Draft): WorkloadRow | undefined {
  const found = useSome({
    kind: "workload",
    conditions: [
      { field: "projectId", operator: "==", value: projectId ?? "" },
      { field: "name", operator: "==", value: name },
    ],
    to: 1,
  });
  return name === "" ? undefined : found?.objects[0];
}

function StepOne({ draft, change, onContinue }: StepProps & { onContinue: () => void }) {
  const [, navigate] = useLocation();
  const namesake = useNamesake(draft);
  const id = { field: "id", operator: "==" as const, value: draft.projectId ?? "" };
  const anyOf = useAllowed("trainings", "create");
  const chosen = useSome({ kind: "project", conditions: [id], anyOf, to: 1 })?.objects[0];
  const [words, setWords] = useState("");
  const found = useSome({ kind: "project", search: words, anyOf, sort: "name", to: TILES_MAX });
  const problem = nameProblem(draft.name, namesake?.projectName);
  const { tried, submit } = useSubmit({
    isReady: chosen !== undefined && problem === undefined,
    send: () => Promise.resolve(),
    onSent: onContinue,
  });
  // With its tiles or not at all: what is below them is not to move.
  if (!found) return <Skeleton rows={5} height={48} />;
  return (
    <form className={page.form} onSubmit={submit}>
      <ProjectTiles
        value={draft.projectId}
        chosen={chosen}
        found={found}
        words={words}
        onSearch={setWords}
        onChange={(projectId) => change({ projectId })}
        problem={tried && !chosen ? "choose a project" : undefined}
      />
      <TileGroup label="Template" tiles={TEMPLATES} value="scratch" onChange={() => undefined} />
      <TextField
        label="Training name"
        help="unique in the project"
        value={draft.name}
        onChange={(name) => change({ name })}
        problem={tried || namesake ? problem : undefined}
        isRequired
      />
      <div className={kit.actions} style={{ justifyContent: "flex-start" }}>
        <Button type="submit" kind="main">
          CONTINUE
        </Button>
        <Button
          onPress={() => {
            change(EMPTY);
            navigate("/workloads");
          }}
        >
          DISCARD
        </Button>
      </div>
    </form>
  );
}

interface ProjectTilesProps {
  value: string | null;
  /** The project with this id, once it is known. */
  chosen: Project | undefined;
  found: { objects: Project[]; total: number };
  words: string;
  onSearch: (words: string) => void;
  onChange: (id: string) => void;
  problem: string | undefined;
}

function ProjectTiles(props: ProjectTilesProps) {
  const { value, chosen, found, words, onSearch, onChange, problem } = props;
  const shown = found.objects;
  const all = chosen && !shown.some(({ id }) => id === chosen.id) ? [chosen, ...shown] : shown;
  const tiles = all.map(({ id, name, totalResources, status }) => ({
    id,
    name,
    detail: `${printGpus(status.quotaStatus.allocated.gpu)} of ${printGpus(totalResources.gpuQuota)} GPUs`,
  }));
  return (
    <TileGroup
      label="Project"
      tiles={tiles}
      search={{ total: found.total, words, onChange: onSearch }}
      value={value}
      onChange={onChange}
      problem={problem}
    />
  );
}

function StepTwo({ draft, change, onBack }: StepProps & { onBack: () => void }) {
  const [, navigate] = useLocation();
  const server = useAll("server", "id")?.[0];
  const namesake = useNamesake(draft);
  const { tried, pending, error, submit } = useSubmit({
    isReady: draft.environment !== null && draft.compute !== null,
    send: () => {
      const body = toRequest(draft, server?.clusterId);
      return post<{ workloadId: string }>("/api/v1/workloads/trainings", body);
    },
    onSent: ({ workloadId }) => {
      // The project stays for the next one.
      change({ ...EMPTY, projectId: draft.projectId });
      navigate(`/workloads/${workloadId}`);
    },
  });
  return (
    <form className={page.form} onSubmit={submit}>
      <Galleries draft={draft} change={change} tried={tried} />
      <TextField
        label="Command"
        help="left out: that of the image"
        value={draft.command}
        onChange={(command) => change({ command })}
        problem={error?.fields["spec.command"]}
      />
      <TextField
        label="Arguments"
        value={draft.arguments}
        onChange={(args) => change({ arguments: args })}
        problem={error?.fields["spec.args"]}
      />
      {error && <Failure error={error} />}
      {error && namesake && (
        // A workload of another user, or of this form, if only the response was lost.
        <p role="status">
          There is a workload {namesake.name} in {namesake.projectName} now.{" "}
          <Link href={`/workloads/${namesake.id}`}>Open it</Link>, or go back and choose another
          name.
        </p>
      )}
      <div className={kit.actions} style={{ justifyContent: "flex-start" }}>
        <Button type="submit" kind="main" isPending={pending}>
          CREATE TRAINING
        </Button>
        <Button onPress={onBack}>BACK</Button>
      </div>
    </form>
  );
}
