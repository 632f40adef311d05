import type { DocumentAccessInfo, DocumentRuleInfo } from '../../ports/document-api.js'

/** Readers and writers of a document, as lines for people. */
export function accessFacts(access: DocumentAccessInfo | null): [string, string][] {
  if (access === null) return [['access', 'every member that is in no sandbox may see and write it']]
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
