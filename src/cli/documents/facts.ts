import { shellWord, shown } from '../../kit/text.js'
import type { DocumentAccessInfo, DocumentInfo, DocumentRuleInfo } from '../../ports/document-api.js'
import type { Output } from '../terminal/output.js'
import { plural } from '../terminal/render.js'

/** Documents whose commands are printed at once. */
const SHOWN = 3

/** Readers and writers of a document, as lines for people. */
export function accessFacts(access: DocumentAccessInfo | null): [string, string][] {
  if (access === null) return [['access', 'every member that is in no sandbox may see and write it, guests included']]
  return [
    ['may see', ruleText(access.see)],
    ['may write', ruleText(access.write)],
    ['set by', access.by.name]
  ]
}

function ruleText({ members, tier, sandboxes, unsandboxed }: DocumentRuleInfo): string {
  const places = [...(unsandboxed ? ['in no sandbox'] : []), ...sandboxes.map((one) => `in sandbox ${one}`)]
  const byTier =
    tier === null || places.length === 0 ? [] : [`members of ${tier} or more powerful, ${places.join(' or ')}`]
  return [...members.map(({ name }) => name), ...byTier, 'its creator and the owner of the mesh'].join('; ')
}

/** Prints the command that lets own machines alone write each of these documents, below a warning. */
export function noteOwnWriters(output: Output, documents: readonly DocumentInfo[], warning: string): void {
  // The list of a swarm's document follows its participants.
  const own = documents.filter(({ name, may }) => may.restrict && !name.startsWith('swarm_'))
  if (own.length === 0) return
  output.note(`${output.paintNote('yellow', 'warning')}  ${plural(own.length, 'document')}: ${warning}`)
  for (const { name } of own.slice(0, SHOWN)) output.note(`  try: ${output.hint(ownWritersStep(name))}`)
  if (own.length > SHOWN) output.note(`  ${output.hint('a2a-node doc ls')}   # the others`)
}

/** The command by which only machines of one's own write a document. */
export function ownWritersStep(name: string): string {
  return `a2a-node doc access ${shellWord(shown(name))} --write mine`
}
