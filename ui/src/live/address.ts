// The state of a list in its address: search, conditions, order.
import { useCallback, useMemo } from "react";
import { useLocation, useSearch } from "wouter";

import { type Condition, parseCondition, printCondition } from "./conditions";

/** The address of a workload as a page of its own, without the list beside it. */
export const WORKLOAD_PAGE = "/workloads/page/:id/:tab?";

/** Filters, order and columns chosen for a list. */
export interface ListState {
  search: string;
  conditions: Condition[];
  sort: string | undefined;
  descending: boolean;
  /** The ids of the columns; left out for the usual ones. */
  columns?: string[] | undefined;
}

/** Reads `?q=text&f=phase==Running|Pending&sort=-createdAt`. Invalid conditions are left out. */
export function parseList(query: string): ListState {
  const values = new URLSearchParams(query);
  const sort = values.get("sort") ?? "";
  return {
    search: values.get("q") ?? "",
    conditions: values.getAll("f").flatMap((text) => parseCondition(text) ?? []),
    sort: sort.replace(/^-/u, "") || undefined,
    descending: sort.startsWith("-"),
    columns: values.get("cols")?.split(","),
  };
}

/** The other way; empty for a list in which nothing is chosen. */
export function printList(state: ListState): string {
  const { search, conditions, sort, descending, columns } = state;
  const values = new URLSearchParams();
  if (search) values.set("q", search);
  for (const condition of conditions) values.append("f", printCondition(condition));
  if (sort) values.set("sort", `${descending ? "-" : ""}${sort}`);
  if (columns) values.set("cols", columns.join(","));
  const text = values.toString();
  return text && `?${text}`;
}

/** The list state of the address, and how to change it. */
export function useList(): [ListState, (change: Partial<ListState>) => void] {
  const query = useSearch();
  const [location, navigate] = useLocation();
  const state = useMemo(() => parseList(query), [query]);
  const change = useCallback(
    (next: Partial<ListState>) =>
      navigate(`${location}${printList({ ...state, ...next })}`, { replace: true }),
    [location, navigate, state],
  );
  return [state, change];
}
