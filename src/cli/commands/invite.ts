import { NodeError } from '../../kit/errors.js'
import { areGuestsAsked, TRUST_WORDS } from '../../kit/names/trust.js'
import { shown } from '../../kit/text.js'
import { formatDuration } from '../../kit/units.js'
import type { Trust } from '../../domain/membership/types.js'
import type { DocumentInfo } from '../../ports/document-api.js'
import type { Calls } from '../../ports/node-api.js'
import { noteOwnWriters } from '../documents/facts.js'
import { canAsk, confirm } from '../terminal/confirm.js'
import { emptyText, hintedAll, networkProblems, noteProblems } from '../terminal/banner.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { countOption, durationOption, given, isSet, type Options, sandboxOption, tierOption } from '../options.js'
import { installation, joinLines } from '../start/install.js'
import type { Output } from '../terminal/output.js'
import { type Cell, plural, printTable } from '../terminal/render.js'

/** `invite`: the code alone on stdout, what it is good for on stderr. */
export const invite: Action = async ({ output, api }, _args, options) => {
  const params = given({
    trust: await trustOption(output, options),
    tier: tierOption(options, 'tier'),
    admin: isSet(options, 'admin') ? true : undefined,
    ttlMs: durationOption(options, 'ttl', { minMs: 1000 }),
    uses: countOption(options, 'uses', [1, 1000]),
    sandboxId: sandboxOption(options, 'sandbox')
  })
  const made = await api().call('invite.create', params)
  const { network, problems, websocketUrls = [] } = await api().call('node.status', {})
  const unfound = networkProblems(problems)
  const { longCode } = made
  const code = isSet(options, 'long') ? longCode : made.code
  if (isSet(options, 'qr')) await noteQrCode(output, code)
  if (output.json) {
    const { expiresAt, uses, tier, sandboxId, id, trust } = made
    const how = { network, problems: hintedAll(output, unfound), websocketUrls }
    output.object('invite@1', { code, expiresAt, uses, tier, sandboxId, id, trust, longCode, ...how })
    return EXIT.ok
  }
  noteProblems(output, unfound)
  noteTerms(output, made, params.admin === true)
  if (made.trust === 'guest') await warnOfRights(output, api())
  await noteUse(output, network, websocketUrls)
  output.note('and give it this code:')
  output.print(code)
  return EXIT.ok
}

/** How the newcomer uses the code. */
async function noteUse(output: Output, network: string, websocketUrls: readonly string[]): Promise<void> {
  if (network === 'local') {
    output.note('The network of this mesh is local, so the code works on this machine only:')
    output.note('  a2a-node --home <other directory> start --join -')
  } else {
    for (const line of joinLines(await installation())) output.note(line)
  }
  if (websocketUrls.length > 0)
    output.note(`Where UDP does not pass, add --via ${websocketUrls.map((url) => shown(url, 512)).join(',')}`)
}

/** The rights of the newcomer, and for how long the code is good. */
function noteTerms(
  output: Output,
  made: Pick<Calls['invite.create']['result'], 'expiresAt' | 'uses' | 'tier' | 'sandboxId' | 'trust'>,
  isAdmin: boolean
): void {
  const left = formatDuration(Math.max(0, Math.round((Date.parse(made.expiresAt) - Date.now()) / 1000) * 1000))
  const rights = isAdmin ? ', may invite and write the log' : ''
  const joins = `Joins ${plural(made.uses, 'node')} as ${made.tier}${made.sandboxId === null ? '' : ` in sandbox ${made.sandboxId}`}${rights}, for ${left}.`
  const kind = made.trust === 'mine' ? 'a machine of yours' : 'a guest (--mine: a machine of yours)'
  output.note(`${joins} It joins as ${kind}: ${TRUST_WORDS[made.trust]}.`)
}

/** Homes of earlier builds have no rule for guests, and a person may remove it. Documents may be open to all. */
async function warnOfRights(output: Output, api: ReturnType<Parameters<Action>[0]['api']>): Promise<void> {
  const { file, rules } = await api.call('policy.show', {})
  if (areGuestsAsked(rules)) {
    const { documents } = await api.call('documents.list', {})
    noteOwnWriters(output, documents.filter(isOpen), 'without an access list, so guests write too')
    return
  }
  const rule = '{ from: { trust: guest }, sideEffect: [write, exec], decision: ask }'
  output.note(`${output.paintNote('yellow', 'warning')}  no rule of this node asks for guests: they write and execute.`)
  output.note(`  Add to the rules in ${shown(file, 1000)}:  - ${rule}`)
}

function isOpen({ unrestricted }: DocumentInfo): boolean {
  return unrestricted === true
}

/** The kind of invite: as given, as a person at the terminal answers, or undefined: as the node has it. */
async function trustOption(output: Output, options: Options): Promise<Trust | undefined> {
  const [isMine, isGuest] = [isSet(options, 'mine'), isSet(options, 'guest')]
  if (isMine && isGuest)
    throw new NodeError('USAGE', '--mine and --guest contradict each other', { next: ['a2a-node invite --mine'] })
  if (isMine) return 'mine'
  if (isGuest || output.json || tierOption(options, 'tier') === 0 || !canAsk(output))
    return isGuest ? 'guest' : undefined
  return (await confirm('Is it a machine of yours? Then both may use each other fully; otherwise it is a guest.'))
    ? 'mine'
    : 'guest'
}

async function noteQrCode(output: Output, code: string): Promise<void> {
  const { renderUnicodeCompact } = await import('uqr')
  output.note(renderUnicodeCompact(code, { border: 2 }))
}

/** `invite ls`. */
export const listInvites: Action = async ({ output, api }) => {
  const { invites, problems } = await api().call('invite.list', {})
  if (output.json) output.object('invites@1', { invites, problems: hintedAll(output, problems) })
  else if (invites.length === 0) output.print(emptyText('invites', problems))
  else {
    const rows = invites.map((one): Cell[] => [
      one.id.slice(0, 8),
      one.tier,
      one.admin ? 'yes' : 'no',
      one.trust,
      one.sandboxId ?? '-',
      `${one.used}/${one.uses}`,
      { text: one.state, style: one.state === 'open' ? 'green' : 'dim' },
      one.state === 'open' ? `in ${formatDuration(Math.max(0, Date.parse(one.expiresAt) - Date.now()))}` : '-',
      one.by.name
    ])
    await printTable(output, ['ID', 'TIER', 'ADMIN', 'TRUST', 'SANDBOX', 'USED', 'STATE', 'EXPIRES', 'BY'], rows)
  }
  noteProblems(output, problems)
  return EXIT.ok
}

/** `invite revoke <id>`. */
export const revokeInvite: Action = async ({ output, api }, [id = '']) => {
  const revoked = await api().call('invite.revoke', { id })
  if (output.json) output.object('invite-info@1', revoked)
  else output.print(`invite ${revoked.id.slice(0, 8)} is ${revoked.state}`)
  return EXIT.ok
}
