// How the interface is built: reproducible names and bytes, one file for each group of libraries.
import optimizeLocales from "@react-aria/optimize-locales-plugin";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

import { licences } from "./build/licences.ts";
import { digest, sources } from "./build/sources.ts";
import { trustedTypes } from "./build/trusted-types.ts";

/** The server that `make ui-dev` talks to. */
const server = process.env.ELASTANE_URL ?? "http://127.0.0.1:7070";

const proxied = {
  target: server,
  changeOrigin: true,
  configure: (proxy: {
    on: (event: "proxyReq", then: (request: OutgoingRequest) => void) => void;
  }) =>
    proxy.on("proxyReq", (request) => {
      if (request.getHeader("origin")) request.setHeader("origin", server);
    }),
};

interface OutgoingRequest {
  getHeader: (name: string) => unknown;
  setHeader: (name: string, value: string) => void;
}

export default defineConfig({
  base: "/",
  // The version of this page: the server has another one after an upgrade.
  define: { "import.meta.env.UI_DIGEST": JSON.stringify(digest()) },
  plugins: [
    trustedTypes(),
    react(),
    { ...optimizeLocales.vite({ locales: ["en-US"] }), enforce: "pre" as const },
    licences(),
    sources(),
  ],
  server: {
    port: 5173,
    proxy: { "/api": proxied, "/elastane": proxied },
  },
  worker: { format: "iife", rollupOptions: { output: { entryFileNames: "_ui/[name]-[hash].js" } } },
  build: {
    outDir: "../crates/ui-dist/dist",
    emptyOutDir: true,
    assetsDir: "_ui",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            {
              name: "react",
              test: /node_modules\/(react|react-dom|scheduler|wouter|regexparam)\//,
            },
            { name: "query", test: /node_modules\/@tanstack\// },
          ],
        },
      },
    },
  },
  test: { include: ["src/**/*.test.ts"] },
} as Parameters<typeof defineConfig>[0]);
