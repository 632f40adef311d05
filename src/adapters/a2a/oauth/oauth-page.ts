import type { ServerResponse } from 'node:http'
import type { OAuthRequestInfo } from '../../../ports/oauth-api.js'

/** Reload interval of the waiting page, in seconds. */
const LOOK_SECONDS = 3

/**
 * Headers of all answers of the OAuth server: no framing by other pages, no Referer, no storing in caches (RFC 9700,
 * sections 4.2.4 and 4.16).
 */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff'
}

/**
 * The page on which a browser waits. It has no form and no script: only the operator decides, at the command line.
 * `command`: `a2a-node`, for the home of this node.
 */
export function waitingPage(command: string, code: string, { client, scopes, redirectUri }: OAuthRequestInfo): string {
  const where = redirectUri === null ? '' : `<p>The answer goes to <code>${escaped(redirectUri)}</code>.</p>`
  return page(
    `<p><strong>${escaped(client.name)}</strong> (${escaped(client.id)}) asks for access to the agents of this node.</p>
<ul>${scopes.map((scope) => `<li><code>${escaped(scope)}</code></li>`).join('')}</ul>
${where}
<p>If you asked for this, run on the machine of the node:</p>
<pre>${escaped(command)} a2a oauth approve ${escaped(code)}</pre>
<p>or <code>${escaped(command)} a2a oauth deny ${escaped(code)}</code>. This page goes on by itself. The code is good for ten minutes.</p>`,
    `<meta http-equiv="refresh" content="${LOOK_SECONDS}">`
  )
}

/** The page for users with the code of a device. `command`: as in {@link waitingPage}. */
export function devicePage(command: string): string {
  return page(`<p>A device asks for access to the agents of this node. If it is yours, run on the machine of the node:</p>
<pre>${escaped(command)} a2a oauth approve CODE</pre>
<p>with the code that the device shows. It is good for ten minutes.</p>`)
}

/** Answers with a page. */
export function answerPage(response: ServerResponse, html: string): void {
  const body = Buffer.from(html)
  response
    .writeHead(200, { ...SAFE_HEADERS, 'content-type': 'text/html; charset=utf-8', 'content-length': body.length })
    .end(body)
}

function page(body: string, head = ''): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${head}
<title>a2a-node: access</title></head><body><h1>Allow access?</h1>
${body}
</body></html>
`
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`)
}
