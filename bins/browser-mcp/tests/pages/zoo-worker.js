addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  if (event.request.url.endsWith("/made-up")) event.respondWith(new Response("words of the worker"));
});
