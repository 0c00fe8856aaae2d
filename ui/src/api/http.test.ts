// Tests of requests: answers that are not of the server.
import { afterEach, expect, test, vi } from "vitest";

afterEach(() => vi.unstubAllGlobals());

test("a page of a proxy with status 200: a sentence, not the fault of the parser", async () => {
  vi.stubGlobal("addEventListener", () => undefined);
  const { get } = await import("./http");
  const headers = { "content-type": "text/html; charset=utf-8", "x-request-id": "r1" };
  vi.stubGlobal("fetch", () => Promise.resolve(new Response("<html>", { headers })));
  await expect(get("/x")).rejects.toMatchObject({
    message: expect.stringContaining("not of Elastane but text/html") as string,
    status: 200,
    requestId: "r1",
  });
});
