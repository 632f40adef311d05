/** Path at which a node serves WebSockets. */
export const WEBSOCKET_PATH = '/mesh'
/** Characters of one URL, at most. */
export const WEBSOCKET_URL_MAX = 512

const URL_PATTERN = /^(wss?|https?):\/\/([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(\d{1,5}))?(\/[!-~]*)?$/i

/**
 * The URL of a WebSocket of a node: `https` becomes `wss`, `http` becomes `ws`, and a missing path becomes `/mesh`.
 * Null for any other text; a user, query or fragment has no place in it.
 */
export function websocketUrl(text: string): string | null {
  const [, scheme = '', host = '', port, path = '/'] = URL_PATTERN.exec(text.trim()) ?? []
  if (host === '' || text.length > WEBSOCKET_URL_MAX || Number(port ?? 1) > 65_535 || Number(port ?? 1) < 1) return null
  if (/[?#@\\]/.test(path)) return null
  const isSecure = scheme.toLowerCase() === 'wss' || scheme.toLowerCase() === 'https'
  const place = port === undefined ? host.toLowerCase() : `${host.toLowerCase()}:${Number(port)}`
  return `${isSecure ? 'wss' : 'ws'}://${place}${path === '/' ? WEBSOCKET_PATH : path}`
}
