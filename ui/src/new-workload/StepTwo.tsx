// The second step: environment, compute resource, command, and what the template brings.
import { useState } from "react";
import { Link, useLocation } from "wouter";

import { post } from "../api/http";
import { useSubmit } from "../api/submit";
import { Button } from "../kit/Button";
import { Actions } from "../kit/Dialog";
import { TextField } from "../kit/Fields";
import page from "../kit/page.module.css";
import { Failure, Skeleton } from "../kit/States";
import { useServer } from "../live/client";
import type { TemplateRow } from "../live/rows";
import { useGalleries, usePlace, useTemplates } from "./choices";
import { type StepProps, toRequest, EMPTY } from "./draft";
import { Galleries } from "./Galleries";
import { useNamesake } from "./namesake";
import { restOf } from "./template";

export function StepTwo({ draft, change, onBack }: StepProps & { onBack: () => void }) {
  const [, navigate] = useLocation();
  const server = useServer();
  const namesake = useNamesake(draft);
  const place = usePlace(draft);
  const templates = useTemplates(draft, place);
  // What a deleted template brought stays on the page until the user chooses otherwise.
  const [last, setLast] = useState(templates?.chosen);
  if (templates?.chosen && templates.chosen !== last) setLast(templates.chosen);
  const template = templates?.isGone ? last : templates?.chosen;
  const galleries = useGalleries(draft, place, template);
  const { tried, pending, error, submit } = useSubmit({
    isReady:
      templates?.isGone === false &&
      galleries !== undefined &&
      !galleries.environment.problem &&
      !galleries.compute.problem,
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
  if (!place || !templates || !galleries) return <Skeleton rows={5} height={48} />;
  const below = (field: "command" | "args") =>
    `left out: that of the ${template?.spec[field] ? "template" : "image"}`;
  return (
    <form className={page.form} onSubmit={submit}>
      <Galleries draft={draft} place={place} {...galleries} change={change} tried={tried} />
      <TextField
        label="Command"
        help={below("command")}
        value={draft.command}
        onChange={(command) => change({ command })}
        problem={error?.fields["spec.command"]}
      />
      <TextField
        label="Arguments"
        help={below("args")}
        value={draft.arguments}
        onChange={(args) => change({ arguments: args })}
        problem={error?.fields["spec.args"]}
      />
      {template && <Rest of={template} />}
      {error && <Failure error={error} />}
      {error && namesake && (
        // A workload of another user, or of this form, if only the response was lost.
        <p role="status">
          There is a workload {namesake.name} in {namesake.projectName} now.{" "}
          <Link href={`/workloads/${namesake.id}`}>Open it</Link>, or go back and choose another
          name.
        </p>
      )}
      <Actions isPage>
        <Button type="submit" kind="main" isPending={pending}>
          CREATE TRAINING
        </Button>
        <Button onPress={onBack}>BACK</Button>
      </Actions>
    </form>
  );
}

/** The fields of the template that cannot be changed here. */
function Rest({ of }: { of: TemplateRow }) {
  const rest = restOf(of);
  if (rest.length === 0) return null;
  return (
    <section className={page.card}>
      <h2>Also from template {of.meta.name}</h2>
      <dl className={page.details}>
        {rest.map(([name, text]) => (
          <div key={name} style={{ display: "contents" }}>
            <dt>{name}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
