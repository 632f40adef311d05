import { formatDuration } from '../../kit/units.js'
import { emptyText, hintedAll, networkProblems, noteProblems } from '../terminal/banner.js'
import type { Action } from '../context.js'
import { EXIT } from '../exit-codes.js'
import { countOption, durationOption, given, isSet, sandboxOption, tierOption } from '../options.js'
import { installation, joinLines } from '../start/install.js'
import type { Output } from '../terminal/output.js'
import { type Cell, plural, printTable } from '../terminal/render.js'

/** `invite`: the code alone on stdout, what it is good for on stderr. */
export const invite: Action = async ({ output, api }, _args, options) => {
  const params = given({
    tier: tierOption(options, 'tier'),
    admin: isSet(options, 'admin') ? true : undefined,
    ttlMs: durationOption(options, 'ttl', { minMs: 1000 }),
    uses: countOption(options, 'uses', [1, 1000]),
    sandboxId: sandboxOption(options, 'sandbox')
  })
  const made = await api().call('invite.create', params)
  const { network, problems } = await api().call('node.status', {})
  const unfound = networkProblems(problems)
  if (isSet(options, 'qr')) await noteQrCode(output, made.code)
  if (output.json) {
    const { code, expiresAt, uses, tier, sandboxId, id } = made
    output.object('invite@1', {
      code,
      expiresAt,
      uses,
      tier,
      sandboxId,
      id,
      network,
      problems: hintedAll(output, unfound)
    })
    return EXIT.ok
  }
  noteProblems(output, unfound)
  const left = formatDuration(Math.max(0, Math.round((Date.parse(made.expiresAt) - Date.now()) / 1000) * 1000))
  const rights = params.admin === true ? ', may invite and write the log' : ''
  const joins = `Joins ${plural(made.uses, 'node')} as ${made.tier}${made.sandboxId === null ? '' : ` in sandbox ${made.sandboxId}`}${rights}, for ${left}.`
  if (network === 'local') {
    output.note(`${joins} The network of this mesh is local, so the code works on this machine only:`)
    output.note('  a2a-node --home <other directory> start --join -')
  } else {
    for (const line of [joins, ...joinLines(await installation())]) output.note(line)
  }
  output.note('and give it this code:')
  output.print(made.code)
  return EXIT.ok
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
      one.sandboxId ?? '-',
      `${one.used}/${one.uses}`,
      { text: one.state, style: one.state === 'open' ? 'green' : 'dim' },
      one.state === 'open' ? `in ${formatDuration(Math.max(0, Date.parse(one.expiresAt) - Date.now()))}` : '-',
      one.by.name
    ])
    await printTable(output, ['ID', 'TIER', 'ADMIN', 'SANDBOX', 'USED', 'STATE', 'EXPIRES', 'BY'], rows)
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
