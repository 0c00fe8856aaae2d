// The form of a new training, in the two steps of the published documents.
import { useState } from "react";
import { useLocation } from "wouter";

import { type ApiError, post } from "../api/http";
import { useMay } from "../api/session";
import { Button } from "../kit/Button";
import { TextField } from "../kit/Fields";
import kit from "../kit/kit.module.css";
import page from "../kit/page.module.css";
import { Failure, NoRight } from "../kit/States";
import { printGpus } from "../kit/Status";
import { type Tile, TileGroup } from "../kit/TileGroup";
import { useAll, useView } from "../live/client";
import { type Draft, EMPTY, keepDraft, loadDraft, nameProblem, toRequest } from "./draft";
import { Galleries } from "./Galleries";

const TEMPLATES: Tile[] = [
  { id: "scratch", name: "Start from scratch", detail: "Choose environment and resources" },
];

export default function NewWorkload(): React.ReactNode {
  const mayCreate = useMay("trainings", "create");
  const [draft, setDraft] = useState(loadDraft);
  const [step, setStep] = useState(1);
  const change = (next: Partial<Draft>) => {
    const changed = { ...draft, ...next };
    setDraft(changed);
    keepDraft(changed);
  };
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

/** Whether a living workload of the project has the name. */
function useTaken({ projectId, name }: Draft): boolean {
  const answer = useView({
    kind: "workload",
    conditions: [
      { field: "projectId", operator: "==", value: projectId ?? "" },
      { field: "name", operator: "==", value: name },
    ],
    to: 1,
  });
  return name !== "" && (answer?.total ?? 0) > 0;
}

function StepOne({ draft, change, onContinue }: StepProps & { onContinue: () => void }) {
  const [, navigate] = useLocation();
  const projects = useAll("project", "name");
  const taken = useTaken(draft);
  const [tried, setTried] = useState(false);
  const chosen = projects?.find(({ id }) => id === draft.projectId);
  const problem = nameProblem(draft.name, taken, chosen?.name ?? "");
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (chosen && !problem) onContinue();
  };
  const tiles = (projects ?? []).map(({ id, name, totalResources, status }) => ({
    id,
    name,
    detail: `${printGpus(status.quotaStatus.allocated.gpu)} of ${printGpus(totalResources.gpuQuota)} GPUs`,
  }));
  return (
    <form className={page.form} onSubmit={submit}>
      <TileGroup
        label="Project"
        tiles={tiles}
        value={chosen ? chosen.id : null}
        onChange={(projectId) => change({ projectId })}
        problem={tried && !chosen ? "choose a project" : undefined}
      />
      <TileGroup label="Template" tiles={TEMPLATES} value="scratch" onChange={() => undefined} />
      <TextField
        label="Training name"
        help="unique in the project"
        value={draft.name}
        onChange={(name) => change({ name })}
        problem={tried || taken ? problem : undefined}
        isRequired
      />
      <div className={kit.actions} style={{ justifyContent: "flex-start" }}>
        <Button type="submit" kind="main">
          CONTINUE
        </Button>
        <Button
          onPress={() => {
            keepDraft(null);
            navigate("/workloads");
          }}
        >
          DISCARD
        </Button>
      </div>
    </form>
  );
}

function StepTwo({ draft, change, onBack }: StepProps & { onBack: () => void }) {
  const [, navigate] = useLocation();
  const server = useAll("server", "id")?.[0];
  const [tried, setTried] = useState(false);
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<ApiError>();
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setTried(true);
    // A second press while the first is on its way creates nothing.
    if (!draft.environment || !draft.compute || pending) return;
    setPending(true);
    setError(undefined);
    const body = toRequest(draft, server?.clusterId);
    post<{ workloadId: string }>("/api/v1/workloads/trainings", body).then(
      ({ workloadId }) => {
        // The project stays for the next one.
        keepDraft({ ...EMPTY, projectId: draft.projectId });
        navigate(`/workloads/${workloadId}`);
      },
      (failure: ApiError) => {
        setPending(false);
        setError(failure);
      },
    );
  };
  return (
    <form className={page.form} onSubmit={submit}>
      <Galleries draft={draft} change={change} tried={tried} />
      <TextField
        label="Command"
        help="left out: that of the image"
        value={draft.command}
        onChange={(command) => change({ command })}
      />
      <TextField
        label="Arguments"
        value={draft.arguments}
        onChange={(args) => change({ arguments: args })}
      />
      {error && <Failure error={error} />}
      <div className={kit.actions} style={{ justifyContent: "flex-start" }}>
        <Button type="submit" kind="main" isPending={pending}>
          CREATE TRAINING
        </Button>
        <Button onPress={onBack}>BACK</Button>
      </div>
    </form>
  );
}
