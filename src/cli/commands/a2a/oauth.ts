import { NodeError } from '../../../kit/errors.js'
import { formatDuration } from '../../../kit/units.js'
import type { OAuthClientInfo, OAuthRequestInfo } from '../../../ports/oauth-api.js'
import { canAsk, confirm } from '../../terminal/confirm.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import { given, isSet, textOption, textsOption, tierOption } from '../../options.js'
import type { Output } from '../../terminal/output.js'
import { type Cell, printTable } from '../../terminal/render.js'

/** `a2a client create`: `client_id` and `client_secret` on stdout, what they are good for on stderr. */
export const createOAuthClient: Action = async ({ output, api }, _args, options) => {
  const list = (name: string): readonly string[] | undefined => {
    const all = textsOption(options, name).flatMap((text) => text.split(',').filter((one) => one !== ''))
    return all.length === 0 ? undefined : all
  }
  const params = given({
    name: textOption(options, 'name'),
    isPublic: isSet(options, 'public') ? true : undefined,
    tier: tierOption(options, 'tier'),
    scopes: list('scope'),
    redirectUris: textsOption(options, 'redirectUri').length === 0 ? undefined : textsOption(options, 'redirectUri')
  })
  const made = await api().call('oauth.client.create', params)
  if (output.json) {
    output.object('oauth-client@1', made)
    return EXIT.ok
  }
  output.note(`Client ${made.id} (${wordsOf(made)}).`)
  if (made.secret !== null) output.note('Its secret is shown this once; the node keeps its hash alone.')
  output.note(`Its tokens come from ${made.issuer}/oauth/token. End it with:`)
  output.note(`  ${output.hint(`a2a-node a2a client revoke ${made.id}`)}`)
  output.print(`client_id ${made.id}`)
  if (made.secret !== null) output.print(`client_secret ${made.secret}`)
  return EXIT.ok
}

/** `a2a client ls`. */
export const listOAuthClients: Action = async ({ output, api }) => {
  const { clients } = await api().call('oauth.client.list', {})
  if (output.json) output.object('oauth-clients@1', { clients })
  else if (clients.length === 0) output.print('no clients')
  else {
    const rows = clients.map((one): Cell[] => [one.id, one.name, one.type, one.tier, one.scopes.join(' ')])
    await printTable(output, ['ID', 'NAME', 'TYPE', 'TIER', 'SCOPES'], rows)
  }
  return EXIT.ok
}

/** `a2a client revoke <id>`. */
export const revokeOAuthClient: Action = async ({ output, api }, [id = '']) => {
  const revoked = await api().call('oauth.client.revoke', { id })
  if (output.json) output.object('oauth-client-info@1', revoked)
  else output.print(`client ${revoked.id} (${revoked.name}) is revoked, with all its tokens`)
  return EXIT.ok
}

/** `a2a oauth ls`. */
export const listOAuthRequests: Action = async ({ output, api }) => {
  const { requests } = await api().call('oauth.requests', {})
  if (output.json) output.object('oauth-requests@1', { requests })
  else if (requests.length === 0) output.print('nobody waits')
  else {
    const rows = requests.map((one): Cell[] => [
      one.client.name,
      one.client.id,
      one.flow === 'code' ? 'browser' : 'device',
      one.scopes.join(' '),
      `in ${leftText(one)}`
    ])
    await printTable(output, ['CLIENT', 'ID', 'ON', 'SCOPES', 'EXPIRES'], rows)
  }
  return EXIT.ok
}

/** `a2a oauth approve <code>`: prints the client and its request, and asks for confirmation on a terminal. */
export const approveOAuth: Action = async ({ output, api }, [code = ''], options) => {
  if (!output.json && !isSet(options, 'yes') && canAsk(output)) {
    tell(output, await api().call('oauth.show', { code }))
    if (!(await confirm('allow this?'))) {
      throw new NodeError('CANCELED', 'nothing was allowed', { next: [`a2a-node a2a oauth deny ${code}`] })
    }
  }
  const request = await api().call('oauth.approve', { code })
  if (output.json) output.object('oauth-request@1', { ...request, decision: 'allowed' })
  else output.print(`allowed: ${request.client.name} (${request.client.id}) may use ${request.scopes.join(' ')}`)
  return EXIT.ok
}

/** `a2a oauth deny <code>`. */
export const denyOAuth: Action = async ({ output, api }, [code = '']) => {
  const request = await api().call('oauth.deny', { code })
  if (output.json) output.object('oauth-request@1', { ...request, decision: 'denied' })
  else output.print(`denied: ${request.client.name} (${request.client.id})`)
  return EXIT.ok
}

/** `a2a oauth show <code>`. */
export const showOAuth: Action = async ({ output, api }, [code = '']) => {
  const request = await api().call('oauth.show', { code })
  if (output.json) output.object('oauth-request@1', { ...request, decision: null })
  else tell(output, request)
  return EXIT.ok
}

/** `a2a oauth rotate-key`. */
export const rotateOAuthKey: Action = async ({ output, api }) => {
  const rotated = await api().call('oauth.rotate', {})
  if (output.json) output.object('oauth-key@1', rotated)
  else output.print(`tokens are signed with the new key ${rotated.kid}; those signed before are good until they expire`)
  return EXIT.ok
}

function tell(output: Output, request: OAuthRequestInfo): void {
  const { client, scopes, redirectUri, flow } = request
  output.print(
    `${client.name} (${client.id}) asks ${flow === 'code' ? 'in a browser' : 'on a device'} for ${scopes.join(' ')}`
  )
  if (redirectUri !== null) output.print(`the answer goes to ${redirectUri}`)
  output.print(`the code expires in ${leftText(request)}`)
}

function wordsOf({ name, type, tier, scopes }: OAuthClientInfo): string {
  return `${name}: ${type}, at most ${tier}, ${scopes.join(' ')}`
}

function leftText({ expiresAt }: OAuthRequestInfo): string {
  return formatDuration(Math.max(0, Math.round((Date.parse(expiresAt) - Date.now()) / 1000) * 1000))
}
