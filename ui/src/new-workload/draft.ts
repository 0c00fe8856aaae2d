// What is typed into the form of a new workload: kept until it is created or discarded, and turned
// into the request.

export interface Draft {
  projectId: string | null;
  name: string;
  environment: string | null;
  compute: string | null;
  command: string;
  arguments: string;
}

const STORED = "elastane-new-training";

export const EMPTY: Draft = {
  projectId: null,
  name: "",
  environment: null,
  compute: null,
  command: "",
  arguments: "",
};

/** The draft of this tab. */
export function loadDraft(): Draft {
  try {
    const stored = sessionStorage.getItem(STORED);
    return stored ? { ...EMPTY, ...(JSON.parse(stored) as Partial<Draft>) } : EMPTY;
  } catch {
    return EMPTY;
  }
}

export function keepDraft(draft: Draft | null): void {
  try {
    if (draft) sessionStorage.setItem(STORED, JSON.stringify(draft));
    else sessionStorage.removeItem(STORED);
  } catch {
    // Storage is refused: the draft lives as long as the page.
  }
}

/** The body of the creation. */
export function toRequest(draft: Draft, clusterId: string | undefined): object {
  const { projectId, name, environment, compute, command } = draft;
  const args = draft.arguments;
  return {
    name,
    projectId,
    clusterId,
    spec: {
      ...(command.trim() && { command: command.trim() }),
      ...(args.trim() && { args: args.trim() }),
      assets: { environment, compute },
    },
  };
}

/** What is wrong with a name; `taken` are those of living workloads of the project. */
export function nameProblem(name: string, taken: boolean, project: string): string | undefined {
  if (name === "") return "a name is needed";
  if (!/^[a-z]([a-z0-9-]*[a-z0-9])?$/u.test(name)) {
    return "lower-case letters, digits and -, beginning with a letter and not ending with -";
  }
  return taken ? `the name is taken in ${project}; choose a different one` : undefined;
}
