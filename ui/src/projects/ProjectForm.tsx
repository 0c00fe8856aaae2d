// The form of a new project: name, department, GPU quota.
import { useState } from "react";

import { type ApiError, post } from "../api/http";
import type { Project } from "../api/types";
import { Button } from "../kit/Button";
import { Dialog } from "../kit/Dialog";
import { NumberField, Select, TextField } from "../kit/Fields";
import kit from "../kit/kit.module.css";
import { Failure } from "../kit/States";
import { useAll } from "../live/client";
import type { DepartmentRow } from "../live/rows";

const NAME = /^[a-z][a-z0-9-]*$/u;

interface Props {
  departments: DepartmentRow[];
  /** With the id of what was created. */
  onCreated: (id: string) => void;
  onClose: () => void;
}

export function ProjectForm({ departments, onCreated, onClose }: Props): React.ReactNode {
  const server = useAll("server", "id")?.[0];
  const pool = useAll("node-pool", "id")?.[0];
  const taken = useAll("project", "name")?.map((project) => project.name) ?? [];
  const [name, setName] = useState("");
  const [departmentId, setDepartment] = useState<string>();
  const [quota, setQuota] = useState(0);
  const [tried, setTried] = useState(false);
  const [pending, setPending] = useState(false);
  const [error, setError] = useState<ApiError>();
  const parentId = departmentId ?? departments[0]?.id ?? "";
  const wrong = {
    name: nameProblem(name, taken),
    quota: Number.isFinite(quota) && quota >= 0 ? undefined : "0 or more",
  };
  const submit = (event: React.FormEvent) => {
    event.preventDefault();
    setTried(true);
    if (wrong.name !== undefined || wrong.quota !== undefined || pending || !pool) return;
    setPending(true);
    setError(undefined);
    const nodePool = { id: pool.id, name: pool.name };
    post<Project>("/api/v1/org-unit/projects", {
      name,
      parentId,
      clusterId: server?.clusterId,
      resources: [{ nodePool, gpu: { deserved: quota } }],
    }).then(
      (created) => {
        onCreated(created.id);
        onClose();
      },
      (failure: ApiError) => {
        setPending(false);
        setError(failure);
      },
    );
  };
  return (
    <Dialog title="New project" isOpen onClose={onClose} isSheet>
      <form className={kit.field} style={{ gap: 16 }} onSubmit={submit}>
        <Select
          label="Scope: department"
          value={parentId}
          onChange={setDepartment}
          choices={departments}
        />
        <TextField
          label="Project name"
          help="lower-case letters, digits and -, begins with a letter; at most 49"
          value={name}
          onChange={setName}
          problem={tried || taken.includes(name) ? wrong.name : undefined}
          isRequired
          autoFocus
        />
        <NumberField
          label={`GPU devices (quota${pool ? ` in ${pool.name}` : ""})`}
          value={quota}
          onChange={setQuota}
          problem={tried ? wrong.quota : undefined}
        />
        {error && <Failure error={error} />}
        <div className={kit.actions}>
          <Button onPress={onClose}>CANCEL</Button>
          <Button type="submit" kind="main" isPending={pending}>
            CREATE PROJECT
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

function nameProblem(name: string, taken: string[]): string | undefined {
  if (name === "") return "a name is needed";
  if (!NAME.test(name)) return "lower-case letters, digits and -, beginning with a letter";
  return taken.includes(name) ? `there is a project ${name} already` : undefined;
}
