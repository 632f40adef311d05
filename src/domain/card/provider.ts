import { z } from 'zod'
import { isRecord } from '../../kit/json.js'
import { type AgentProvider, organizationFault, providerUrlFault } from '../../kit/names/provider.js'

/** A text that must pass `fault`, which gives the reason against it. */
function ruled(fault: (text: string) => string | null): z.ZodType<string> {
  return z.string().superRefine((text, context) => {
    const reason = fault(text)
    if (reason !== null) context.addIssue(reason)
  })
}

/** The provider of an agent, bounded; unknown keys are refused. */
export const providerSchema: z.ZodType<AgentProvider> = z.strictObject({
  organization: ruled(organizationFault),
  url: ruled(providerUrlFault)
})

/** Provider of an agent of the sender, beside its signed card. */
export interface ProviderNotice {
  readonly id: string
  /** Of the card to which it belongs. */
  readonly revision: number
  readonly provider: AgentProvider
}

const noticeSchema: z.ZodType<ProviderNotice> = z.object({
  id: z.string().min(1).max(64),
  revision: z.int().min(0),
  provider: z.object({ organization: ruled(organizationFault), url: ruled(providerUrlFault) })
})

/** The valid notices of a list from a peer; others are left out. Never throws. */
export function readProviders(list: readonly unknown[]): readonly ProviderNotice[] {
  return list.flatMap((one) => {
    const parsed = noticeSchema.safeParse(one)
    return parsed.success ? [parsed.data] : []
  })
}

/**
 * The provider on a card that others wrote: white space around its texts and unknown members are left out. null: none,
 * or an invalid one.
 */
export function foreignProvider(value: unknown): AgentProvider | null {
  if (!isRecord(value)) return null
  const { organization, url } = value
  const parsed = providerSchema.safeParse({ organization: trimmed(organization), url: trimmed(url) })
  return parsed.success ? parsed.data : null
}

function trimmed(value: unknown): unknown {
  return typeof value === 'string' ? value.trim() : value
}
