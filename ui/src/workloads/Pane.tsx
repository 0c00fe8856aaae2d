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
import { Asked, Deleted, GoneRow, History, useEvents } from "./History";
import { type Place, PlaceButtons, PlaceOf } from "./Place";
import { Pods } from "./Pods";

interface Props {
  row: WorkloadRow;
  gone: boolean;
  tab: string | undefined;
  onTab: (tab: string) => void;
  place: Place;
  onAct: (action: ActionName) => void;
}

export function Pane({ row, gone, tab, onTab, place, onAct }: Props): React.ReactNode {
  const { info } = useSession();
  const actions = gone ? [] : actionsOf(info, row);
  const explain = {
    id: "explain",
    name: "Explain",
    content: (
      <>
        {/* Headings of a page leave out no level: its parts have the third. */}
        {place.isPage && <h2 className="visually-hidden">Explain</h2>}
        <Explain row={row} />
      </>
    ),
  };
  const events = {
    id: "events",
    name: "Event history",
    content: <History row={row} gone={gone} />,
  };
  const pods = { id: "pods", name: "Pods", content: <Pods row={row} /> };
  const details = { id: "details", name: "Details", content: <Details row={row} /> };
  const opensOnWhy = waits(row.phase) || row.lastEviction !== undefined;
  return (
    <PlaceOf label={`Workload ${row.name}`} place={place}>
      <div className={page.paneHead}>
        <div className={page.paneTitle}>
          {place.isPage ? <h1>{row.name}</h1> : <h2>{row.name}</h2>}
          {actions.map((action, at) => (
            // By its place: STOP becomes RUN, and the focus stays.
            // oxlint-disable-next-line react/no-array-index-key
            <Button key={at} onPress={() => onAct(action)}>
              {action}
            </Button>
          ))}
          <PlaceButtons {...place} />
        </div>
        <div className={page.row}>
          {gone ? (
            <GoneRow id={row.id} />
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
    </PlaceOf>
  );
}

/** Instead of the pane of a workload that is not there: its events, where they are kept. */
export function NoPane({ id, place }: { id: string; place: Place }): React.ReactNode {
  const asked = useEvents(id);
  const past = asked.data ?? [];
  // The server keeps nothing of an id that it does not know.
  const isUnknown = asked.error instanceof ApiError && asked.error.status === 404;
  const name = past.find(({ involvedObject: of }) => of.kind === "Workload")?.involvedObject.name;
  return (
    <PlaceOf
      label={
        name ? `Workload ${name}` : asked.data || isUnknown ? "Workload not found" : "Workload"
      }
      place={place}
    >
      <div className={page.scroll}>
        {asked.data || isUnknown ? (
          <Gone
            what={
              name ? `workload ${name} in the list any more` : "workload with this id in the list"
            }
            or="it ended long ago, "
            isPage={place.isPage}
          >
            <Deleted of={past} />
            {!place.isPage && <Button onPress={() => place.onGo(place.listAt)}>CLOSE</Button>}
          </Gone>
        ) : (
          asked.isPending && <Skeleton rows={6} height={30} />
        )}
        {past.length > 0 && <Asked asked={asked} />}
        {!asked.data && asked.error && !isUnknown && (
          <Failure error={asked.error} onRetry={() => void asked.refetch()} />
        )}
      </div>
    </PlaceOf>
  );
}
