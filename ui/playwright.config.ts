// Browser tests: a real server for each worker, Debian's Chromium, nothing downloaded.
import { existsSync } from "node:fs";

import { defineConfig } from "@playwright/test";

const CHROMIUM = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

export default defineConfig({
  // `make ui-shots` takes the pictures, `make bench` measures.
  testDir: process.env.ELASTANE_UI_PART ?? "tests",
  retries: Number(process.env.PLAYWRIGHT_RETRIES ?? 0),
  workers: 2,
  fullyParallel: true,
  timeout: 120_000,
  expect: { timeout: 20_000 },
  // Measurements print their own lines.
  reporter: process.env.ELASTANE_UI_PART === "bench" ? [["dot"]] : [["list"]],
  use: {
    locale: "en-US",
    timezoneId: "UTC",
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? CHROMIUM.find((path) => existsSync(path)) ?? "",
      // Chromium as root has no sandbox of its own.
      args: [
        ...(process.getuid?.() === 0 ? ["--no-sandbox"] : []),
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
    },
  },
});
