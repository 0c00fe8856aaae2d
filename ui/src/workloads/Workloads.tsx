// The page of workloads: the grid, and the pane of the chosen one.
import { useMemo, useState } from "react";
import { useLocation, useParams, useRoute, useSearch } from "wouter";

import { useMay, useSession } from "../api/session";
import { Button } from "../kit/Button";
import { Menu } from "../kit/Menu";
import page from "../kit/page.module.css";
import { Command, Empty } from "../kit/States";
import { WORKLOAD_PAGE } from "../live/address";
import { useAll, useServer, useView } from "../live/client";
import { LiveGrid } from "../live/LiveGrid";
import { NoRole } from "../live/NoRole";
import type { Picked } from "../live/picked";
import { PHASES, type WorkloadRow } from "../live/rows";
import { Act, type ActionName, actionsOf, mayAct } from "./Act";
import { ActMany } from "./ActMany";
import { columnsOf } from "./columns";
import { NoPane, Pane } from "./Pane";
import { RowMenu, TAB_KEYS } from "./RowMenu";

const KEYS: Record<string, ActionName> = { s: "STOP", r: "RUN", Delete: "DELETE" };

const pickActions = (picked: Picked) => <ActMany picked={picked} />;

export default function Workloads(): React.ReactNode {
  const { id, tab } = useParams<{ id?: string; tab?: string }>();
  const query = useSearch();
  const [, navigate] = useLocation();
  const mayRead = useMay("workloads", "read");
  const mayCreate = useMay("trainings", "create");
  const { info } = useSession();
  const departments = useAll("department", "name") ?? [];
  // As a text: the columns stay the same while only the use of departments changes.
  const names = JSON.stringify(departments.map((one) => [one.id, one.name]));
  const cluster = useServer()?.clusterName;
  const columns = useMemo(
    () => columnsOf(JSON.parse(names) as [string, string][], cluster),
    [names, cluster],
  );
  const [act, setAct] = useState<{ id: string; action: ActionName }>();
  const [menu, setMenu] = useState<{ row: WorkloadRow; cell: Element | null }>();
  const [isPage] = useRoute(WORKLOAD_PAGE);
  const listAt = `/workloads${query && `?${query}`}`;
  /** The address of a workload beside the list, or as a page; the list keeps its state in it. */
  const addressOf = (of: string, at = tab, asPage = isPage) =>
    `/workloads/${asPage ? "page/" : ""}${of}${at ? `/${at}` : ""}${query && `?${query}`}`;
  if (!mayRead) return <NoRole what="workloads" resource="workloads" />;
  const create = () => navigate("/workloads/new/training");
  const place = { isPage, listAt, pageAt: addressOf(id ?? "", tab, true), onGo: navigate };
  return (
    <>
      <div className={page.top}>
        <h1>Workloads</h1>
        <span className={page.grow} />
        {mayCreate && (
          <Menu
            kind="main"
            label="+NEW WORKLOAD"
            name="+NEW WORKLOAD"
            actions={[{ id: "training", name: "Training", keys: "c t", run: create }]}
          />
        )}
      </div>
      <div
        className={page.split}
        data-open={id !== undefined || undefined}
        data-page={isPage || undefined}
      >
        <LiveGrid
          kind="workload"
          label="Workloads"
          columns={columns}
          filters={[
            { field: "phase", name: "Status", values: PHASES },
            { field: "projectName", name: "Project", of: { kind: "project", field: "name" } },
          ]}
          sort="createdAt"
          descending
          selected={id}
          onOpen={(next, asPage) => navigate(addressOf(next, "", asPage))}
          onKey={(key, row) => {
            const closes = key === "Escape" && id !== undefined;
            if (closes) navigate(listAt);
            const action = KEYS[key];
            const isAllowed = row && action && actionsOf(info, row).includes(action);
            if (isAllowed) setAct({ id: row.id, action });
            const openTab = row && TAB_KEYS[key];
            if (openTab) navigate(addressOf(row.id, openTab));
            if (row && key === ".") setMenu({ row, cell: document.activeElement });
            return closes || key === "." || Boolean(action ?? openTab);
          }}
          {...(mayAct(info) && { pickActions })}
          empty={
            <Empty title="No workloads yet">
              <p className="muted">A workload is what runs on GPUs: a training, a workspace.</p>
              <Command text="runai submit train1 -i IMAGE -g 1 -p PROJECT" />
              {mayCreate && <Button onPress={create}>Create a training</Button>}
            </Empty>
          }
        />
        {id && (
          <Chosen
            id={id}
            waiting={<div className={page.pane} />}
            none={<NoPane id={id} place={place} />}
          >
            {(row, gone) => (
              <Pane
                row={row}
                gone={gone}
                tab={tab}
                onTab={(next) => navigate(addressOf(id, next))}
                place={place}
                onAct={(action) => setAct({ id, action })}
              />
            )}
          </Chosen>
        )}
      </div>
      {menu && (
        <RowMenu
          {...menu}
          actions={actionsOf(info, menu.row)}
          onAct={(action) => setAct({ id: menu.row.id, action })}
          onOpen={(next) => navigate(addressOf(menu.row.id, next))}
          onClose={() => setMenu(undefined)}
        />
      )}
      {act && (
        <Chosen id={act.id}>
          {(row) => <Act row={row} action={act.action} onClose={() => setAct(undefined)} />}
        </Chosen>
      )}
    </>
  );
}

interface ChosenProps {
  id: string;
  children: (row: WorkloadRow, gone: boolean) => React.ReactNode;
  /** Shown until it is known: keeps the place. */
  waiting?: React.ReactNode;
  /** Shown if there was none all the time. */
  none?: React.ReactNode;
}

/** The live row of one workload; the last one that was seen after it is gone. */
function Chosen({ id, children, waiting, none }: ChosenProps): React.ReactNode {
  const answer = useView({
    kind: "workload",
    conditions: [{ field: "id", operator: "==", value: id }],
  });
  const row = answer?.rows[0]?.object;
  const [last, setLast] = useState<WorkloadRow>();
  if (row && row !== last) setLast(row);
  const shown = row ?? (last?.id === id ? last : undefined);
  if (shown) return children(shown, row === undefined);
  return answer ? none : waiting;
}
