// Input of the form of a new workload, and the request that it becomes.

export interface Draft {
  projectId: string | null;
  /** The name is shown in the message that the template no longer exists. */
  template: { id: string; name: string } | null;
  name: string;
  environment: string | null;
  compute: string | null;
  command: string;
  arguments: string;
}

/** The draft that a step shows, and the change of it. */
export interface StepProps {
  draft: Draft;
  change: (next: Partial<Draft>) => void;
}

/** Said of a template that is chosen no more. */
export const GONE = "was deleted, or is not for this project";

/** The choice in a gallery that leaves environment or compute resource to the template. */
export const AS_IN_TEMPLATE = "as-in-the-template";

/** The key under which it is kept. */
export const DRAFT = "elastane-new-training";

export const EMPTY: Draft = {
  projectId: null,
  template: null,
  name: "",
  environment: null,
  compute: null,
  command: "",
  arguments: "",
};

/** The asset that the request names; none where the template's is taken. */
function named(asset: string | null): string | null | undefined {
  return asset === AS_IN_TEMPLATE ? undefined : asset;
}

/** The body of the creation. */
export function toRequest(draft: Draft, clusterId: string | undefined): object {
  const { projectId, name, template, environment, compute, command } = draft;
  const args = draft.arguments;
  return {
    name,
    projectId,
    clusterId,
    ...(template && { templateId: template.id }),
    spec: {
      ...(command.trim() && { command: command.trim() }),
      ...(args.trim() && { args: args.trim() }),
      assets: { environment: named(environment), compute: named(compute) },
    },
  };
}

/** Problem of a name; `project` is the one in which a living workload has it. */
export function nameProblem(name: string, project: string | undefined): string | undefined {
  if (name === "") return "a name is needed";
  if (!/^[a-z]([a-z0-9-]*[a-z0-9])?$/u.test(name)) {
    return "lower-case letters, digits and -, beginning with a letter and not ending with -";
  }
  return project && `the name is taken in ${project}; choose a different one`;
}
