import { z } from 'zod'
import { WEBSOCKET_URL_MAX, websocketUrl } from '../../kit/net/websocket-url.js'
import { listenAddress } from '../public-url.js'
import type { Setting } from '../settings.js'

/** URLs of one list, at most. */
const MAX_URLS = 4

const urlSchema = z
  .string()
  .max(WEBSOCKET_URL_MAX)
  .refine((text) => websocketUrl(text) !== null)
  .transform((text) => websocketUrl(text) ?? text)

function urls(about: string): Setting<readonly string[]> {
  return {
    schema: z.array(urlSchema).max(MAX_URLS),
    fallback: [],
    form: 'list',
    unit: null,
    allowed: `a list of wss:// or ws:// URLs, at most ${MAX_URLS}; without a path they get /mesh`,
    about
  }
}

const listen: Setting<string | null> = {
  schema: z
    .string()
    .max(262)
    .refine((text) => listenAddress(text) !== null)
    .nullable(),
  fallback: null,
  form: 'text',
  unit: null,
  allowed: 'PORT or HOST:PORT, as http.listen has it',
  about: 'Where members connect by WebSocket when UDP does not pass, at /mesh; a reverse proxy makes wss:// of it.'
}

/** The section `websocket`. */
export const WEBSOCKET = {
  listen,
  urls: urls('URLs under which other machines reach it. Default: the addresses of this machine that it listens on.'),
  via: urls('URLs of members to stay connected to by WebSocket, also for a join.')
}
