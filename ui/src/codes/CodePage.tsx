// The page of a reason code: its meaning, its numbers and the remedy.
import { useQuery } from "@tanstack/react-query";
import { useParams } from "wouter";

import { get } from "../api/http";
import type { CodePage } from "../api/types";
import page from "../kit/page.module.css";
import { Prose } from "../kit/Prose";
import { Failure, Skeleton } from "../kit/States";

/** Pages of other codes are served; other documents are not. */
function addressOf(to: string): string | undefined {
  const [, code] = /^([A-Z]\d{3})\.md(#|$)/u.exec(to) ?? [];
  return code && `/codes/${code}`;
}

export default function Code(): React.ReactNode {
  const { code = "" } = useParams<{ code: string }>();
  const { data, error, refetch } = useQuery({
    queryKey: ["code", code],
    queryFn: () => get<CodePage>(`/elastane/v1/codes/${encodeURIComponent(code)}`),
  });
  return (
    <>
      <div className={page.top}>
        <h1>
          {data?.code ?? code} {data?.name}
        </h1>
      </div>
      {error && <Failure error={error} onRetry={() => void refetch()} />}
      {!data && !error && <Skeleton rows={4} height={24} />}
      {data && <Prose addressOf={addressOf}>{data.text}</Prose>}
    </>
  );
}
