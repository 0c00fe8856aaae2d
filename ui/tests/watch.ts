// Fails a test with an error, a request to another host, a refusal of the policy, a layout shift.
import type { Browser, BrowserContext, ConsoleMessage } from "@playwright/test";

import { ports } from "./ports";

/** A page may shift its layout by so much without an action of the user; Google's "good" is 0.1. */
const SHIFT_MAX = 0.02;

/** A request that gets no answer, among statuses. */
export const UNANSWERED = 0;

/** Failures of requests that a test causes: browsers report each as an error. */
interface Failures {
  address: RegExp;
  statuses: number[];
  happened: boolean;
}

/** Each entry of `faults` fails its test. */
export class Watch {
  readonly faults: string[] = [];
  readonly #texts: RegExp[] = [];
  readonly #failures: Failures[] = [];
  readonly #contexts: BrowserContext[] = [];
  #ended = false;

  /** Errors with this text are what the test provokes. */
  expectError(text: RegExp): void {
    this.#texts.push(text);
  }

  /** A request or more to these paths fails with one of these statuses: the test has it fail. */
  expectFailure(address: RegExp, ...statuses: number[]): void {
    this.#failures.push({ address, statuses, happened: false });
  }

  /** As `expectFailure`, where it depends on time if the page asks at all. */
  allowFailure(address: RegExp, ...statuses: number[]): void {
    this.#failures.push({ address, statuses, happened: true });
  }

  /** Watches all contexts that the browser opens from now on; what is returned ends that. */
  ofAll(browser: Browser): () => void {
    const open = browser.newContext.bind(browser);
    browser.newContext = async (options) => {
      const context = await open(options);
      await this.of(context);
      return context;
    };
    return () => {
      browser.newContext = open;
    };
  }

  async of(context: BrowserContext): Promise<void> {
    this.#contexts.push(context);
    await context.exposeFunction("reportShift", (shift: number, what: string) => {
      if (shift > SHIFT_MAX) this.#fault("layout shift", `${shift.toFixed(3)} ${what}`);
    });
    await context.exposeFunction("reportRefusal", (what: string) => this.#fault("policy", what));
    await context.addInitScript(observeShifts);
    await context.addInitScript(observeRefusals);
    context.on("console", (message) => {
      if (message.type() === "error" && !this.#isExpected(message)) {
        this.#fault("console", `${message.text()} ${message.location().url}`);
      }
    });
    context.on("weberror", (error) => this.#fault("error", error.error().message));
    context.on("request", (request) => {
      if (!isOurs(new URL(request.url()))) this.#fault("another host", request.url());
    });
  }

  #isExpected(message: ConsoleMessage): boolean {
    // The machine got or lost a network, as of a container; Chromium asks again by itself.
    if (message.text().includes("net::ERR_NETWORK_CHANGED")) return true;
    const [, status] = /Failed to load resource: .*status of (\d+)/u.exec(message.text()) ?? [];
    const failed = /Failed to load resource: net::ERR_/u.test(message.text()) ? UNANSWERED : status;
    if (failed === undefined || !URL.canParse(message.location().url)) return false;
    const { pathname } = new URL(message.location().url);
    const expected = this.#failures.filter(
      ({ address, statuses }) => address.test(pathname) && statuses.includes(Number(failed)),
    );
    for (const one of expected) one.happened = true;
    return expected.length > 0;
  }

  #fault(kind: string, text: string): void {
    if (this.#ended || this.#texts.some((one) => one.test(text))) return;
    this.faults.push(`${kind}: ${text}`);
  }

  /** The test is over. What pages reported last has arrived once they answer. */
  async end(): Promise<void> {
    const pages = this.#contexts.flatMap((context) => context.pages());
    await Promise.all(pages.map((page) => page.evaluate(() => 0).catch(() => 0)));
    for (const { address, statuses, happened } of this.#ended ? [] : this.#failures) {
      if (!happened) this.#fault("no failure", `${address.source} ${statuses.join(" or ")}`);
    }
    this.#ended = true;
  }
}

/** True if a server of the tests is there, or no server at all. */
function isOurs({ protocol, hostname, port }: URL): boolean {
  if (protocol === "data:" || protocol === "blob:") return true;
  return /^(127\.0\.0\.1|(.+\.)?localhost)$/u.test(hostname) && ports.has(Number(port));
}

/** Reports what the content policy refuses. */
function observeRefusals(): void {
  const { reportRefusal } = globalThis as unknown as { reportRefusal: (what: string) => void };
  document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) =>
    reportRefusal(`${violatedDirective} ${blockedURI}`),
  );
}

/** Reports the worst second-long run of shifts (Cumulative Layout Shift) of a page as it grows. */
function observeShifts(): void {
  const { reportShift } = globalThis as unknown as {
    reportShift: (shift: number, what: string) => void;
  };
  let sum = 0;
  let began = 0;
  let last = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries() as LayoutShift[]) {
      if (entry.hadRecentInput) continue;
      if (entry.startTime - last > 1000 || entry.startTime - began > 5000) {
        sum = 0;
        began = entry.startTime;
      }
      last = entry.startTime;
      sum += entry.value;
      const moved = entry.sources.map(({ node }) => {
        const element = node instanceof Element ? node : node?.parentElement;
        return element?.outerHTML.slice(0, 120) ?? "";
      });
      reportShift(sum, moved.join(" | "));
    }
  }).observe({ type: "layout-shift", buffered: true });
}

interface LayoutShift extends PerformanceEntry {
  value: number;
  hadRecentInput: boolean;
  sources: { node: Node | null }[];
}
