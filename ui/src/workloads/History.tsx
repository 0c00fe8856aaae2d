// Events of a workload, newest first.
import {
  useInfiniteQuery,
  useQueryClient,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";

import { get } from "../api/http";
import type { Event2, EventsPage } from "../api/types";
import { Button } from "../kit/Button";
import page from "../kit/page.module.css";
import { Failure, Former, Skeleton } from "../kit/States";
import { CodeLink } from "../kit/Status";
import { useThrottled } from "../kit/throttle";
import { Clock, zone } from "../kit/time";
import { useConnection, useSome } from "../live/client";
import type { WorkloadRow } from "../live/rows";
import { WorkloadLink } from "./links";

/** Events of a request: more are shown one page at a time. */
const PAGE = 200;

/** Shortest time between two updates: what is read is not to move down with each of many events. */
const UPDATE_MS = 1500;

const CODE = /^[A-Z]\d{3}$/u;

/** Events of a workload, also of a deleted one; requested again when the moment changes. */
export function useEvents(id: string, ...moment: unknown[]): UseInfiniteQueryResult<Event2[]> {
  const client = useQueryClient();
  const text = useThrottled(JSON.stringify(moment), UPDATE_MS);
  const before = useRef(text);
  useEffect(() => {
    if (before.current === text) return;
    before.current = text;
    void client.invalidateQueries({ queryKey: ["events", id] });
  }, [client, id, text]);
  return useInfiniteQuery({
    queryKey: ["events", id],
    queryFn: ({ pageParam: offset }) => {
      const query = `limit=${PAGE}&offset=${offset}&sortOrder=desc`;
      return get<EventsPage>(`/api/v1/workloads/${id}/events?${query}`);
    },
    initialPageParam: 0,
    getNextPageParam: ({ next }) => next,
    select: ({ pages }) => once(pages.flatMap(({ events }) => events)),
  });
}

/** Each event once: one that came between two requests moves the others to the next page. */
function once(events: Event2[]): Event2[] {
  return [...new Map(events.map((event) => [event.id, event])).values()];
}

interface HistoryProps {
  row: WorkloadRow;
  gone: boolean;
}

/** The number of the newest event of a workload that came while the page was open. */
function useNewest(id: string): number | undefined {
  const conditions = [{ field: "workloadId", operator: "==" as const, value: id }];
  const spec = { kind: "event" as const, conditions, sort: "seq", descending: true, to: 1 };
  return useSome(spec)?.objects[0]?.seq;
}

/** How often something became true. */
function useTimes(is: boolean): number {
  const [{ was, times }, set] = useState({ was: is, times: 0 });
  if (was !== is) set({ was: is, times: is ? times + 1 : times });
  return times;
}

export function History({ row, gone }: HistoryProps): React.ReactNode {
  const { id, reasons } = row;
  const newest = useNewest(id);
  // What happened without a connection is not sent afterwards.
  const times = useTimes(useConnection().state === "live");
  // Events about a reason are not sent, since the row has it.
  const codes = reasons?.map(({ code }) => code);
  const asked = useEvents(id, newest, codes, times, gone);
  const isDeleted = asked.data?.some(isDeletion);
  return (
    <>
      <Asked asked={asked} />
      {gone && !isDeleted && !asked.isPending && (
        <p className="muted">It ended long ago, or your roles do not allow you to see it.</p>
      )}
    </>
  );
}

/** When the deletion was requested, and by whom, in the words of its event. */
export function Deleted({ of }: { of: Event2[] }): React.ReactNode {
  const event = of.find(isDeletion);
  if (!event) return null;
  return (
    <span>
      <Clock at={event.createdAt} isStop /> · {event.message}
    </span>
  );
}

const isDeletion = ({ reason }: Event2) => reason === "Deleting";

/** The fate of a workload whose row is not sent any more: only its events tell a deletion. */
export function GoneRow({ id }: { id: string }): React.ReactNode {
  const { data } = useEvents(id);
  if (!data?.some(isDeletion)) return <b>is not in the list any more</b>;
  return (
    <>
      <b>was deleted</b>
      <Deleted of={data} />
    </>
  );
}

interface AskedProps {
  asked: UseInfiniteQueryResult<Event2[]>;
}

/** Events with a button for older ones; after a failure those that are known, with their time. */
export function Asked({ asked }: AskedProps): React.ReactNode {
  const { data, error, dataUpdatedAt, hasNextPage, isFetchingNextPage } = asked;
  const again = () => void (asked.isFetchNextPageError ? asked.fetchNextPage() : asked.refetch());
  if (!data) {
    if (error) return <Failure error={error} onRetry={again} />;
    return <Skeleton rows={6} height={30} />;
  }
  return (
    <Former error={error} at={dataUpdatedAt} onRetry={again}>
      <Events of={data} />
      {hasNextPage && (
        <Button isDisabled={isFetchingNextPage} onPress={() => void asked.fetchNextPage()}>
          Show older
        </Button>
      )}
    </Former>
  );
}

/** Events with their exact times: none of the many has to be a stop of Tab. */
function Events({ of }: { of: Event2[] }): React.ReactNode {
  if (of.length === 0) return <p className="muted">No events of it are kept.</p>;
  return (
    <div className={page.stack}>
      <p className="muted">Times are in {zone()}.</p>
      <ul className={page.lines}>
        {of.map(({ id, createdAt, type, reason, message, involvedObject, beneficiary }) => (
          <li key={id} style={{ fontSize: 13 }}>
            <span className={page.row}>
              <span className="muted">
                <Clock at={createdAt} seconds />
              </span>
              {CODE.test(reason) ? <CodeLink>{reason}</CodeLink> : <b>{reason}</b>}
              {type === "Warning" && <span style={{ color: "var(--evicted)" }}>▲ warning</span>}
              {involvedObject.kind === "Pod" && (
                <span className="muted">{involvedObject.name}</span>
              )}
            </span>
            <span>{message}</span>
            {beneficiary && (
              <p>
                For <WorkloadLink of={beneficiary} />
              </p>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
