// Ctrl+K: jumps to a page, a workload or a project by its name, or runs a command.
import { useState } from "react";
import { useLocation } from "wouter";

import { type Command, CommandPalette } from "../kit/CommandPalette";
import { useSome } from "../live/client";

/** Names of one kind that are listed; with more, one searches on. */
const NAMES_MAX = 8;

interface Props {
  /** Pages and commands that there are for this user. */
  commands: Command[];
  onClose: () => void;
}

export default function Jump({ commands, onClose }: Props): React.ReactNode {
  const [words, setWords] = useState("");
  const [, navigate] = useLocation();
  const search = words.trim();
  // Without a word there is none to choose from.
  const to = search === "" ? 0 : NAMES_MAX;
  const workloads = useSome({ kind: "workload", search, sort: "name", to });
  const projects = useSome({ kind: "project", search, sort: "name", to });
  const letters = search.toLowerCase();
  const found: Command[] = [
    ...commands.filter(({ name }) => name.toLowerCase().includes(letters)),
    ...(projects?.objects ?? []).map(({ id, name }) => ({
      id: `project ${id}`,
      name,
      what: "project",
      run: () => navigate(`/projects?q=${encodeURIComponent(name)}`),
    })),
    ...(workloads?.objects ?? []).map(({ id, name, projectName }) => ({
      id: `workload ${id}`,
      name,
      what: `workload of ${projectName}`,
      run: () => navigate(`/workloads/${id}`),
    })),
  ];
  const more = [workloads, projects].reduce(
    (sum, some) => sum + Math.max(0, (some?.total ?? 0) - (some?.objects.length ?? 0)),
    0,
  );
  return (
    <CommandPalette
      title="Jump to"
      words={words}
      onWords={setWords}
      commands={found}
      more={to > 0 ? more : 0}
      onClose={onClose}
    />
  );
}
