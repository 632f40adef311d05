import { websocketUrl } from '../../kit/net/websocket-url.js'
import type { CardBody } from './card.js'

/** WebSocket URLs of one node that count, at most. */
const MAX_URLS = 4

/** The valid WebSocket URLs of a card, at most 4, in its order. */
export function websocketUrlsOf({ endpoints }: Pick<CardBody, 'endpoints'>): readonly string[] {
  return endpoints
    .flatMap(({ transport, address = '' }) => (transport === 'websocket' ? [websocketUrl(address)] : []))
    .filter((url) => url !== null)
    .slice(0, MAX_URLS)
}
