/** What `/` shows when the service runs from sources that were never built. Without style: the policy allows none here. */
export function notBuiltPage(version: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Slotkeeper</title></head>
<body>
<h1>Slotkeeper ${version}</h1>
<p>The service is running, but its dashboard has not been built. Run <code>npm run build</code> and restart the service.</p>
<ul>
<li><a href="/readyz">/readyz</a>: whether the service can grant slots</li>
<li><a href="/livez">/livez</a>: whether the process runs</li>
<li><a href="/metrics">/metrics</a>: metrics, with a bearer token or, if none is set, from this machine</li>
<li><a href="/openapi.json">/openapi.json</a>: the HTTP contract</li>
</ul>
</body>
</html>
`;
}
