// The form of a new project: name, department, GPU quota in each node pool.
import { post } from "../api/http";
import { useSubmit } from "../api/submit";
import type { DepartmentForList, Project } from "../api/types";
import { Button } from "../kit/Button";
import { Actions, Dialog } from "../kit/Dialog";
import { NumberField, Select, TextField } from "../kit/Fields";
import { useKept } from "../kit/kept";
import kit from "../kit/kit.module.css";
import { Failure } from "../kit/States";
import { useAll, useServer, useSome } from "../live/client";

const NAME = /^[a-z]([a-z0-9-]{0,47}[a-z0-9])?$/u;

const LETTERS = "lower-case letters, digits and -, beginning with a letter and not ending with -";

interface Props {
  departments: DepartmentForList[];
  /** With the id of what was created. */
  onCreated: (id: string) => void;
  onClose: () => void;
}

interface Values {
  name: string;
  departmentId: string;
  /** GPUs by the id of the node pool; NaN while no number is typed. */
  quotas: Record<string, number | null>;
}

const NEW: Values = { name: "", departmentId: "", quotas: {} };

export function ProjectForm({ departments, onCreated, onClose }: Props): React.ReactNode {
  const server = useServer();
  const pools = useAll("node-pool", "name") ?? [];
  const [{ name, departmentId, quotas }, change, forget] = useKept("elastane-new-project", NEW);
  const isTaken = useIsTaken(name);
  const parentId = departments.some(({ id }) => id === departmentId)
    ? departmentId
    : (departments[0]?.id ?? "");
  const problem = nameProblem(name, isTaken);
  const isWrong = (poolId: string) => !(quotaOf(quotas, poolId) >= 0);
  const close = () => {
    forget();
    onClose();
  };
  const { tried, pending, error, submit } = useSubmit({
    isReady: problem === undefined && pools.length > 0 && !pools.some(({ id }) => isWrong(id)),
    send: () =>
      post<Project>("/api/v1/org-unit/projects", {
        name,
        parentId,
        clusterId: server?.clusterId,
        resources: pools.map((pool) => ({
          nodePool: { id: pool.id, name: pool.name },
          gpu: { deserved: quotaOf(quotas, pool.id) },
        })),
      }),
    onSent: ({ id }) => {
      onCreated(id);
      close();
    },
  });
  return (
    <Dialog title="New project" isOpen onClose={close} isSheet>
      <form className={kit.field} style={{ gap: 16 }} onSubmit={submit}>
        <Select
          label="Scope: department"
          value={parentId}
          onChange={(id) => change({ departmentId: id })}
          choices={departments}
        />
        <TextField
          label="Project name"
          help={`at most 49 ${LETTERS}`}
          value={name}
          onChange={(typed) => change({ name: typed })}
          problem={tried || isTaken ? (problem ?? error?.fields.name) : undefined}
          isRequired
          autoFocus
        />
        {pools.map((pool) => (
          <NumberField
            key={pool.id}
            label={`GPU devices (quota in ${pool.name})`}
            value={quotaOf(quotas, pool.id)}
            onChange={(gpus) => change({ quotas: { ...quotas, [pool.id]: gpus } })}
            problem={tried && isWrong(pool.id) ? "0 or more" : undefined}
          />
        ))}
        {error && <Failure error={error} />}
        <Actions>
          <Button onPress={close}>CANCEL</Button>
          <Button type="submit" kind="main" isPending={pending}>
            CREATE PROJECT
          </Button>
        </Actions>
      </form>
    </Dialog>
  );
}

/** The quota that was typed, else none; a text that is no number is kept as `null`. */
function quotaOf(quotas: Values["quotas"], poolId: string): number {
  const typed = quotas[poolId];
  return typed === undefined ? 0 : (typed ?? Number.NaN);
}

/** True if a project has the name now. */
function useIsTaken(name: string): boolean {
  const found = useSome({
    kind: "project",
    conditions: [{ field: "name", operator: "==", value: name }],
    to: 1,
  });
  return name !== "" && (found?.total ?? 0) > 0;
}

function nameProblem(name: string, isTaken: boolean): string | undefined {
  if (name === "") return "a name is needed";
  if (!NAME.test(name)) return `at most 49 ${LETTERS}`;
  return isTaken ? `there is a project ${name} already` : undefined;
}
