// Faults of the worker. No browser shows the console of a shared worker with that of a page, where
// tests and bug reports look. Knows nothing of tabs.

/** Passes on each uncaught error, each unhandled rejection and each refusal of the policy of a scope. */
export function watchFaults(scope: EventTarget, tell: (fault: string) => void): void {
  scope.addEventListener("error", (event) => {
    const { error, message } = event as ErrorEvent;
    tell(textOf(error ?? message));
  });
  scope.addEventListener("unhandledrejection", (event) =>
    tell(`unhandled rejection: ${textOf((event as PromiseRejectionEvent).reason)}`),
  );
  scope.addEventListener("securitypolicyviolation", (event) => {
    const { violatedDirective, blockedURI } = event as SecurityPolicyViolationEvent;
    tell(`refused by the policy: ${violatedDirective} ${blockedURI}`);
  });
}

/** The stack has the message in Chromium, and not in Firefox. */
function textOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { stack = "" } = error;
  return stack.includes(error.message) ? stack : `${String(error)}\n${stack}`;
}
