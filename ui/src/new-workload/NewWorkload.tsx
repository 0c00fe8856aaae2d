// The form of a new training, in the two steps of the published documents.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { useMay } from "../api/session";
import { useSubmit } from "../api/submit";
import type { Project } from "../api/types";
import { Button } from "../kit/Button";
import { Actions } from "../kit/Dialog";
import { TextField } from "../kit/Fields";
import { useKept } from "../kit/kept";
import page from "../kit/page.module.css";
import { Skeleton } from "../kit/States";
import { countGpus, printGpus } from "../kit/Status";
import { type Tile, TileGroup, TILES_MAX } from "../kit/TileGroup";
import { useAllowed } from "../live/allowed";
import { useSome } from "../live/client";
import { NoRole } from "../live/NoRole";
import type { TemplateRow } from "../live/rows";
import { usePlace, useTemplates } from "./choices";
import { DRAFT, EMPTY, GONE, nameProblem, type StepProps } from "./draft";
import { GoneTemplate } from "./GoneTemplate";
import { useNamesake } from "./namesake";
import { StepTwo } from "./StepTwo";
import { withTemplate } from "./template";

const SCRATCH: Tile = {
  id: "scratch",
  name: "Start from scratch",
  detail: "No template",
};

export default function NewWorkload(): React.ReactNode {
  const mayCreate = useMay("trainings", "create");
  const [draft, change] = useKept(DRAFT, EMPTY);
  const [step, setStep] = useState(1);
  const id = { field: "id", operator: "==" as const, value: draft.projectId ?? "" };
  const project = useSome({ kind: "project", conditions: [id], to: 1 })?.objects[0];
  if (!mayCreate) return <NoRole what="this form" resource="trainings" action="create" />;
  return (
    <>
      <div className={page.top}>
        <h1>New training</h1>
        <span className="muted">
          step {step} of 2{step === 2 && project && ` · ${draft.name} in ${project.name}`}
        </span>
        {step === 2 && <GoneTemplate draft={draft} change={change} />}
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

function StepOne({ draft, change, onContinue }: StepProps & { onContinue: () => void }) {
  const [, navigate] = useLocation();
  const namesake = useNamesake(draft);
  const id = { field: "id", operator: "==" as const, value: draft.projectId ?? "" };
  const anyOf = useAllowed("trainings", "create");
  const chosen = useSome({ kind: "project", conditions: [id], anyOf, to: 1 })?.objects[0];
  const templates = useTemplates(draft, usePlace(draft));
  const [words, setWords] = useState("");
  const found = useSome({ kind: "project", search: words, anyOf, sort: "name", to: TILES_MAX });
  const problem = nameProblem(draft.name, namesake?.projectName);
  const { tried, submit } = useSubmit({
    isReady: chosen !== undefined && problem === undefined && templates?.isGone === false,
    send: () => Promise.resolve(),
    onSent: onContinue,
  });
  // With its tiles or not at all: what is below them is not to move.
  if (!found || !templates) return <Skeleton rows={5} height={48} />;
  const { all, isGone } = templates;
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
      <TileGroup
        label="Template"
        tiles={[SCRATCH, ...all.map(templateTile)]}
        value={isGone ? null : (draft.template?.id ?? SCRATCH.id)}
        onChange={(tile) => {
          const next = all.find(({ meta }) => meta.id === tile);
          change(withTemplate(draft, templates.chosen, next));
        }}
        problem={isGone ? `template ${draft.template?.name} ${GONE}; choose again` : undefined}
      />
      <TextField
        label="Training name"
        help="unique in the project"
        value={draft.name}
        onChange={(name) => change({ name })}
        problem={tried || namesake ? problem : undefined}
        isRequired
      />
      <Actions isPage>
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
      </Actions>
    </form>
  );
}

function templateTile({ meta, spec }: TemplateRow): Tile {
  return { id: meta.id, name: meta.name, detail: meta.description ?? spec.image ?? "" };
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
    detail: `${printGpus(status.quotaStatus.allocated.gpu)} of ${countGpus(totalResources.gpuQuota)}`,
  }));
  return (
    <TileGroup
      label="Project"
      tiles={tiles}
      search={{ total: found.total, words, onChange: onSearch }}
      value={value}
      onChange={onChange}
      problem={problem}
      empty={
        <p className="muted">
          There is no project in which you may create trainings.{" "}
          <Link href="/projects">Projects</Link>
        </p>
      }
    />
  );
}
