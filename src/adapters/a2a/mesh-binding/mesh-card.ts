import { isRecord, parseJson } from '../../../kit/json.js'
import { type MeshReach, meshFetch } from './mesh-client.js'
import { readMeshUrl } from './mesh-uri.js'
import { MAX_REMOTE_CARD_BYTES } from '../remote/remote-card.js'
import { RemoteFault } from '../remote/remote-fault.js'

/** An agent of another member, and the calling agent. */
export interface MeshAgent {
  readonly url: string
  /** The calling agent of this node; null: its operator. */
  readonly agent: string | null
}

/**
 * Fetches the card of an agent of another member. `reached` is the card with the mesh URL as its only interface; other
 * interfaces are ignored. @throws RemoteFault
 */
export async function meshCard(
  reach: MeshReach,
  { url, agent }: MeshAgent,
  signal: AbortSignal
): Promise<{ readonly card: unknown; readonly reached: unknown }> {
  if (readMeshUrl(url) === null)
    throw new RemoteFault(
      'unsent',
      'a URL of the mesh is a2a-mesh://<node>/agents/<id>, with the key or the name of the node'
    )
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard' })
  const response = await meshFetch(reach, { agent, maxBytes: MAX_REMOTE_CARD_BYTES })(url, {
    method: 'POST',
    body,
    headers: { 'a2a-version': '1.0' },
    signal
  })
  const parsed = parseJson(await response.text())
  const answer = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  const { result: card, error } = answer
  if (isRecord(error)) throw new RemoteFault('refused', `its card is not there: ${String(error['message'])}`)
  if (!isRecord(card)) throw new RemoteFault('answered', 'its card is not to be read')
  return {
    card,
    reached: { ...card, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
  }
}
