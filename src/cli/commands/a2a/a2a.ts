import { TOKEN_TTL_MAX_MS } from '../../../adapters/control/terms.js'
import { formatDuration } from '../../../kit/units.js'
import type { TokenInfo } from '../../../ports/token-api.js'
import type { Action } from '../../context.js'
import { EXIT } from '../../exit-codes.js'
import {
  durationOption,
  given,
  type Options,
  sandboxOption,
  scopesOption,
  textOption,
  tierOption
} from '../../options.js'
import { type Cell, printTable } from '../../terminal/render.js'
import { agoText } from '../../words.js'

/** `a2a token create`: the token alone on stdout, what it is good for on stderr. */
export const createToken: Action = async ({ output, api }, _args, options) => {
  const params = given({
    name: textOption(options, 'name'),
    tier: tierOption(options, 'tier'),
    sandboxId: sandboxOption(options, 'sandbox'),
    scopes: scopesOption(options, 'scope'),
    ttlMs: ttlOption(options)
  })
  const made = await api().call('token.create', params)
  if (output.json) {
    const { id, token, name, tier, sandboxId, scopes, expiresAt } = made
    output.object('token@1', { id, token, name, tier, sandboxId, scopes, expiresAt })
    return EXIT.ok
  }
  output.note(`Token ${made.id} (${wordsOf(made)}). It is shown only now; every holder can use it. Revoke it with:`)
  output.note(`  ${output.hint(`a2a-node a2a token revoke ${made.id}`)}`)
  const { http } = await api().call('node.info', {})
  if (http === null)
    output.note(`This node serves no HTTP: start it with ${output.hint('a2a-node start --http <[host:]port>')}`)
  output.print(made.token)
  return EXIT.ok
}

/** `never` for a token without an end. @throws NodeError USAGE */
function ttlOption(options: Options): number | null | undefined {
  return textOption(options, 'ttl') === 'never'
    ? null
    : durationOption(options, 'ttl', { minMs: 1000, maxMs: TOKEN_TTL_MAX_MS })
}

/** `a2a token ls`. */
export const listTokens: Action = async ({ output, api }) => {
  const { tokens } = await api().call('token.list', {})
  if (output.json) output.object('tokens@1', { tokens })
  else if (tokens.length === 0) output.print('no tokens')
  else {
    const rows = tokens.map((one): Cell[] => [
      one.id,
      one.name,
      one.tier,
      one.sandboxId ?? '-',
      one.scopes.join(','),
      { text: one.state, style: one.state === 'active' ? 'green' : 'dim' },
      one.expiresAt === null ? 'never' : one.state === 'active' ? `in ${leftText(one.expiresAt)}` : '-',
      agoText(one.lastUsedAt, Date.now())
    ])
    await printTable(output, ['ID', 'NAME', 'TIER', 'SANDBOX', 'SCOPES', 'STATE', 'EXPIRES', 'USED'], rows)
  }
  return EXIT.ok
}

/** `a2a token revoke <id>`. */
export const revokeToken: Action = async ({ output, api }, [id = '']) => {
  const revoked = await api().call('token.revoke', { id })
  if (output.json) output.object('token-info@1', revoked)
  else output.print(`token ${revoked.id} (${revoked.name}) is revoked`)
  return EXIT.ok
}

function wordsOf({ name, tier, sandboxId, scopes, expiresAt }: TokenInfo): string {
  const sandbox = sandboxId === null ? '' : ` in sandbox ${sandboxId}`
  return `${name}: tier ${tier}${sandbox}, scopes ${scopes.join(' and ')}, ${expiresAt === null ? 'without an end' : `for ${leftText(expiresAt)}`}`
}

function leftText(until: string): string {
  return formatDuration(Math.max(0, Math.round((Date.parse(until) - Date.now()) / 1000) * 1000))
}
