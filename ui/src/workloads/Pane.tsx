// The pane of a workload: its head with actions, and the tabs.
import { ApiError } from "../api/http";
import { useSession } from "../api/session";
import { Button } from "../kit/Button";
import page from "../kit/page.module.css";
import { Failure, Gone, Skeleton } from "../kit/States";
import { Status } from "../kit/Status";
import { Tabs } from "../kit/Tabs";
import { Age } from "../kit/time";
import { waits, type WorkloadRow } from "../live/rows";
import { type ActionName, actionsOf } from "./Act";
import { Details } from "./Details";
import { Explain } from "./Explain";
import { Asked, Deleted, DeletedRow, History, useEvents } from "./History";
import { Pods } from "./Pods";

interface Props {
  row: WorkloadRow;
  gone: boolean;
  tab: string | undefined;
  onTab: (tab: string) => void;
  onClose: () => void;
  onAct: (action: ActionName) => void;
}

export function Pane({ row, gone, tab, onTab, onClose, onAct }: Props): React.ReactNode {
  const { info } = useSession();
  const actions = gone ? [] : actionsOf(info, row);
  const explain = { id: "explain", name: "Explain", content: <Explain row={row} /> };
  const events = {
    id: "events",
    name: "Event history",
    content: <History row={row} gone={gone} />,
  };
  const pods = { id: "pods", name: "Pods", content: <Pods row={row} /> };
  const details = { id: "details", name: "Details", content: <Details row={row} /> };
  const opensOnWhy = waits(row.phase) || row.lastEviction !== undefined;
  return (
    <section
      className={page.pane}
      aria-label={`Workload ${row.name}`}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <div className={page.paneHead}>
        <div className={page.paneTitle}>
          <h2>{row.name}</h2>
          {actions.map((action) => (
            <Button key={action} onPress={() => onAct(action)}>
              {action}
            </Button>
          ))}
          <Button kind="plain" aria-label="Close the pane" onPress={onClose}>
            ✕
          </Button>
        </div>
        <div className={page.row}>
          {gone ? (
            <>
              <b>was deleted</b>
              <DeletedRow id={row.id} />
            </>
          ) : (
            <Status of={row.phase}>
              <Age of={row.phaseUpdatedAt} isStop />
            </Status>
          )}
          <span className="muted">
            {row.type} · {row.projectName}
          </span>
        </div>
      </div>
      <Tabs
        label={`About ${row.name}`}
        value={gone ? "events" : (tab ?? (opensOnWhy ? "explain" : "events"))}
        onChange={onTab}
        // Of a deleted workload the server has the events alone.
        tabs={gone ? [events] : [explain, events, pods, details]}
      />
    </section>
  );
}

/** Instead of the pane of a workload that is not there: its events, where they are kept. */
export function NoPane({ id, onClose }: { id: string; onClose: () => void }): React.ReactNode {
  const asked = useEvents(id);
  const past = asked.data ?? [];
  // The server keeps nothing of an id that it does not know.
  const isUnknown = asked.error instanceof ApiError && asked.error.status === 404;
  const name = past.find(({ involvedObject: of }) => of.kind === "Workload")?.involvedObject.name;
  return (
    <section
      className={page.pane}
      aria-label={
        name ? `Workload ${name}` : asked.data || isUnknown ? "Workload not found" : "Workload"
      }
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <div className={page.scroll}>
        {asked.data || isUnknown ? (
          <Gone
            what={
              name ? `workload ${name} in the list any more` : "workload with this id in the list"
            }
            or="it ended long ago, "
          >
            <Deleted of={past} />
            <Button onPress={onClose}>CLOSE</Button>
          </Gone>
        ) : (
          asked.isPending && <Skeleton rows={6} height={30} />
        )}
        {past.length > 0 && <Asked asked={asked} />}
        {!asked.data && asked.error && !isUnknown && (
          <Failure error={asked.error} onRetry={() => void asked.refetch()} />
        )}
      </div>
    </section>
  );
}
