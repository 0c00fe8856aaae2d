// Answers of the server that are kept, as long as this is shown.
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { useState } from "react";

export function Answers({ children }: { children: React.ReactNode }): React.ReactNode {
  const [queries] = useState(
    () =>
      new QueryClient({
        // A server on this machine answers without any network.
        defaultOptions: {
          queries: { retry: false, refetchOnWindowFocus: false, networkMode: "always" },
          mutations: { networkMode: "always" },
        },
      }),
  );
  return <QueryClientProvider client={queries}>{children}</QueryClientProvider>;
}
